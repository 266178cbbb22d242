"""Reservations: what enqueued jobs will still take, and what others could give back (Volcano: plugins/util, job_info).

min       minResources of the PodGroup
gated     requests of the job's tasks that wait for a scheduling gate other than that of their queue: they cannot start
          yet, so a reservation is reduced by them, never below 0
rest      max(min - allocated, 0), without ephemeral-storage
elastic   max(allocated - min, 0): what the job holds beyond its minimum; without minResources all that it holds

A reservation counts for PodGroups in phase Inqueue. In phase Running it counts as long as min_available tasks are
there: otherwise a job that has begun to end (its driver has ended) would reserve again what it has given back.
"""

import numpy as np

from volcano_py.api import keys
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Floats, Ints
from volcano_py.model.resources import PODS_ROW
from volcano_py.model.statuses import ALLOCATED_STATUSES, PodGroupPhase
from volcano_py.snapshot.columns import JobColumns


def reserved(state: State, whole: bool) -> Floats:
    """Return what enqueued jobs will still take, shape (n_resources, n_jobs), 0 for all other jobs.

    For a job in phase Inqueue this is what it lacks of its minimum, or the ``whole`` minimum. A job whose queue does
    not exist counts 0.
    """
    jobs = state.jobs
    known = np.array([name in state.queues for name in jobs.rules.queue_names], dtype=bool)
    counted = jobs.rules.present & jobs.has_min_resources
    counted[counted] = known[jobs.rules.queue[counted]]
    left = rest(state)
    holding = jobs.counts[list(ALLOCATED_STATUSES)].sum(axis=0)
    inqueue = counted & (jobs.phase == PodGroupPhase.INQUEUE)
    running = counted & (jobs.phase == PodGroupPhase.RUNNING) & (holding >= jobs.min_available)
    amounts = np.where(inqueue, jobs.min_resources if whole else left, np.where(running, left, 0.0))
    return np.asarray(np.maximum(amounts - gated(state), 0.0))


def rest(state: State) -> Floats:
    """Return what jobs lack of their minResources, shape (n_resources, n_jobs)."""
    lacking = np.maximum(state.jobs.min_resources - state.jobs.allocated, 0.0)
    storage = state.resources.find(keys.EPHEMERAL_STORAGE)
    if storage is not None:
        lacking[storage] = 0.0
    return np.asarray(lacking)


def elastic(jobs: JobColumns) -> Floats:
    """Return what jobs hold beyond their minResources, shape (n_resources, n_jobs)."""
    return np.asarray(np.maximum(jobs.allocated - jobs.min_resources, 0.0))


def gated(state: State) -> Floats:
    """Return the requests of each job's gated tasks, whatever their status, shape (n_resources, n_jobs)."""
    tasks, shapes = state.tasks, state.classes.shapes
    # A Python loop over shapes: gates are in them.
    has_gate = [shape is not None and bool(shape.gates) and shape.gates != (keys.QUEUE_GATE,) for shape in shapes]
    sums = np.zeros(state.jobs.allocated.shape)
    if any(has_gate):
        rows = np.flatnonzero((tasks.shape >= 0) & (tasks.job >= 0))
        rows = rows[np.array(has_gate)[tasks.shape[rows]]]
        for row, amounts in enumerate(state.classes.requests):
            sums[row] = np.bincount(tasks.job[rows], weights=amounts[tasks.shape[rows]], minlength=len(state.jobs))
    return sums


def over_asked(need: Floats, limit: Floats, asked: Floats) -> list[int]:
    """Return the rows of requested resources (``asked`` above 0) in which ``need`` exceeds a limit, all (n_resources,).

    The comparison is exact. Pods do not count, because every pod needs one (Volcano: LessEqualWithDimension).
    """
    over = (asked > 0) & (need > limit)
    over[PODS_ROW] = False
    return [row for row, is_over in enumerate(over.tolist()) if is_over]  # for a few resources faster than an array


def all_over_asked(need: Floats, limit: Floats, asked: Floats) -> tuple[Ints, list[list[int]]]:
    """Return the answers of `over_asked` for many jobs, all (n_resources, n) or of a shape that broadcasts to it.

    The first result has for each job the place of its answer among those of the second one, (n,).
    """
    over = (asked > 0) & (need > limit)
    over[PODS_ROW] = False
    places = np.zeros(over.shape[1], dtype=np.int64)
    # A Python loop over the resources that are short: jobs keep the same place as long as they are alike.
    for row in np.flatnonzero(over.any(axis=1)).tolist():
        places = np.unique(places * 2 + over[row], return_inverse=True)[1]
    firsts = np.unique(places, return_index=True)[1]
    return places, [np.flatnonzero(over[:, first]).tolist() for first in firsts.tolist()]
