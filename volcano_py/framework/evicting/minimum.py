"""How much the minimum of a job needs of its waiting tasks.

`allocate` takes tasks in task order, so plans do, too. If roles have minimums, tasks of other roles may come before
those that are needed: they are placed and count.
"""

from typing import Final

import numpy as np

from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Floats, Rows
from volcano_py.model.statuses import READY_STATUSES, TaskStatus

_PROMISED: Final = (*READY_STATUSES, TaskStatus.PIPELINED)


def greatest_gains(state: State, job: JobInfo, tasks: Rows, missing: int) -> Floats:
    """Return the most that a job gets if it gets what it lacks, (n_resources,): the ``missing`` tasks, and each role.

    If roles and sub-groups both have rules, more tasks may be necessary, so all tasks count.
    """
    requests = state.classes.requests[:, state.tasks.shape[tasks]]
    if not job.record.role_rule:
        return _greatest(requests, missing)
    if job.record.sub_group_policies:
        return np.asarray(requests.sum(axis=1))
    roles = state.tasks.role[tasks].astype(np.intp)
    total, tried = np.zeros(len(requests)), roles[: _tried(state, job, roles, missing)]
    for role, number in zip(*np.unique(tried, return_counts=True), strict=True):  # a Python loop over roles
        total += _greatest(requests[:, roles == role], number)
    return total


def _tried(state: State, job: JobInfo, roles: Rows, missing: int) -> int:
    """Return how many tasks, in task order, are tried until the total and each role have what the job lacks."""
    last = missing
    for role, number in _lacking(state, job).items():  # a Python loop over the roles of one job
        places = np.flatnonzero(roles == role)
        last = max(last, int(places[min(number, len(places)) - 1]) + 1 if len(places) else len(roles))
    return min(last, len(roles))


def _lacking(state: State, job: JobInfo) -> dict[int, int]:
    """Return how many tasks a job lacks of each role below its minimum, by the code of the role."""
    short = job.roles_short(_PROMISED, best_effort=True)
    if not short:
        return {}
    codes = {name: code for code, name in enumerate(state.tasks.role_names)}
    return {codes.get(role, -1): minimum - have for role, have, minimum in short}


def _greatest(requests: Floats, count: int) -> Floats:
    """Return the sum of the ``count`` greatest amounts of each resource, (n_resources,)."""
    cut = max(0, requests.shape[1] - count)
    return np.asarray(np.sort(requests, axis=1)[:, cut:].sum(axis=1))
