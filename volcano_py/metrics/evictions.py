"""Metrics of evictions: plans, victims and results."""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge

_ACTIONS: Final = ("preempt", "reclaim", "gangpreempt", "gangreclaim", "shuffle")


class EvictionMetrics:
    """Evictions by result, and the plans they belong to."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._victims = Gauge("volcano_pod_preemption_victims", "Victims of the last plan to evict.", registry=registry)
        # Shown as a counter, see metrics/exposition.py.
        self._attempts = Gauge(
            "volcano_total_preemption_attempts", "Nodes on which evictions were simulated.", registry=registry
        )
        self._transactions = Counter(
            "volcano_eviction_transactions_total", "Plans with at least one eviction.", ["action"], registry=registry
        )
        for action in _ACTIONS:  # a counter that begins with 1 has no rate
            self._transactions.labels(action)
        results = Counter("volcano_py_evictions_total", "Evictions by result.", ["result"], registry=registry)
        self._evicted = results.labels("evicted")
        self._failed = results.labels("failed")
        self._refused = results.labels("refused")  # the cluster changed between decision and eviction
        self._unknown = results.labels("unknown")  # given up without knowing; the ledger finds out
        self._retries = Counter("volcano_py_eviction_retries_total", "Retries of evictions.", registry=registry)
        self._waiting = Gauge("volcano_py_evictions_waiting", "Evictions that have not ended.", registry=registry)
        self._assumed = Gauge(
            "volcano_py_evictions_assumed",
            "Pods that count as leaving but that the watch still shows as staying.",
            registry=registry,
        )

    def watch_backlog(self, waiting: Callable[[], float]) -> None:
        """Read this number whenever metrics are asked for."""
        self._waiting.set_function(waiting)

    def watch_assumed(self, assumed: Callable[[], float]) -> None:
        """Read this number whenever metrics are asked for."""
        self._assumed.set_function(assumed)

    def planned(self, action: str, victims: int) -> None:
        """Count a plan that is carried out."""
        self._transactions.labels(action).inc()
        self._victims.set(victims)

    def attempted(self, nodes: int) -> None:
        """Count nodes on which an action simulated evictions."""
        self._attempts.inc(nodes)

    def refused(self, victims: int) -> None:
        """Count evictions that are dropped because their plan is no longer valid."""
        self._refused.inc(victims)

    def evicted(self) -> None:
        """Count an eviction that the API server has accepted."""
        self._evicted.inc()

    def failed(self) -> None:
        """Count an eviction given up."""
        self._failed.inc()

    def unknown(self) -> None:
        """Count an eviction given up without knowing whether it took effect."""
        self._unknown.inc()

    def retried(self) -> None:
        """Count another attempt."""
        self._retries.inc()
