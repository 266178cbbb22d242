"""The rows of the node block and the job block, and what a task in some status adds to each.

There is one block for nodes and one for jobs. A block contains everything that changes with a placement, so a placement
is one numpy addition per block and its undo one subtraction.

Node block, R resources: idle (R), used (R), releasing (R), pipelined (R), requested (R), allocatable (R), nonzero (2).
``idle used releasing pipelined`` are Volcano's accounting. ``requested`` and ``nonzero`` are what kube-scheduler's
NodeInfo would contain: pods placed or pipelined in this session count at once, and ``nonzero`` uses its default
requests.

``allocatable`` never changes with a placement. It is part of the block so that one gather makes a view of some nodes.

Job block: number of tasks by status (N_STATUSES); number of tasks that count towards the minimum (1), which are those
in ready statuses and pending best-effort ones; number of tasks that count or may later count (1); then the requests of
tasks in allocated statuses (R, allocated), of pending tasks (R, pending), of all tasks (R, total) and of pipelined
tasks (R, promised).
"""

from typing import Final

import numpy as np

from volcano_py.model.arrays import Floats
from volcano_py.model.statuses import (
    ALLOCATED_STATUSES,
    N_STATUSES,
    OCCUPYING_STATUSES,
    READY_STATUSES,
    VALID_STATUSES,
    TaskStatus,
)

N_NONZERO: Final = 2
IDLE, USED, RELEASING, PIPELINED, REQUESTED, ALLOCATABLE = range(6)
N_SECTIONS: Final = 6
HELD_ROW: Final = N_STATUSES
VALID_ROW: Final = N_STATUSES + 1
JOB_HEAD: Final = N_STATUSES + 2
ALLOCATED, PENDING, TOTAL, PROMISED = range(4)
N_JOB_SECTIONS: Final = 4


def _node_signs() -> Floats:
    signs = np.zeros((N_STATUSES, N_SECTIONS))
    for status in OCCUPYING_STATUSES:
        signs[status, [IDLE, USED, REQUESTED]] = (-1, 1, 1)
    signs[TaskStatus.RELEASING, RELEASING] = 1
    signs[TaskStatus.PIPELINED, [PIPELINED, REQUESTED]] = 1
    return signs


_NODE_SIGNS: Final = _node_signs()


_NODE_CLASS: Final = [next(i for i in range(N_STATUSES) if (_NODE_SIGNS[i] == signs).all()) for signs in _NODE_SIGNS]


def counts_alike(one: TaskStatus, other: TaskStatus) -> bool:
    """Say whether tasks of these two statuses add the same to the block of their node."""
    return _NODE_CLASS[one] == _NODE_CLASS[other]


def node_rows(n_resources: int) -> int:
    """Return the height of a node block."""
    return N_SECTIONS * n_resources + N_NONZERO


def job_rows(n_resources: int) -> int:
    """Return the height of a job block."""
    return JOB_HEAD + N_JOB_SECTIONS * n_resources


def section(block: Floats, which: int, n_resources: int) -> Floats:
    """Return a section of a node block as a view, shape (n_resources, n_nodes)."""
    return block[which * n_resources : (which + 1) * n_resources]


def node_delta(status: TaskStatus, request: Floats, nonzero: Floats) -> Floats:
    """Return what a task in this status adds to the block of its node, shape (node_rows,)."""
    signs = _NODE_SIGNS[status]
    return np.concatenate(((signs[:, None] * request).ravel(), signs[REQUESTED] * nonzero))


def eviction_delta(request: Floats, nonzero: Floats) -> Floats:
    """Return what evicting a running or bound task adds to the block of its node, shape (node_rows,).

    The task is releasing from then on. Predicates and scores no longer see it, unlike a pod that was already
    terminating, because they are asked what will be possible without it (Volcano removes it from its NodeInfo, too).
    """
    leaving = node_delta(TaskStatus.RELEASING, request, nonzero) - node_delta(TaskStatus.RUNNING, request, nonzero)
    leaving[REQUESTED * len(request) : (REQUESTED + 1) * len(request)] -= request
    leaving[N_SECTIONS * len(request) :] -= nonzero
    return leaving


def job_delta(status: TaskStatus, request: Floats, best_effort: bool) -> Floats:
    """Return what a task in this status adds to the block of its job, shape (job_rows,)."""
    delta = np.zeros(job_rows(len(request)))
    delta[status] = 1
    delta[HELD_ROW] = status in READY_STATUSES or (status is TaskStatus.PENDING and best_effort)
    delta[VALID_ROW] = status in VALID_STATUSES
    sections = delta[JOB_HEAD:].reshape(N_JOB_SECTIONS, len(request))
    sections[ALLOCATED] = request * (status in ALLOCATED_STATUSES)
    sections[PENDING] = request * (status is TaskStatus.PENDING)
    sections[TOTAL] = request
    sections[PROMISED] = request * (status is TaskStatus.PIPELINED)
    return delta


def widen_nodes(block: Floats, old: int, new: int) -> Floats:
    """Return a node block of ``old`` resources laid out for ``new`` ones; the added rows are zero."""
    wide = np.zeros((node_rows(new), block.shape[1]))
    sections = block[: N_SECTIONS * old].reshape(N_SECTIONS, old, -1)
    wide[: N_SECTIONS * new].reshape(N_SECTIONS, new, -1)[:, :old] = sections
    wide[N_SECTIONS * new :] = block[N_SECTIONS * old :]
    return wide


def widen_jobs(block: Floats, old: int, new: int) -> Floats:
    """Return a job block of ``old`` resources laid out for ``new`` ones; the added rows are zero."""
    wide = np.zeros((job_rows(new), block.shape[1]))
    wide[:JOB_HEAD] = block[:JOB_HEAD]
    wide[JOB_HEAD:].reshape(N_JOB_SECTIONS, new, -1)[:, :old] = block[JOB_HEAD:].reshape(N_JOB_SECTIONS, old, -1)
    return wide
