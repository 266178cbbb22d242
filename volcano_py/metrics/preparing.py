"""Metrics of what is done before a bind: promises of volumes, how long they take, and what becomes of them."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from volcano_py.metrics.buckets import exponential
from volcano_py.metrics.histogram import Histogram


class PrepareMetrics:
    """Steps by kind and result, durations, and promises that were taken back."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._steps = Counter(
            "volcano_py_prepare_steps_total",
            "Steps that prepare binds, by kind and result.",
            ["step", "result"],
            registry=registry,
        )
        self._seconds = Histogram(
            "volcano_py_prepare_seconds",
            "Time from the decision of a bind with steps to the end of its preparation, by result.",
            ["result"],
            buckets=exponential(0.01, 600, 20),
            registry=registry,
        )
        self._undone = Counter(
            "volcano_py_promises_undone_total",
            "Promises of volumes that were to be undone, by result.",
            ["result"],
            registry=registry,
        )
        self._recovered = Counter(
            "volcano_py_promises_recovered_total",
            "Promises of volumes that belonged to no bind and were undone.",
            registry=registry,
        )
        self._preparing = Gauge(
            "volcano_py_binds_preparing",
            "Binds that wait for their steps or for those of their gang.",
            registry=registry,
        )
        self._requests = Gauge(
            "volcano_py_prepare_backlog", "Binds with steps that are still to be requested.", registry=registry
        )
        self._undoing = Gauge("volcano_py_undo_backlog", "Binds and promises that are being undone.", registry=registry)

    def watch(
        self, preparing: Callable[[], float], requests: Callable[[], float], undoing: Callable[[], float]
    ) -> None:
        """Read these numbers whenever metrics are asked for."""
        self._preparing.set_function(preparing)
        self._requests.set_function(requests)
        self._undoing.set_function(undoing)

    def step(self, kind: str, result: str) -> None:
        """Count a step that was promised, was there already, is done, was refused or failed; or that is retried."""
        self._steps.labels(kind, result).inc()

    def ended(self, result: str, seconds: float) -> None:
        """Record how long the preparation of a bind took: prepared, failed or withdrawn."""
        self._seconds.labels(result).observe(seconds)

    def undone(self, result: str) -> None:
        """Count a promise that was to be undone: undone, kept (its claim is bound, or nothing stood) or given_up."""
        self._undone.labels(result).inc()

    def recovered(self) -> None:
        """Count a promise without a bind that was undone."""
        self._recovered.inc()
