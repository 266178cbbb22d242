"""Task-topology: tasks of a job that belong together, and tasks that do not."""

from volcano_py.plugins.task_topology.plugin import TaskTopology

__all__ = ["TaskTopology"]
