"""What jobs that have been let in will still take, and what others could give back (Volcano: plugins/util, job_info).

min       minResources of the PodGroup
gated     requests of the job's tasks that wait for a scheduling gate other than that of their queue: they are not
          coming yet, so a reservation is cut by them, never below 0
rest      max(min - allocated, 0); ephemeral-storage is left aside
elastic   max(allocated - min, 0): what the job holds beyond its minimum; without minResources all that it holds

A reservation counts for PodGroups in phase Inqueue, and in phase Running as long as enough tasks are there: a job that
has begun to end (its driver is gone) would otherwise reserve again what it has given back.
"""

from typing import TYPE_CHECKING

import numpy as np

from volcano_py.api import keys
from volcano_py.framework.state.info import TaskInfo
from volcano_py.model.arrays import Bools, Floats
from volcano_py.model.resources import PODS_ROW
from volcano_py.model.statuses import ALLOCATED_STATUSES, PodGroupPhase
from volcano_py.snapshot.columns import JobColumns

if TYPE_CHECKING:
    from volcano_py.framework.session import Session


def reserved(ssn: "Session", whole: bool) -> Floats:
    """Return what jobs that have been let in will still take, shape (n_resources, n_jobs), 0 for all other jobs.

    Of jobs in phase Inqueue counts what they lack of their minimum, or the ``whole`` of it. Jobs whose queue does not
    exist count nothing.
    """
    jobs = ssn.jobs
    known = np.array([name in ssn.queues for name in jobs.rules.queue_names], dtype=bool)
    counted = jobs.rules.present & jobs.has_min_resources
    counted[counted] = known[jobs.rules.queue[counted]]
    left = rest(ssn)
    holding = jobs.counts[list(ALLOCATED_STATUSES)].sum(axis=0)
    inqueue = counted & (jobs.phase == PodGroupPhase.INQUEUE)
    running = counted & (jobs.phase == PodGroupPhase.RUNNING) & (holding >= jobs.min_available)
    amounts = np.where(inqueue, jobs.min_resources if whole else left, np.where(running, left, 0.0))
    return np.asarray(np.maximum(amounts - gated(ssn), 0.0))


def rest(ssn: "Session") -> Floats:
    """Return what jobs lack of their minResources, shape (n_resources, n_jobs)."""
    lacking = np.maximum(ssn.jobs.min_resources - ssn.jobs.allocated, 0.0)
    storage = ssn.resources.find(keys.EPHEMERAL_STORAGE)
    if storage is not None:
        lacking[storage] = 0.0
    return np.asarray(lacking)


def elastic(jobs: JobColumns) -> Floats:
    """Return what jobs hold beyond their minResources, shape (n_resources, n_jobs)."""
    return np.asarray(np.maximum(jobs.allocated - jobs.min_resources, 0.0))


def gated(ssn: "Session") -> Floats:
    """Return the requests of each job's gated tasks, whatever their status, shape (n_resources, n_jobs)."""
    sums = np.zeros(ssn.jobs.allocated.shape)
    # A Python loop over the few shapes that have a gate.
    for shape_id, shape in enumerate(ssn.shapes):
        if shape is None or not shape.gates or shape.gates == (keys.QUEUE_GATE,):
            continue
        owners = ssn.tasks.job[(ssn.tasks.shape == shape_id) & (ssn.tasks.job >= 0)]
        counts = np.bincount(owners, minlength=len(ssn.jobs))
        sums += ssn.task_of(shape_id).request[:, None] * counts
    return sums


def coming(ssn: "Session", task: TaskInfo | None) -> Floats | None:
    """Return what queues will hold besides what they hold now, as far as it counts against somebody who takes room.

    Shape (n_resources, n_queues), None for nothing. It is what evictions under way have promised and, unless the
    ``task`` is through the gate of its queue, what waiting tasks ask for that are.
    """
    ahead = np.zeros(0, dtype=np.intp)
    if ssn.admission is not None and task is not None:
        ahead = ssn.admission.ahead_of(task)
    parts = [ssn.nominated_room.promised(ahead)]
    if ssn.admission is not None and task is not None:
        parts.append(ssn.admission.against(task))
    found = [part for part in parts if part is not None]
    return np.asarray(sum(found)) if found else None


def over_asked(need: Floats, limit: Floats, asked: Floats) -> Bools:
    """Say in which resources ``need`` exceeds a limit, of those of which ``asked`` has any; all (n_resources,).

    Compared exactly, and pods are left aside: every pod needs one (Volcano: LessEqualWithDimension).
    """
    over = (asked > 0) & (need > limit)
    over[PODS_ROW] = False
    return np.asarray(over)
