"""Task-topology: affinity and anti-affinity between the tasks of a job."""

from volcano_py.plugins.task_topology.plugin import TaskTopology

__all__ = ["TaskTopology"]
