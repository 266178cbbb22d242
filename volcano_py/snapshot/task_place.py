"""What the store knows of one task."""

from typing import NamedTuple

from volcano_py.model.objects import TaskRecord
from volcano_py.model.statuses import TaskStatus


class TaskPlace(NamedTuple):
    """A task with its status and node."""

    record: TaskRecord
    status: TaskStatus
    node: str  # "" for none
