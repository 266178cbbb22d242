"""Which tasks may be reclaimed: candidates are checked in order of eviction, and those evicted count for the rest.

A candidate of queue Q may be evicted if 1, 2, and 3 or 4 hold, with held = what Q holds without the candidates of its
group that are evicted before it:

    1  it requests some resource that the preemptor requests, except pods
    2  guarantee <= held - request in every resource, within 0.1
    3  it requests no resource (pods included) of which Q deserves any
    4  held > deserved in some resource, except pods, that it requests and that Q's deserved amounts name

With ``ancestorReclaimLevel`` L > 0 in a tree, let near be the L nearest ancestors of a queue, without the root. Then:

    -  Rule 3 does not apply if Q and the preemptor's queue share a near ancestor and the preemptor's queue deserves
       nothing of what the preemptor requests.
    -  Every near ancestor of Q must pass 3 or 4 with its own amounts, except one that is also an ancestor of the
       preemptor's queue at the same distance.

(Volcano: capacity's ReclaimableFn, which walks from task to task.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from volcano_py.framework.contract.victim_candidates import Earlier, VictimCandidates
from volcano_py.framework.evicting.levelling import who_may_go
from volcano_py.model.arrays import Bools, Codes, Floats, Rows
from volcano_py.model.resources import EPSILON, PODS_ROW
from volcano_py.plugins.capacity.entitlements import Entitlements


@dataclass(frozen=True, eq=False)
class Rules:
    """The inputs of one decision."""

    held: Floats  # (n_resources, n_queues), of each queue and all below it
    due: Entitlements
    above: Mapping[int, tuple[int, ...]]  # by row of a candidate's queue: its ancestors that must pass as well
    sheltered: frozenset[int]  # queues for which rule 3 does not apply
    alike: Bools | None  # (n_resources,), the preemptor's requested resources except pods; None: rule 1 does not apply


def takeable(rules: Rules, candidates: VictimCandidates, shapes: Codes) -> Bools:
    """Return for each candidate whether it may be evicted, shape (n,); ``shapes`` (n,) are the candidates' shapes."""
    if not len(candidates):
        return np.zeros(0, dtype=bool)
    # If ancestors must pass, an eviction from one queue may matter to another queue.
    apart = np.zeros(len(candidates), dtype=np.intp) if any(rules.above.values()) else candidates.queues
    return who_may_go(candidates, shapes, apart, Lent(rules, candidates).released)


class Lent:
    """The rules for some candidates; what does not depend on the evictions is computed once."""

    def __init__(self, rules: Rules, candidates: VictimCandidates) -> None:
        self._rules = rules
        self._candidates = candidates
        requests, queues = candidates.requests, candidates.queues
        self._held = rules.held[:, queues]
        self._floor = rules.due.guarantee[:, queues] - EPSILON + requests
        self._exceeds = _Exceeds(rules.due, requests, queues)
        sheltered = np.isin(queues, list(rules.sheltered)) if rules.sheltered else np.zeros(len(queues), dtype=bool)
        self._easy = self.guests & ~sheltered
        self._open: Bools = np.ones(len(queues), dtype=bool)
        if rules.alike is not None:
            self._open = np.asarray(((requests >= EPSILON) & rules.alike[:, None]).any(axis=0))

    @property
    def guests(self) -> Bools:
        """The candidates that request no resource of which their queue deserves any, shape (n,)."""
        return self._exceeds.nothing_due

    def released(self, going: Bools) -> Bools:
        """Return which candidates may be evicted if the ``going`` ones (n,) before each are evicted, shape (n,)."""
        gone = self._candidates.requests * going
        held = self._held - self._candidates.by_queue.total(gone)
        allowed = self._open & (held > self._floor).all(axis=0) & (self._easy | self._exceeds.by(held))
        for account in self._above:
            allowed[account.places] &= account.allows(gone)
        return np.asarray(allowed)

    @cached_property
    def _above(self) -> "list[_Above]":
        """One entry per ancestor that must pass for some candidate's queue."""
        rows = sorted({row for above in self._rules.above.values() for row in above})
        below = {row: [queue for queue, above in self._rules.above.items() if row in above] for row in rows}
        queues = self._candidates.queues
        return [_Above(self._rules, self._candidates, row, np.flatnonzero(np.isin(queues, below[row]))) for row in rows]


class _Above:
    """An ancestor of some candidates' queues, which must pass as well."""

    def __init__(self, rules: Rules, candidates: VictimCandidates, row: int, places: Rows) -> None:
        self.places = places
        requests = candidates.requests[:, places]
        self._held = rules.held[:, [row]]
        self._exceeds = _Exceeds(rules.due, requests, np.full(len(places), row))
        self._earlier = Earlier(candidates.groups[places], np.zeros(len(places), dtype=np.intp))

    def allows(self, gone: Floats) -> Bools:
        held = self._held - self._earlier.total(gone[:, self.places])
        return np.asarray(self._exceeds.nothing_due | self._exceeds.by(held))


class _Exceeds:
    """Whether queues hold more than they deserve of the resources that tasks request."""

    def __init__(self, due: Entitlements, requests: Floats, queues: Rows) -> None:
        self._deserved = due.deserved[:, queues]
        self._counted = (requests > 0) & due.deserved_named[:, queues]
        self._counted[PODS_ROW] = False
        asked = (requests >= EPSILON) & (self._deserved >= EPSILON)
        self.nothing_due: Bools = ~np.asarray(asked.any(axis=0))

    def by(self, held: Floats) -> Bools:
        """Return whether it is so with ``held`` (n_resources, n), shape (n,)."""
        return np.asarray(((held > self._deserved) & self._counted).any(axis=0))
