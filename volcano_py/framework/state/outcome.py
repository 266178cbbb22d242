"""What a session has found out about jobs that wait, and what it says of them when it closes.

Actions write here why a job or a task waits. The texts, conditions and events of the close are made of it.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.memory import Memory
from volcano_py.model.arrays import Bools, Rows
from volcano_py.model.objects import GroupCondition, JobKey
from volcano_py.model.rejections import Reason, Rejection
from volcano_py.model.statuses import TaskStatus

_ALLOCATED: Final = TaskStatus.ALLOCATED.value  # numpy asks an enum in vain for half a dozen attributes: 2 us


def _not_known(job: JobInfo) -> str:
    raise RuntimeError(f"nobody says why PodGroup {job.key} waits: a session is needed for that, not its state alone")


class Outcome:
    """Rejections, conditions and events of one session, by job."""

    def __init__(self, memory: Memory, n_tasks: int, withheld: Mapping[JobKey, str]) -> None:
        """Take the memory, the number of task rows, and the PodGroups that the snapshot withholds, with the reason."""
        self.withheld = withheld
        self.rejections: dict[int, dict[int, Rejection]] = {}
        """Job row -> shape id -> why its tasks found no node."""
        self.blocked: dict[int, Reason] = {}
        """Job row -> why it was not tried at all."""
        self.skipped: dict[int, Reason] = {}
        """Job row -> the plugin that failed when the job was tried."""
        self.queue_limits: dict[str, Reason] = {}
        """Queue -> why its other tasks were not tried."""
        self.refusals: dict[JobKey, str] = {}
        """Jobs that plugins did not let be enqueued -> why."""
        self.announced: dict[JobKey, str] = {}
        """What events say about statuses that this session finds not written."""
        self.enqueued: set[JobKey] = set()
        self.enqueued_before = frozenset(memory.enqueued)
        self.conditions: dict[int, list[GroupCondition]] = {}
        """Job row -> conditions to upsert."""
        self.times = dict(memory.times)
        """Plugin -> when it last did what it does now and then; the next cycle remembers it."""
        self.fit_error: Callable[[JobInfo], str] = _not_known
        """Returns why a job waits as things are now; the session sets it."""
        self._any_attempt = False
        self._attempt_status = np.full(n_tasks, -1, dtype=np.int8)
        self._attempt_node = np.full(n_tasks, -1, dtype=np.int32)

    def remember_attempt(self, tasks: Rows, status: TaskStatus, nodes: Rows) -> None:
        """Keep how far tasks had come before their statement was discarded."""
        self._any_attempt = True
        self._attempt_status[tasks] = status
        self._attempt_node[tasks] = nodes

    def forget_attempt(self, tasks: Rows) -> None:
        """Drop what was kept of tasks that are now committed."""
        if self._any_attempt:
            self._attempt_status[tasks] = -1

    def attempt(self, task_row: int) -> tuple[TaskStatus, int] | None:
        """Return the status and node row that a task had in its last discarded statement, None if it had none."""
        status = int(self._attempt_status[task_row])
        return None if status < 0 else (TaskStatus(status), int(self._attempt_node[task_row]))

    def attempted(self, tasks: Rows) -> Bools:
        """Say for each of these tasks whether it had a node in a discarded statement, shape (n_tasks,)."""
        return np.asarray(self._attempt_status[tasks] >= 0)

    def attempts(self, tasks: Rows) -> int:
        """Return how many of these tasks would have been allocated if their job had been complete."""
        return int(np.count_nonzero(self._attempt_status[tasks] == _ALLOCATED))
