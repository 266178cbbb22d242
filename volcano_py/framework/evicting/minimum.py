"""What the minimum of a job needs of its waiting tasks: which of them, and how much they request at most.

If roles have minimums, what the job lacks of each role comes first, and tasks of any role then complete the total. So
a plan never places more for the minimum than this, whichever role is first in task order.
"""

from typing import Final

import numpy as np

from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.statuses import READY_STATUSES, TaskStatus

_PROMISED: Final = (*READY_STATUSES, TaskStatus.PIPELINED)


def counts_roles(job: JobInfo) -> bool:
    """Say whether the minimum of a job depends on roles; sub-groups have rules of their own."""
    return bool(job.record.role_rule) and not job.record.sub_group_policies


def needed(state: State, job: JobInfo, tasks: Rows, missing: int) -> Bools:
    """Return which of these waiting tasks (n,), in order, complete the minimum if all of them find nodes, (n,).

    The job lacks ``missing`` tasks, or only tasks of some role.
    """
    found = np.zeros(len(tasks), dtype=bool)
    lacking = _lacking(state, job)
    roles = state.tasks.role[tasks]
    for role, number in lacking.items():  # a Python loop over the roles of one job
        found[np.flatnonzero(roles == role)[:number]] = True
    found[np.flatnonzero(~found)[: max(0, missing - sum(lacking.values()))]] = True
    return found


def greatest_gains(state: State, job: JobInfo, tasks: Rows, missing: int) -> Floats:
    """Return the most that a job gets if it gets what it lacks, (n_resources,): the ``missing`` tasks, and each role.

    If roles and sub-groups both have rules, more tasks may be necessary, so all tasks count.
    """
    requests = state.classes.requests[:, state.tasks.shape[tasks]]
    if not job.record.role_rule:
        return _greatest(requests, missing)[0]
    if job.record.sub_group_policies:
        return np.asarray(requests.sum(axis=1))
    total, roles, lacking = np.zeros(len(requests)), state.tasks.role[tasks], _lacking(state, job)
    others = [requests[:, ~np.isin(roles, list(lacking))]]
    for role, number in lacking.items():  # a Python loop over the roles of one job
        most, rest = _greatest(requests[:, roles == role], number)
        total += most
        others.append(rest)
    return total + _greatest(np.concatenate(others, axis=1), max(0, missing - sum(lacking.values())))[0]


def _lacking(state: State, job: JobInfo) -> dict[int, int]:
    """Return how many tasks a job lacks of each role below its minimum, by the code of the role."""
    short = job.roles_short(_PROMISED, best_effort=True)
    if not short:
        return {}
    codes = {name: code for code, name in enumerate(state.tasks.role_names)}
    return {codes.get(role, -1): minimum - have for role, have, minimum in short}


def _greatest(requests: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the sum of the ``count`` greatest amounts of each resource, (n_resources,), and the other amounts."""
    if count >= requests.shape[1]:
        return np.asarray(requests.sum(axis=1)), requests[:, :0]
    ordered = np.sort(requests, axis=1)
    cut = requests.shape[1] - count
    return np.asarray(ordered[:, cut:].sum(axis=1)), ordered[:, :cut]
