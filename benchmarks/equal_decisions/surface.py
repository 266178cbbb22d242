"""All that the driver uses of volcano_py.

When a name moves, its new place comes first here and the old one after an ImportError; when a class of decisions or
reports is renamed, `plain.RENAMED` gets an entry.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np

import volcano_py
from volcano_py.cache import feeding
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.evictions import Plan
from volcano_py.conf.loader import parse_conf
from volcano_py.model.loads import NodeLoad
from volcano_py.model.rejections import Reason
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler import resolve, run_cycle

try:
    from volcano_py.api import apps, core, policy, scheduling, shard
    from volcano_py.framework import contract as api
    from volcano_py.framework.contract import Plugin, Vote
    from volcano_py.framework.state.clock import CycleClock
    from volcano_py.framework.state.memory import Memory

    _WIRE = (core, scheduling, policy, shard, apps)
except ImportError:  # version 0.1.0
    from volcano_py.framework.clock import CycleClock
    from volcano_py.framework.extension import Vote
    from volcano_py.framework.memory import Memory
    from volcano_py.framework.plugin import Plugin

    from volcano_py.api import types, workloads
    from volcano_py.framework import extension as api

    _WIRE = (types, workloads)

__all__ = [
    "KINDS",
    "POLICIES",
    "ClusterCache",
    "CycleClock",
    "Memory",
    "NodeLoad",
    "Plan",
    "feeding",
    "parse_conf",
    "parts",
    "resolve",
    "run_cycle",
    "volcano_py",
]

_NAMES = (
    *("Node", "Pod", "PodGroup", "Queue", "PriorityClass", "Namespace", "ResourceQuota", "PodDisruptionBudget"),
    *("NodeShard", "Service", "ReplicationController", "ReplicaSet", "StatefulSet"),
)
KINDS: dict[str, Any] = {name: next(vars(module)[name] for module in _WIRE if name in vars(module)) for name in _NAMES}
"""Kinds that a cache receives."""


class Faulty(
    Plugin,
    api.JobEnqueueable,
    api.JobOrder,
    api.JobReady,
    api.NodeOrder,
    api.Predicate,
    api.Preemptable,
    api.QueueOrder,
    api.Reclaimable,
    api.UnifiedEvictable,
    api.VictimTasks,
):
    """A plugin of somebody else that raises now and then, at what it is asked about and never by chance."""

    name = "faulty"
    reasons = (Reason("faulty", "faulty", "it is out of order"),)

    def job_enqueueable(self, job: Any) -> Any:
        """Raise at some jobs."""
        if job.key.name.endswith("5"):
            raise ValueError(f"cannot enqueue {job.key.name}")
        return Vote.ABSTAIN

    def queue_order(self, left: Any, right: Any) -> float:
        """Raise at some queues."""
        if left.record.weight > 4:
            raise ValueError(f"cannot weigh {left.record.name}")
        return 0.0

    def job_order(self, jobs: Any) -> Any:
        """Raise where there are many jobs."""
        if len(jobs) > 12:
            raise KeyError("too many jobs")
        return np.zeros(len(jobs))

    def missing(self, job: Any) -> int:
        """Raise at some jobs."""
        if job.key.name.endswith("3"):
            raise ValueError(f"cannot read {job.key.name}")
        return 0

    def predicate(self, task: Any, nodes: Any) -> Any:
        """Answer nonsense of some tasks."""
        return np.zeros(len(nodes) + (float(task.request[0]) == 250.0), dtype=np.int16)

    def node_order(self, task: Any, nodes: Any) -> Any:
        """Answer nonsense of other tasks."""
        return np.full(len(nodes), np.nan if float(task.request[0]) == 1500.0 else 0.0)

    def unified_evictable(self, preemptor: Any, candidates: Any) -> Any:
        """Raise if there are many candidates."""
        return self.preemptable(preemptor, candidates)

    def victim_tasks(self, candidates: Any) -> Any:
        """Raise if there are many candidates, and name nobody."""
        return ~self.preemptable(None, candidates)

    def preemptable(self, preemptor: Any, candidates: Any) -> Any:
        """Raise if there are many candidates."""
        if len(candidates) > 9:
            raise RuntimeError("too many candidates")
        return np.ones(len(candidates), dtype=bool)

    def reclaimable(self, preemptor: Any, candidates: Any) -> Any:
        """Answer nonsense if there are many candidates."""
        return np.ones(min(len(candidates), 9), dtype=bool)


POLICIES = {**PLUGINS, Faulty.name: Faulty}
"""All plugins, and one that fails."""


def parts(cache: Any) -> tuple[Any, Any, Any]:
    """Return the parts of a cache that assume binds, evictions and nominations."""
    if hasattr(cache, "binds"):
        return cache.binds, cache.evictions, cache.nominations
    binds = SimpleNamespace(  # version 0.1.0
        assume=cache.assume, sent=cache.sent, acknowledged=cache.bound, failed=cache.bind_failed
    )
    evictions = SimpleNamespace(
        objection=cache.objection,
        assume=cache.assume_evicted,
        acknowledged=cache.evicted,
        failed=cache.eviction_failed,
    )
    return binds, evictions, SimpleNamespace(assume=cache.nominate)
