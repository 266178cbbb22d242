"""Static matching: which existing volumes unbound claims would get on which node.

The claims of a pod are matched by rising size. Each gets the smallest free volume of its class, mode, access modes and
selector that the node reaches and that no earlier claim got; of equal ones the first by name. A volume that is reserved
for the claim and large enough wins outright; on nodes that do not reach it, the claim gets no existing volume at all.
(kube-scheduler: FindMatchingVolume; there the order among equal ones is random.)

The answers for all nodes at once are exactly those for each node alone, but need no loop over nodes and volumes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from volcano_py.framework.state.volume_reach import VolumeReach
from volcano_py.model.arrays import Bools, Rows
from volcano_py.model.pod_needs import Wanted
from volcano_py.model.volumes import VolumeRecord
from volcano_py.snapshot.volume_columns import VolumeColumns, VolumeKind

NONE = -1
"""The row of no volume."""


@dataclass(eq=False)
class _Known:
    """What is known about several claims that want the same volumes."""

    rows: Rows
    """The volumes that one of them could get."""
    first: Rows
    """A node of each set of nodes that reach the same of these, (n_sets,)."""
    which: Rows
    """The set of each node, (n_nodes,)."""
    answers: Bools
    """Whether each claim would get a volume there, (n_claims, n_sets)."""
    taken: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """Which of these volumes had been promised then."""


class VolumeMatching:
    """The volumes of one session and what fits which claim."""

    def __init__(self, columns: VolumeColumns, reserved: Mapping[str, int], reach: VolumeReach, taken: Bools) -> None:
        """Take the volumes, the rows of those that are reserved, and which have been promised, shape (n_volumes,)."""
        self._columns = columns
        self._reserved = reserved
        self.reach = reach
        """Which nodes reach which volumes."""
        self._taken = taken
        self._candidates: dict[Wanted, Rows] = {}
        self._known: dict[tuple[Wanted, ...], _Known] = {}

    def candidates(self, wanted: Wanted) -> Rows:
        """Return the volumes that a claim could be bound to on some node, the best first."""
        known = wanted._replace(selected_node="", shared=None)
        found = self._candidates.get(known)
        if found is None:
            found = self._candidates[known] = self._find(known)
        return found

    def _find(self, wanted: Wanted) -> Rows:
        columns = self._columns
        own = [self._reserved[name] for name in wanted.reserved if name in self._reserved]
        own = [row for row in own if self._could_be(wanted, columns.records[row])]
        if own:
            return np.array(own[:1], dtype=np.intp)
        kinds = np.array([kind is not None and _alike(wanted, kind) for kind in columns.kinds], dtype=bool)
        if not kinds.any():
            return np.zeros(0, dtype=np.intp)
        rows = np.flatnonzero(columns.free & kinds[columns.kind] & (columns.capacity >= wanted.size))
        selector = wanted.selector
        if selector is not None and not selector.empty:
            # A Python loop over the volumes that would do, only for claims with a selector.
            records = (columns.records[row] for row in rows.tolist())
            rows = rows[[record is not None and selector.matches(record.labels) for record in records]]
        return rows[np.lexsort((columns.rank[rows], columns.capacity[rows]))]

    @staticmethod
    def _could_be(wanted: Wanted, volume: VolumeRecord | None) -> bool:
        """Say whether a claim may be bound to a volume that is reserved for it: access and selector do not matter."""
        return (
            volume is not None
            and not volume.deleting
            and volume.capacity >= wanted.size
            and volume.storage_class == wanted.storage_class
            and volume.volume_mode == wanted.volume_mode
            and volume.attributes_class == wanted.attributes_class
        )

    def on_node(self, wanted: Sequence[Wanted], own: Sequence[int], node: int) -> list[int]:
        """Return the volume that each of these claims, by rising size, would get on a node, or `NONE`.

        ``own`` are the volumes that the claims have been promised already, `NONE` for none.
        """
        chosen: list[int] = []
        for one, promised in zip(wanted, own, strict=True):
            if promised != NONE:
                reached = self.reach.from_node(node, np.array([promised], dtype=np.intp))
                chosen.append(promised if reached[0] else NONE)
                continue
            rows, found = self.candidates(one), NONE
            if len(rows) and not one.selected_node:
                rows = rows[~self._taken[rows] & self.reach.from_node(node, rows)]
                found = next((row for row in rows.tolist() if row not in chosen), NONE)
            chosen.append(found)
        return chosen

    def on_nodes(self, wanted: Sequence[Wanted], own: Sequence[int]) -> Bools:
        """Return whether each of these claims would get a volume on each node, shape (n_claims, n_nodes)."""
        pairs = list(zip(wanted, own, strict=True))
        found = np.array([self._alone(one, promised) for one, promised in pairs])
        classes: dict[str, list[int]] = {}
        for number, (one, promised) in enumerate(pairs):
            if promised == NONE and not one.selected_node and len(self.candidates(one)):
                classes.setdefault(one.storage_class, []).append(number)
        for numbers in classes.values():
            if len(numbers) > 1:  # claims of other classes cannot get the same volume
                found[numbers] = self._together([wanted[number] for number in numbers])
        return found

    def _alone(self, wanted: Wanted, promised: int) -> Bools:
        if promised != NONE:
            return self.reach.nodes_of(np.array([promised], dtype=np.intp))
        rows = self.candidates(wanted)
        return self.reach.nodes_of(rows[:0] if wanted.selected_node else rows[~self._taken[rows]])

    def _together(self, wanted: Sequence[Wanted]) -> Bools:
        """Return the same for claims that may want the same volumes."""
        known = self._known.get(tuple(wanted))
        if known is None:
            known = self._known[tuple(wanted)] = self._divided(wanted)
            changed = np.arange(len(known.first))
        else:
            moved = known.rows[known.taken != self._taken[known.rows]]
            changed = np.flatnonzero(self.reach.nodes_of(moved)[known.first])
        known.taken = self._taken[known.rows].copy()
        own = [NONE] * len(wanted)
        # A Python loop over sets of nodes that reach the same of these volumes, if some of these have been promised
        # since, or are free again. The first time it is a loop over all such sets.
        for number in changed.tolist():
            known.answers[:, number] = [row != NONE for row in self.on_node(wanted, own, int(known.first[number]))]
        return known.answers[:, known.which]

    def _divided(self, wanted: Sequence[Wanted]) -> "_Known":
        """Divide nodes by which of the volumes that these claims want they reach."""
        rows = np.unique(np.concatenate([self.candidates(one) for one in wanted]))
        domains = self.reach.domains(rows)
        if not len(domains):
            first, which = np.zeros(1, dtype=np.intp), np.zeros(domains.shape[1], dtype=np.intp)
        else:
            _, first, which = np.unique(domains, axis=1, return_index=True, return_inverse=True)
        return _Known(rows, first, which.reshape(-1), np.zeros((len(wanted), len(first)), dtype=bool))


def _alike(wanted: Wanted, kind: VolumeKind) -> bool:
    return (
        kind.storage_class == wanted.storage_class
        and kind.volume_mode == wanted.volume_mode
        and kind.attributes_class == wanted.attributes_class
        and wanted.access_modes <= kind.access_modes
    )
