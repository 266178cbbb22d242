"""What a queue may keep from a reclaiming queue, whatever the plugins of other tiers say.

The excess of a queue is what it holds above its deserved amount. The excess of a request is a fraction: resources are
summed as parts of the cluster's total, without pods. A task that requests nothing that its queue deserves is all
excess. With ``ancestorReclaimLevel`` the near ancestors of a queue count as well, except common ancestors of both
queues; the lowest of these fractions counts. A task may be evicted if one of these holds:

    lent      `votes` allows it, and its excess is a greater fraction than that of the plan's gains
    levelled  the plan's gains contain no excess; the reclaiming queue deserves some of what it requests; the task's
              queue and its ancestors keep their guarantees; and `framework.evicting.levelling` allows it. In a tree,
              levelling compares the two branches where the paths from the root diverge. A branch without a deserved
              amount deserves the sum of its children's.

The plan's gains are what the plan gives the reclaiming queue. (In Volcano a queue may reclaim if it is within its
deserved amount in one resource, and may lose tasks if it is above it in one resource. Two queues may be both, each in
another resource, and would exchange pods forever. Here victims are more excess than what replaces them, and levelling
creates no excess.)
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from volcano_py.framework.contract.victim_candidates import Earlier, VictimCandidates
from volcano_py.framework.evicting.levelling import may_level
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.queue_tree import QueueTree
from volcano_py.model.resources import EPSILON, PODS_ROW
from volcano_py.plugins.capacity.entitlements import Entitlements
from volcano_py.plugins.capacity.votes import Lent


@dataclass(frozen=True, eq=False)
class PreemptingQueue:
    """The reclaiming queue."""

    row: int
    held: Floats  # (n_resources, n_queues), what all queues and their ancestors hold before the plan
    gains: Floats  # (n_resources,), what the plan gives the queue
    entitled: Mapping[int, int]  # the queue or an ancestor -> the nearest one up to there that deserves the request


class Standing:
    """What all decisions of a session share: the queues and what they deserve."""

    def __init__(
        self, tree: QueueTree, due: Entitlements, total: Floats, near: Callable[[int], tuple[int, ...]]
    ) -> None:
        """Take a function for the near ancestors of a queue, and the cluster's total (n_resources,)."""
        self.tree = tree
        self.due = due
        self.near = near
        self._part = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        self._part[PODS_ROW] = 0.0

    def excess(self, before: Floats, requests: Floats, queues: Rows) -> Floats:
        """Return the fraction of each request that is excess, shape (n,); ``before`` is held without the request.

        Amounts are (n_resources, n). A request for nothing that the queue deserves is all excess.
        """
        deserved, named = self.due.deserved[:, queues], self.due.deserved_named[:, queues]
        more = np.maximum(before + requests - deserved, 0.0) - np.maximum(before - deserved, 0.0)
        sizes = self._part @ requests
        parts = np.divide(self._part @ (more * named), sizes, out=np.zeros_like(sizes), where=sizes > 0)
        deserves = ((requests >= EPSILON) & (deserved >= EPSILON)).any(axis=0)
        return np.where(deserves, parts, 1.0)


class Keeping:
    """Which candidates queues may keep; what does not depend on the evictions is computed once."""

    def __init__(
        self, standing: Standing, held: Floats, candidates: VictimCandidates, preemptor: PreemptingQueue, lent: Lent
    ) -> None:
        """Take what queues and all below them hold now, (n_resources, n_queues), and the rules of `votes`."""
        due, tree = standing.due, standing.tree
        self._standing = standing
        self._requests = candidates.requests
        self._lent = lent
        self._first = candidates.first_of_unit
        self._together = candidates.of_units(candidates.requests)
        self._levels = _levels(standing, held, candidates, preemptor.row)
        mine, theirs = _branches(tree, candidates.queues, preemptor.row)
        self._theirs = _Account(candidates, theirs, held)
        self._their_due = due.measure[:, theirs]
        before, my_due = preemptor.held[:, mine], due.measure[:, mine]
        self._preemptor = (before, before + preemptor.gains[:, None], my_due)
        distinct, which = np.unique(mine, return_inverse=True)
        self._on = np.array([_excess_of(preemptor, standing, branch) for branch in distinct.tolist()])[which]
        asked = preemptor.gains >= EPSILON
        asked[PODS_ROW] = False
        self._may_level = ((my_due >= EPSILON) & asked[:, None]).any(axis=0) & (self._on == 0)

    def may_go(self, going: Bools) -> Bools:
        """Return which candidates may be evicted if the ``going`` ones (n,) before each are evicted, shape (n,)."""
        gone = self._requests * going
        allowed = self._lent.released(going)
        allowed[allowed] = (self._off(gone) > self._on)[allowed]
        if (self._may_level & ~allowed).any():
            allowed |= self._may_level & self._levelled(gone)
        refused = np.bincount(self._first, weights=~allowed, minlength=len(allowed)) > 0
        return ~refused[self._first]

    def _off(self, gone: Floats) -> Floats:
        """Return the fraction of each candidate that is excess, the least over its queue and near ancestors, (n,)."""
        least = np.ones(len(self._first))
        alone = np.arange(len(self._first))
        for level in self._levels:
            rows = level.rows[level.near]
            left = level.account.left(gone, alone, self._requests)[:, level.near]
            least[level.near] = np.minimum(
                least[level.near], self._standing.excess(left, self._requests[:, level.near], rows)
            )
        return least

    def _levelled(self, gone: Floats) -> Bools:
        left = self._theirs.left(gone, self._first, self._together)
        allowed = may_level(left, self._their_due, *self._preemptor)
        for level in self._levels:
            left = level.account.left(gone, self._first, self._together)
            allowed &= (left > level.guarantee - EPSILON).all(axis=0) | (level.rows < 0)
        return allowed


def _excess_of(preemptor: PreemptingQueue, standing: Standing, branch: int) -> float:
    """Return the fraction of the plan's gains that is excess, the least over the queue and near ancestors in a branch.

    Common ancestors of both queues do not count.
    """
    if branch not in preemptor.entitled:
        return np.inf
    way = standing.tree.chains[preemptor.row]
    near = {preemptor.row, *standing.near(preemptor.row)}
    rows = np.array([row for row in way[: way.index(branch) + 1] if row in near], dtype=np.intp)
    gains = np.repeat(preemptor.gains[:, None], len(rows), axis=1)
    return float(standing.excess(preemptor.held[:, rows], gains, rows).min())


class _Account:
    """What one queue per candidate, its own or an ancestor, has left when candidates are evicted."""

    def __init__(self, candidates: VictimCandidates, rows: Rows, held: Floats) -> None:
        """Take the row of each candidate's queue (n,), any row where there is none, and what all queues hold."""
        self._held = held[:, rows]
        self._earlier = Earlier(candidates.groups, rows)

    def left(self, gone: Floats, first: Rows, together: Floats) -> Floats:
        """Return it for each candidate, without the evicted ones before it and those evicted together with it."""
        return np.asarray(self._held - self._earlier.total(gone)[:, first] - together)


class _Level(NamedTuple):
    """Queues of one depth: for each candidate its own queue or the ancestor at this depth."""

    rows: Rows  # (n,), -1 for none
    near: Bools  # (n,), whether it is the candidate's own queue or a near ancestor
    account: _Account
    guarantee: Floats  # (n_resources, n)


def _levels(standing: Standing, held: Floats, candidates: VictimCandidates, preemptor: int) -> list[_Level]:
    """Return the candidates' queues and their ancestors by depth, without ancestors of the reclaiming queue."""
    tree = standing.tree
    distinct, which = np.unique(candidates.queues, return_inverse=True)
    shared = set(tree.chains[preemptor])
    # Python loops over the candidates' queues and the levels of the tree.
    ways = [
        [row for row in tree.chains[queue] if row not in shared][::-1] if queue >= 0 else []
        for queue in distinct.tolist()
    ]
    near = [{queue, *standing.near(queue)} if queue >= 0 else set() for queue in distinct.tolist()]
    found = []
    for depth in range(max(map(len, ways), default=0)):
        at = [way[depth] if depth < len(way) else -1 for way in ways]
        rows = np.array(at, dtype=np.intp)[which]
        close = np.array([row in there for row, there in zip(at, near, strict=True)], dtype=bool)[which]
        found.append(_Level(rows, close, _Account(candidates, rows, held), standing.due.guarantee[:, rows]))
    return found


def _branches(tree: QueueTree, queues: Rows, preemptor: int) -> tuple[Rows, Rows]:
    """Return where the paths of the reclaiming queue and of each candidate's queue diverge: a row per side, (n,)."""
    distinct, which = np.unique(queues, return_inverse=True)
    # A Python loop over the candidates' queues.
    pairs = np.array(
        [tree.branches(preemptor, queue) if queue >= 0 else (preemptor, queue) for queue in distinct.tolist()]
    )
    return pairs[which, 0], pairs[which, 1]
