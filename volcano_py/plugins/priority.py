"""Priority: the more important job first, and in a job the more important task.

job order: -priority of the PodGroup's PriorityClass. task order: -priority of the pod, or of its annotation.
"""

from volcano_py.framework.extension import JobOrder, TaskOrder
from volcano_py.framework.plugin import Plugin
from volcano_py.model.resources import Floats
from volcano_py.snapshot.columns import JobColumns, TaskColumns


class Priority(Plugin, JobOrder, TaskOrder):
    """Order by priority."""

    name = "priority"

    def job_order(self, jobs: JobColumns) -> Floats:
        """Return minus the priority of each job, shape (n_jobs,)."""
        return -jobs.priority.astype(float)

    def task_order(self, tasks: TaskColumns) -> Floats:
        """Return minus the priority of each task, shape (n_tasks,)."""
        return -tasks.priority.astype(float)
