"""Builders and runners for tests of this project and of plugins: name only what matters to the case."""

from volcano_py.testing.cluster import a_cluster, added, deleted, event, modified, quarantined
from volcano_py.testing.objects import Job, a_group, a_job, a_node, a_pod, a_priority_class, a_queue

__all__ = [
    "Job",
    "a_cluster",
    "a_group",
    "a_job",
    "a_node",
    "a_pod",
    "a_priority_class",
    "a_queue",
    "added",
    "deleted",
    "event",
    "modified",
    "quarantined",
]
