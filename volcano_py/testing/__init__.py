"""Builders and runners for tests of this project and of plugins; a test names only what matters to its case."""

from volcano_py.cache.feeding import event
from volcano_py.testing.cluster import a_cluster, added, deleted, modified, quarantined
from volcano_py.testing.objects import (
    Job,
    a_budget,
    a_group,
    a_job,
    a_namespace,
    a_node,
    a_pod,
    a_priority_class,
    a_queue,
    a_quota,
    a_replica_set,
    a_replication_controller,
    a_service,
    a_shard,
    as_json,
    manifest,
)
from volcano_py.testing.scenario import NotSettled, Result, Scenario, WhyNot, a_policy, run_scenario

__all__ = [
    "Job",
    "NotSettled",
    "Result",
    "Scenario",
    "WhyNot",
    "a_budget",
    "a_cluster",
    "a_group",
    "a_job",
    "a_namespace",
    "a_node",
    "a_pod",
    "a_policy",
    "a_priority_class",
    "a_queue",
    "a_quota",
    "a_replica_set",
    "a_replication_controller",
    "a_service",
    "a_shard",
    "added",
    "as_json",
    "deleted",
    "event",
    "manifest",
    "modified",
    "quarantined",
    "run_scenario",
]
