"""Plans for jobs with a hard topology: others are evicted in one domain, and the job is placed in this domain only.

Domains of the highest allowed tier come first: there the fewest tasks must be evicted (Volcano's order). Of a tier,
those with the most free room come first. A domain whose nodes could not take the gang even if they were empty is left
out. The first domain with a plan is used.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.evicting.plan import PlaceGang
from volcano_py.framework.placing.topology_placement import TopologyPlacement
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.model.arrays import Rows

MOST_DOMAINS = 8
"""How many domains are tried for one job, unless an argument says otherwise."""

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


def scopes(
    topology: TopologyPlacement, eviction: Eviction, job: JobInfo, tasks: Rows, candidates: VictimCandidates
) -> Iterator[tuple[Eviction, VictimCandidates]]:
    """Yield where plans for single tasks of a job are made, in the order in which they are tried.

    For a job whose sub-groups have limits of their own there is no such plan: only whole gangs are placed so.
    """
    if not topology.limited(job):
        yield eviction, candidates
    elif not job.record.sub_group_policies:
        for domain in topology.domains_to_empty(job, tasks, MOST_DOMAINS):
            yield _within(topology, eviction, candidates, domain, whole_jobs=False)


def _within(
    topology: TopologyPlacement, eviction: Eviction, candidates: VictimCandidates, domain: int, *, whole_jobs: bool
) -> tuple[Eviction, VictimCandidates]:
    placement = topology.placement_in(domain)
    inside = ~placement.node_sets.shut[candidates.groups]
    if whole_jobs:  # a job that is evicted as a whole may have tasks elsewhere
        inside = np.isin(candidates.jobs, candidates.jobs[inside])
    return eviction.within(placement), candidates.only(inside)
