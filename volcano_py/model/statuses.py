"""The statuses of tasks and PodGroups, and the sets of statuses that rules refer to (Volcano: api.TaskStatus)."""

from enum import IntEnum
from typing import Final

import numpy as np

from volcano_py.model.arrays import Bools


class TaskStatus(IntEnum):
    """The status of a task; its value is the row in every table that counts tasks by status."""

    PENDING = 0
    ALLOCATED = 1
    PIPELINED = 2
    BINDING = 3
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9

    @property
    def label(self) -> str:
        """The name that Volcano's messages use."""
        return self.name.capitalize()


N_STATUSES: Final = len(TaskStatus)

ALLOCATED_STATUSES: Final = (TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING)
"""Statuses of tasks that hold a node's resources and are not being released."""

READY_STATUSES: Final = (*ALLOCATED_STATUSES, TaskStatus.SUCCEEDED)
"""Statuses that count towards a gang's minimum."""

VALID_STATUSES: Final = (*READY_STATUSES, TaskStatus.PIPELINED, TaskStatus.PENDING)
"""Statuses of tasks that count, or may later count, towards a gang's minimum."""

SCHEDULED_STATUSES: Final = (TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.FAILED, TaskStatus.SUCCEEDED)
"""Statuses that count as scheduled for the phase of a PodGroup."""

OCCUPYING_STATUSES: Final = (*ALLOCATED_STATUSES, TaskStatus.RELEASING, TaskStatus.UNKNOWN)
"""Statuses of tasks that take up resources of their node."""


def members(statuses: tuple[TaskStatus, ...]) -> Bools:
    """Return a mask over status rows, shape (N_STATUSES,), for use as ``mask[status_column]``."""
    mask = np.zeros(N_STATUSES, dtype=bool)
    mask[list(statuses)] = True
    mask.flags.writeable = False
    return mask


class PodGroupPhase(IntEnum):
    """The phase of a PodGroup; an empty phase on the wire counts as PENDING."""

    PENDING = 0
    INQUEUE = 1
    RUNNING = 2
    UNKNOWN = 3
    COMPLETED = 4

    @property
    def label(self) -> str:
        """The phase as written on the wire."""
        return self.name.capitalize()

    @classmethod
    def of(cls, text: str) -> "PodGroupPhase":
        """Return the phase for a wire text; an unknown text counts as UNKNOWN, an empty one as PENDING."""
        return cls.__members__.get(text.upper() or "PENDING", cls.UNKNOWN)
