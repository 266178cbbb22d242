"""Builders and runners for tests of this project and of plugins: name only what matters to the case."""

from volcano_py.cache.feeding import event
from volcano_py.testing.cluster import a_cluster, added, deleted, modified, quarantined
from volcano_py.testing.objects import Job, a_group, a_job, a_node, a_pod, a_priority_class, a_queue
from volcano_py.testing.scenario import NotSettled, Result, Scenario, WhyNot, a_policy, run_scenario

__all__ = [
    "Job",
    "NotSettled",
    "Result",
    "Scenario",
    "WhyNot",
    "a_cluster",
    "a_group",
    "a_job",
    "a_node",
    "a_pod",
    "a_policy",
    "a_priority_class",
    "a_queue",
    "added",
    "deleted",
    "event",
    "modified",
    "quarantined",
    "run_scenario",
]
