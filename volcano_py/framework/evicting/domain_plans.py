"""Plans for jobs with a hard topology: others are evicted in one domain, and the job is placed in this domain only.

Domains of the highest allowed tier come first: there the fewest tasks must be evicted (Volcano's order). Of a tier,
those with the most free room come first. A domain whose nodes could not take the gang even if they were empty is left
out. The first domain with a plan is used.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.evicting.plan import PlaceGang, Plan
from volcano_py.framework.placing.topology_placement import TopologyPlacement
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.model.arrays import Rows

MOST_DOMAINS = 8
"""How many domains are tried for one job, unless an argument says otherwise."""

MayPreempt = Callable[[int, int], bool]
"""Says of a shape and a number whether that many more tasks of it may be placed at all."""

Make = Callable[[Eviction, VictimCandidates, PlaceGang | None], int]
"""Makes plans with an eviction, candidates, and what places the whole gang; returns how many tasks get nodes."""


def make_for_gang(
    topology: TopologyPlacement,
    eviction: Eviction,
    queue: QueueInfo,
    job: JobInfo,
    tasks: Rows,
    candidates: VictimCandidates,
    most: int,
    make: Make,
) -> int:
    """Make plans for a whole gang, in one domain after the other if it has a topology or sub-groups."""
    if not topology.applies(job):
        return make(eviction, candidates, None)
    for domain in topology.domains_to_empty(job, tasks, most):
        place_gang = partial(topology.place_once_free, queue, job, domain)
        done = make(*_within(topology, eviction, candidates, domain, whole_jobs=True), place_gang)
        if done:
            return done
    return 0


class Scope(NamedTuple):
    """Where a plan is made, and what places the whole gang there; None: its tasks are placed one by one."""

    eviction: Eviction
    candidates: VictimCandidates
    place_gang: PlaceGang | None


def scopes(
    topology: TopologyPlacement,
    eviction: Eviction,
    queue: QueueInfo,
    job: JobInfo,
    tasks: Rows,
    candidates: VictimCandidates,
) -> Iterator[Scope]:
    """Yield where plans for single tasks of a job are made, in the order in which they are tried.

    Victims are found for one task after the other. A job with sub-groups is then placed anew, its sub-groups whole.
    """
    divided = bool(job.record.sub_group_policies)
    if not topology.limited(job) and not divided:
        yield Scope(eviction, candidates, None)
        return
    for domain in topology.domains_to_empty(job, tasks, MOST_DOMAINS):
        place_gang = partial(topology.place_once_free, queue, job, domain) if divided else None
        yield Scope(*_within(topology, eviction, candidates, domain, whole_jobs=False), place_gang)


def fill(
    plan: Plan, scope: Scope, tasks: Rows, may_preempt: MayPreempt | None = None, *, starving_or_not: bool = False
) -> None:
    """Find nodes for tasks, and for sub-groups only if they are whole."""
    whole = scope.place_gang is not None
    plan.fill(tasks, may_preempt, starving_or_not=starving_or_not or whole)
    if whole and plan.statement.placed:
        plan.retry(np.array(plan.statement.evicted, dtype=np.intp), tasks)


def _within(
    topology: TopologyPlacement, eviction: Eviction, candidates: VictimCandidates, domain: int, *, whole_jobs: bool
) -> tuple[Eviction, VictimCandidates]:
    placement = topology.placement_in(domain)
    inside = ~placement.node_sets.shut[candidates.groups]
    if whole_jobs:  # a job that is evicted as a whole may have tasks elsewhere
        inside = np.isin(candidates.jobs, candidates.jobs[inside])
    return eviction.within(placement), candidates.only(inside)
