"""Metrics of the scheduler's knowledge of the cluster: watches, ledger, readiness."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from volcano_py.metrics.buckets import exponential
from volcano_py.metrics.histogram import Histogram
from volcano_py.metrics.unreadable import unreadable_gauge


class StateMetrics:
    """Watches, quarantine, ledger and readiness."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._lag = Histogram(
            "volcano_py_watch_lag_seconds",
            "Time from the arrival of watch events until the cache has them, per batch.",
            ["resource"],
            buckets=exponential(0.0001, 10, 16),
            registry=registry,
        )
        self._events = Counter("volcano_py_watch_events_total", "Changes received.", ["resource"], registry=registry)
        self._relists = Gauge("volcano_py_lists", "Complete lists since the start.", ["resource"], registry=registry)
        self._quarantined = unreadable_gauge(registry)
        self._ledger = Gauge("volcano_py_ledger_entries", "Binds the watch has not confirmed yet.", registry=registry)
        self._oldest = Gauge("volcano_py_ledger_oldest_seconds", "Age of the oldest of these binds.", registry=registry)
        self._expired = Counter(
            "volcano_py_ledger_expired_total",
            "Binds with an overdue confirmation, whose pods were read again.",
            registry=registry,
        )
        self._wakeups = Counter("volcano_py_wakeups_total", "Starts of cycles by cause.", ["why"], registry=registry)
        self._ready = Gauge("volcano_py_ready", "1 when the scheduler is ready.", registry=registry)

    def events(self, resource: str, count: int, lag_seconds: float | None) -> None:
        """Count a batch of changes; listed objects have no lag."""
        self._events.labels(resource).inc(count)
        if lag_seconds is not None:
            self._lag.labels(resource).observe(lag_seconds)

    def watch_resource(self, resource: str, lists: Callable[[], float], quarantined: Callable[[], float]) -> None:
        """Read these numbers of a resource whenever metrics are asked for."""
        self._relists.labels(resource).set_function(lists)
        self._quarantined.labels(resource).set_function(quarantined)

    def watch_ledger(self, size: Callable[[], float], oldest_seconds: Callable[[], float]) -> None:
        """Read these numbers of the ledger whenever metrics are asked for."""
        self._ledger.set_function(size)
        self._oldest.set_function(oldest_seconds)

    def watch_readiness(self, ready: Callable[[], float]) -> None:
        """Read readiness whenever metrics are asked for."""
        self._ready.set_function(ready)

    def expired(self) -> None:
        """Count a bind whose confirmation is overdue."""
        self._expired.inc()

    def woken(self, why: str) -> None:
        """Count the start of a cycle."""
        self._wakeups.labels(why).inc()
