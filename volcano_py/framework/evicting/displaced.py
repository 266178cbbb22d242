"""Displaced jobs: a plan without evictions has taken the room that is nominated for them.

Such a plan is withdrawn at the end of the action, and the room is reserved for the displaced job again. If others were
evicted for that job elsewhere, its nominations would move there. Then nobody would keep the old room, the victims would
come back to it, and all would begin again. So nobody is evicted for it in this action.
"""

import numpy as np

from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.state.info import JobInfo


def candidates_for(eviction: Eviction, job: JobInfo, candidates: VictimCandidates) -> VictimCandidates:
    """Return whom plans may evict for a job: nobody if it is displaced, else the candidates without its preemptors.

    Room that is nominated for the job must be open to it.
    """
    nodes: set[int] = set()
    if eviction.free_rooms and eviction.room.nodes_of(job):  # a Python loop over the tasks of plans, only for such jobs
        nodes.update(node for statement in eviction.free_rooms for _, node in statement.placed)
    if nodes and eviction.room.displaced(job, nodes):
        return candidates.at(np.zeros(0, dtype=np.intp))
    return candidates.without_jobs(eviction.pending_evictions.preemptors(job))
