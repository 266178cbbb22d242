"""A plugin that answers every question harmlessly."""

from collections.abc import Callable
from typing import Any

import numpy as np

from volcano_py.framework.contract import (
    POINTS,
    NormalizedScore,
    Normalizer,
    Plugin,
    SeesEvictions,
    Vote,
)
from volcano_py.model.rejections import Reason

TOO_SMALL = Reason("all", "too-small", "the node is too small")


class NobodyElse:
    """An inter-pod filter and scores that change nothing."""

    own_pods_matter = False

    def __init__(self, n: int) -> None:
        self._allowed, self._none = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)

    def allowed(self) -> Any:
        return self._allowed

    def unresolvable(self) -> Any:
        return self._none

    def scores(self, group: Any) -> Any:
        return np.zeros(len(group))


def _per_second(self: Any, one: Any, other: Any) -> Any:
    return np.zeros(len(other))


def _verdicts(self: Any, one: Any, nodes: Any) -> Any:
    return np.zeros(len(nodes), dtype=np.int16)


def _everybody(self: Any, preemptor: Any, candidates: Any) -> Any:
    return np.ones(len(candidates), dtype=bool)


def _raw(shape: Any, nodes: Any) -> Any:
    return np.zeros(len(nodes))


HARMLESS: dict[str, Callable[..., Any]] = {
    "job_order": lambda self, jobs: np.zeros(len(jobs)),
    "task_order": lambda self, tasks: np.zeros(len(tasks.status)),
    "queue_order": lambda self, left, right: 0,
    "namespace_order": _per_second,
    "job_valid": lambda self, job: None,
    "job_enqueueable": lambda self, job: Vote.ABSTAIN,
    "job_enqueued": lambda self, job: None,
    "missing": lambda self, job: 0,
    "job_pipelined": lambda self, job: Vote.ABSTAIN,
    "overused": lambda self, queue: False,
    "allocatable": lambda self, queue, task, wanted: wanted,
    "static_predicate": _verdicts,
    "predicate": _verdicts,
    "inter_pod_filter": lambda self, task: NobodyElse(self.n_nodes),
    "node_order": _per_second,
    "normalized_orders": lambda self: [NormalizedScore("one", Normalizer.HIGHEST_IS_BEST, 1.0, lambda shape: (), _raw)],
    "inter_pod_scores": lambda self, task: NobodyElse(self.n_nodes),
    "most_domains": lambda self: 3,
    "domain_order": _per_second,
    "leaf_order": lambda self, task: np.zeros(self.n_nodes),
    "near_order": lambda self, part, domains, begun, counts, group: np.zeros(len(group)),
    "placed": lambda self, job_row, task, tasks, nodes: None,
    "freed": lambda self, job_row, task, tasks, nodes: None,
    "job_starving": lambda self, job: True,
    "preemptable": _everybody,
    "reclaimable": _everybody,
    "unified_evictable": _everybody,
    "victim_tasks": lambda self, candidates: np.ones(len(candidates), dtype=bool),
    "protected": lambda self, preemptor, candidates: np.zeros(len(candidates), dtype=bool),
    "preemptive": lambda self, queue, tasks: True,
    "victim_queue_order": lambda self, left, right, preemptor: 0,
}


def _open(self: Any, ssn: Any) -> None:
    self.n_nodes = len(ssn.nodes)


def answering(**instead: Any) -> type[Plugin]:
    """Return a plugin that answers every question harmlessly, except where it is told otherwise."""
    body = {"name": "all", "reasons": (TOO_SMALL,), "static_reasons": (TOO_SMALL,), "on_session_open": _open}
    bases = [point for point in POINTS if point is not SeesEvictions]
    return type("All", (Plugin, *bases), {**body, **HARMLESS, **instead})
