"""What a queue may keep when another one takes room, whatever the plugins of other tiers say.

What a queue holds above what it deserves is excess: summed over resources but pods, each as a part of all there is. A
task that asks for nothing that its queue deserves is excess as a whole. With ``ancestorReclaimLevel`` the near queues
above speak for a queue too, except those that stand above both queues; the one counts for which the excess is least. A
task may go if one of these holds:

    lent      `votes` lets it go, and a greater part of it is excess than of what the plan gives the taker
    levelled  the plan gives the taker no excess, the taker deserves some of what it asks for, the queue and those above
              it keep their guarantee, and `framework.evicting.levelling` lets the task go; in a tree the two branches
              are
              compared in which the ways from the root part, and one that does not say what it deserves deserves what
              those below it do

(To be within what one deserves in one resource is enough to take in Volcano, and to be above it in one to lose. Two
queues that are both, each in another resource, would exchange pods for ever. Here what goes is more of an excess than
what takes its place, and levelling makes none.)
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
    """The queue that takes."""

    row: int
    held: Floats  # (n_resources, n_queues), what all queues hold before the plan, those above the taker included
    gains: Floats  # (n_resources,), what the plan gives it
    entitled: Mapping[int, int]  # itself and queues above -> who of those up to there may claim what it asks for


class Standing:
    """What all questions of a session have in common: the queues, and what they deserve."""

    def __init__(
        self, tree: QueueTree, due: Entitlements, total: Floats, near: Callable[[int], tuple[int, ...]]
    ) -> None:
        """Take the near queues above each, and how much there is of everything (n_resources,)."""
        self.tree = tree
        self.due = due
        self.near = near
        self._part = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        self._part[PODS_ROW] = 0.0

    def excess(self, before: Floats, requests: Floats, queues: Rows) -> Floats:
        """Return which part of requests is excess of queues that hold this without them, shape (n,).

        Amounts are (n_resources, n). It is all of a request for nothing that the queue deserves.
        """
        deserved, named = self.due.deserved[:, queues], self.due.deserved_named[:, queues]
        more = np.maximum(before + requests - deserved, 0.0) - np.maximum(before - deserved, 0.0)
        sizes = self._part @ requests
        parts = np.divide(self._part @ (more * named), sizes, out=np.zeros_like(sizes), where=sizes > 0)
        deserves = ((requests >= EPSILON) & (deserved >= EPSILON)).any(axis=0)
        return np.where(deserves, parts, 1.0)


class Keeping:
    """What queues keep of some candidates, with all that does not depend on who goes worked out once."""

    def __init__(
        self, standing: Standing, held: Floats, candidates: VictimCandidates, preemptor: PreemptingQueue, lent: Lent
    ) -> None:
        """Take what queues and all below them hold now, (n_resources, n_queues), and the rules by which they lend."""
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
        """Return who may go if of those before them these (n,) go, shape (n,)."""
        gone = self._requests * going
        allowed = self._lent.released(going)
        allowed[allowed] = (self._off(gone) > self._on)[allowed]
        if (self._may_level & ~allowed).any():
            allowed |= self._may_level & self._levelled(gone)
        refused = np.bincount(self._first, weights=~allowed, minlength=len(allowed)) > 0
        return ~refused[self._first]

    def _off(self, gone: Floats) -> Floats:
        """Return which part of each candidate comes off the excess of its queue, or of one near above, shape (n,)."""
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
    """Return which part of what a plan gives is excess of the taker or of one near above it, within a branch.

    Nobody takes by what a queue deserves that stands above both.
    """
    if branch not in preemptor.entitled:
        return np.inf
    way = standing.tree.chains[preemptor.row]
    near = {preemptor.row, *standing.near(preemptor.row)}
    rows = np.array([row for row in way[: way.index(branch) + 1] if row in near], dtype=np.intp)
    gains = np.repeat(preemptor.gains[:, None], len(rows), axis=1)
    return float(standing.excess(preemptor.held[:, rows], gains, rows).min())


class _Account:
    """What one queue per candidate, its own or one above, has left when candidates go."""

    def __init__(self, candidates: VictimCandidates, rows: Rows, held: Floats) -> None:
        """Take the queues (n,), of any number where there is none, and what all queues hold."""
        self._held = held[:, rows]
        self._earlier = Earlier(candidates.groups, rows)

    def left(self, gone: Floats, first: Rows, together: Floats) -> Floats:
        """Return it for each candidate with all those before it that go, and those that go with it."""
        return np.asarray(self._held - self._earlier.total(gone)[:, first] - together)


class _Level(NamedTuple):
    """Queues of one depth: of each candidate the one above it there, or its own."""

    rows: Rows  # (n,), -1 for none
    near: Bools  # (n,), whether it is the candidate's own or one near above
    account: _Account
    guarantee: Floats  # (n_resources, n)


def _levels(standing: Standing, held: Floats, candidates: VictimCandidates, preemptor: int) -> list[_Level]:
    """Return the queues of candidates and those above them that do not stand above the taker, by depth."""
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
    """Return by candidate where the ways of the taker and of its queue part, a row for each side, both (n,)."""
    distinct, which = np.unique(queues, return_inverse=True)
    # A Python loop over the candidates' queues.
    pairs = np.array(
        [tree.branches(preemptor, queue) if queue >= 0 else (preemptor, queue) for queue in distinct.tolist()]
    )
    return pairs[which, 0], pairs[which, 1]
