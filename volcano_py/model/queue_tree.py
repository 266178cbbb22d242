"""The tree of queues: the parent of each queue, and which queues are not part of the tree.

Every queue names its parent, ``root`` by default. The root exists even without an object of that name; it then sets no
limits. If the parents of a queue lead to a missing queue or form a cycle, the queue and all queues below it are set
aside with the reason. All other queues go on. (In Volcano the hierarchy is then "not ready" and every queue stops.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from volcano_py.api.keys import ROOT_QUEUE
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.objects import QueueRecord


@dataclass(frozen=True, eq=False)
class QueueTree:
    """Queues by row, as in `framework.state.queue_accounts`."""

    chains: tuple[tuple[int, ...], ...]
    """By queue: its own row, then its ancestors, the root last. A queue set aside has only its own row."""
    problems: dict[int, str]
    """Why a queue is set aside, by row."""

    @classmethod
    def flat(cls, records: Sequence[QueueRecord]) -> "QueueTree":
        """Return the queues without a hierarchy, whatever parents they name."""
        return cls(tuple((row,) for row in range(len(records))), {})

    @classmethod
    def of(cls, records: Sequence[QueueRecord]) -> "QueueTree":
        """Return the tree that the queues' parents form."""
        rows = {record.name: row for row, record in enumerate(records)}
        chains: dict[int, tuple[int, ...]] = {}
        problems: dict[int, str] = {}
        # A Python loop over queues; each queue's path is found once.
        for row in range(len(records)):
            _climb(row, records, rows, chains, problems)
        return cls(tuple(chains.get(row, (row,)) for row in range(len(records))), problems)

    @cached_property
    def parents(self) -> Rows:
        """The row above each queue, -1 for none, shape (n_queues,)."""
        return np.array([chain[1] if len(chain) > 1 else -1 for chain in self.chains], dtype=np.intp)

    @cached_property
    def leaf(self) -> Bools:
        """Which queues have none below them, shape (n_queues,)."""
        leaf = np.ones(len(self.chains), dtype=bool)
        leaf[self.parents[self.parents >= 0]] = False
        return leaf

    @cached_property
    def levels(self) -> list[Rows]:
        """The rows of each depth, from the top down; queues set aside are at the top."""
        depth = np.array([len(chain) for chain in self.chains], dtype=np.intp)
        return [np.flatnonzero(depth == level) for level in range(1, int(depth.max(initial=0)) + 1)]

    def rolled_up(self, own: Floats) -> Floats:
        """Return for each queue the sum of its own amounts and all below it, (n_resources, n_queues)."""
        source, target = self._steps_up
        sums = [np.bincount(target, weights=row[source], minlength=len(self.chains)) for row in own]
        return np.array(sums, dtype=float).reshape(len(own), len(self.chains))

    @cached_property
    def _steps_up(self) -> tuple[Rows, Rows]:
        """Every pair of a queue and one queue of its chain, each (n_pairs,)."""
        source = np.repeat(np.arange(len(self.chains)), [len(chain) for chain in self.chains])
        return source, np.array([row for chain in self.chains for row in chain], dtype=np.intp)

    def branches(self, left: int, right: int) -> tuple[int, int]:
        """Return where the paths from the root to two queues diverge: the first differing row of each.

        If one queue is an ancestor of the other, the two queues themselves are returned.
        """
        ways = zip(reversed(self.chains[left]), reversed(self.chains[right]), strict=False)
        return next(((one, other) for one, other in ways if one != other), (left, right))

    def common(self, left: int, right: int) -> int:
        """Return how many ancestors two queues have in common, not counting the queues themselves."""
        ways = zip(reversed(self.chains[left][1:]), reversed(self.chains[right][1:]), strict=False)
        count = 0
        for one, other in ways:
            if one != other:
                break
            count += 1
        return count


def _climb(
    start: int,
    records: Sequence[QueueRecord],
    rows: dict[str, int],
    chains: dict[int, tuple[int, ...]],
    problems: dict[int, str],
) -> None:
    """Find the path from a queue to the root, and the paths of all queues on it."""
    path: list[int] = []
    row: int | None = start
    while row is not None and row not in chains and row not in problems:
        if row in path:
            cycle = path[path.index(row) :]
            names = " -> ".join(records[entry].name for entry in (*cycle, row))
            problem = f"its parents form a cycle ({names}): change spec.parent of one of them"
            problems.update(dict.fromkeys(cycle, problem))
            break
        path.append(row)
        if records[row].name == ROOT_QUEUE:
            chains[row] = (row,)
            break
        parent = records[row].parent or ROOT_QUEUE
        if parent not in rows:
            if parent == ROOT_QUEUE:
                chains[row] = (row,)
            else:
                problems[row] = f'its parent "{parent}" does not exist: create it or change spec.parent'
            break
        row = rows[parent]
    # The upper end of the path is known now; the queues below it follow, from the top down.
    for entry in reversed(path):
        if entry in chains or entry in problems:
            continue
        parent_row = rows[records[entry].parent or ROOT_QUEUE]
        if parent_row in chains:
            chains[entry] = (entry, *chains[parent_row])
        else:
            text = problems[parent_row]
            below = f'it is below queue "{records[parent_row].name}", which is not in the queue tree: '
            problems[entry] = text if text.startswith("it is below") else below + text
