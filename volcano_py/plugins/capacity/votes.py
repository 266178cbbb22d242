"""Who may be taken from: candidates are asked in the order in which they would go, and what went before counts.

A candidate of queue Q may go if, with held = what Q holds without those that may go before it in its group:

    1  it asks for some resource that the claimant asks for, pods left aside
    2  guarantee <= held - request in every resource, within 0.1
    3  it asks for nothing (pods included) of which Q deserves any, or else
    4  held > deserved in some resource that it asks for and that Q's list of deserved amounts names, pods left aside

With ``ancestorReclaimLevel`` L > 0 in a tree, 3 does not hold between queues that share one of their L nearest queues
above (the root does not count) while the claimant's queue deserves nothing of what the claimant asks for; and every one
of the L nearest queues above Q, except the root and one that stands at the same distance above the claimant's queue,
must pass 3 or 4 with its own amounts. (Volcano: capacity's ReclaimableFn.)

Volcano walks from task to task. Here like tasks of one job stand together, and how many of such a run may go is
arithmetic; runs that stand first in their groups are settled together, then those that stand second, and so on.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from volcano_py.framework.evictables import Evictables
from volcano_py.model.resources import EPSILON, PODS_ROW, Bools, Floats
from volcano_py.plugins.capacity.entitlements import Entitlements
from volcano_py.snapshot.columns import Codes, Rows

_Ints = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Rules:
    """What one question is decided by."""

    held: Floats  # (n_resources, n_queues), of each queue and all below it
    due: Entitlements
    above: Mapping[int, tuple[int, ...]]  # by row of a candidate's queue: queues above it that must pass as well
    sheltered: frozenset[int]  # queues for which rule 3 does not hold
    alike: Bools | None  # (n_resources,), what the claimant asks for, pods left aside; None: rule 1 does not count


def takeable(rules: Rules, candidates: Evictables, shapes: Codes) -> Bools:
    """Return for each candidate whether it may go, shape (n,); ``shapes`` are those of the candidates (n,)."""
    allowed = np.zeros(len(candidates), dtype=bool)
    if not len(candidates):
        return allowed
    apart = not any(rules.above.values())
    order: Rows = np.arange(len(candidates))
    if apart:  # each queue is walked through by itself; in a question about many nodes or jobs queues take turns
        order = np.lexsort((candidates.queues, candidates.groups))
        candidates, shapes = candidates.at(order), shapes[order]
    walk = _Walk(rules, candidates, _Runs(candidates, shapes, apart=apart))
    counts = walk.counts()
    runs = walk.runs
    place = np.arange(len(candidates)) - np.repeat(runs.start, runs.length)
    allowed[order] = place < np.repeat(counts, runs.length)
    return allowed


class _Walk:
    """What may go, run by run. An account is what a queue holds as seen from one segment."""

    def __init__(self, rules: Rules, candidates: Evictables, runs: "_Runs") -> None:
        self._rules = rules
        self.runs = runs
        self._requests = candidates.requests[:, runs.start]  # (n_resources, n_runs)
        queues = sorted(set(runs.queue.tolist()))
        levels = max((len(rules.above.get(queue, ())) for queue in queues), default=0)
        above = np.full((levels, len(rules.held[0])), -1, dtype=np.intp)
        for queue in queues:
            rows = rules.above.get(queue, ())
            above[: len(rows), queue] = rows
        self._above = above
        # In a segment of one queue one account is enough; otherwise each queue that is met has its own.
        met = np.union1d(queues, above[above >= 0]).astype(np.intp) if levels else np.zeros(0, dtype=np.intp)
        self._account = np.zeros(len(rules.held[0]), dtype=np.intp)
        self._account[met] = np.arange(len(met))
        self._gone = np.zeros((len(rules.held), runs.n_segments, max(len(met), 1)))

    def counts(self) -> Rows:
        """Return how many of each run may go, shape (n_runs,)."""
        counts = np.zeros(len(self.runs.start), dtype=np.intp)
        # A Python loop over the runs of the longest segment; each step settles one run of every segment.
        for place in range(self.runs.longest):
            chosen = self.runs.at(place)
            counts[chosen] = self._settle(chosen)
        return counts

    def _settle(self, chosen: Rows) -> Rows:
        """Decide runs of different segments, and count what may go in the accounts it goes from."""
        rules, segments, queues = self._rules, self.runs.segment[chosen], self.runs.queue[chosen]
        requests = self._requests[:, chosen]
        held = rules.held[:, queues] - self._gone[:, segments, self._account[queues]]
        counts = np.minimum(_keeping(held, rules.due.guarantee[:, queues], requests), self.runs.length[chosen])
        counts = np.minimum(counts, self._over(held, queues, requests, shelter=True))
        if rules.alike is not None:
            counts[~((requests >= EPSILON) & rules.alike[:, None]).any(axis=0)] = 0
        for level in self._above:
            above = level[queues]
            there = np.flatnonzero(above >= 0)
            rows, parts = above[there], segments[there]
            over = rules.held[:, rows] - self._gone[:, parts, self._account[rows]]
            passing = self._over(over, rows, requests[:, there], shelter=False)
            counts[there] = np.minimum(counts[there], passing)
        gone = requests * counts
        self._gone[:, segments, self._account[queues]] += gone
        for level in self._above:
            above = level[queues]
            there = np.flatnonzero(above >= 0)
            self._gone[:, segments[there], self._account[above[there]]] += gone[:, there]
        return counts.astype(np.intp)

    def _over(self, held: Floats, queues: Rows, requests: Floats, *, shelter: bool) -> Floats:
        """Return how many may go by rules 3 and 4, one after the other, shape (n_runs,)."""
        due = self._rules.due
        deserved = due.deserved[:, queues]
        counts = _exceeding(held, deserved, requests, due.deserved_named[:, queues])
        free = ~((requests >= EPSILON) & (deserved >= EPSILON)).any(axis=0)
        counts[free] = np.inf
        if shelter:
            counts[free & np.isin(queues, list(self._rules.sheltered))] = 0.0
        return counts


def _keeping(held: Floats, floor: Floats, requests: Floats) -> Floats:
    """Return how many requests can be taken away with at least the floor left, within EPSILON; all (n_resources, n)."""
    room = held - floor + EPSILON
    with np.errstate(divide="ignore", invalid="ignore"):
        counts = np.where(requests > 0, np.ceil(room / requests) - 1, np.where(room > 0, np.inf, 0.0))
    return np.asarray(np.maximum(counts.min(axis=0), 0.0))


def _exceeding(held: Floats, deserved: Floats, requests: Floats, named: Bools) -> Floats:
    """Return how many may go, each while more than is deserved is left of something it asks for, shape (n,)."""
    counted = (requests > 0) & named
    counted[PODS_ROW] = False
    with np.errstate(divide="ignore", invalid="ignore"):
        counts = np.where(counted, np.ceil((held - deserved) / requests), 0.0)
    return np.asarray(np.maximum(counts.max(axis=0), 0.0))


class _Runs:
    """Candidates that stand together and are alike, and where such a run stands in its segment.

    A segment is what is walked through from its first run to its last: a group, or of a group what is of one queue if
    queues do not matter to each other.
    """

    def __init__(self, candidates: Evictables, shapes: Codes, *, apart: bool) -> None:
        queues, groups = candidates.queues, candidates.groups
        new_segment = _changes(groups, queues) if apart else _changes(groups)
        begins = _changes(groups, queues, shapes) | new_segment
        self.start = np.flatnonzero(begins)
        self.length = np.diff(np.append(self.start, len(groups)))
        self.queue: Rows = queues[self.start]
        first = np.flatnonzero(new_segment[self.start])  # the first run of each segment
        sizes = np.diff(np.append(first, len(self.start)))
        self.segment = np.repeat(np.arange(len(first)), sizes)
        self.n_segments = len(first)
        self._place = np.arange(len(self.start)) - np.repeat(first, sizes)
        self.longest = int(sizes.max(initial=0))

    def at(self, place: int) -> _Ints:
        """Return the runs that stand at a place of their segments, at most one of each segment."""
        return np.flatnonzero(self._place == place)


def _changes(*columns: Rows | Codes) -> Bools:
    changes = np.ones(len(columns[0]), dtype=bool)
    changes[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return changes
