"""Which tasks count towards the minimums of roles, and how many a role has to spare."""

import numpy as np

from volcano_py.framework.state.equivalence import EquivalenceClasses
from volcano_py.model.arrays import Bools, Ints, Rows
from volcano_py.model.statuses import TaskStatus, members
from volcano_py.snapshot.columns import JobColumns, TaskColumns


def counting(
    tasks: TaskColumns, classes: EquivalenceClasses, rows: Rows, statuses: tuple[TaskStatus, ...], best_effort: bool
) -> Bools:
    """Return which of these tasks are in one of the statuses or, with ``best_effort``, pending best-effort ones."""
    status = tasks.status[rows]
    counted = members(statuses)[status]
    if best_effort:
        counted |= classes.best_effort[tasks.shape[rows]] & (status == TaskStatus.PENDING)
    return counted


def role_surplus(
    jobs: JobColumns,
    tasks: TaskColumns,
    classes: EquivalenceClasses,
    rows: Rows,
    statuses: tuple[TaskStatus, ...],
    best_effort: bool,
) -> Ints:
    """Return by how many tasks the role of each task (n,) exceeds the minimum that its job sets for it, (n,).

    At least one job must set a minimum. What counts is what `counting` says.
    """
    of_these = np.zeros(len(jobs) + 1, dtype=bool)  # the last is for tasks of no job
    of_these[tasks.job[rows]] = True
    counted = np.flatnonzero(of_these[tasks.job])
    counted = counted[counting(tasks, classes, counted, statuses, best_effort)]
    return jobs.rules.role_minimums.surplus(tasks.job[counted], tasks.role[counted], tasks.job[rows], tasks.role[rows])
