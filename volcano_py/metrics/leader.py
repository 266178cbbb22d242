"""Metrics of leader election."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Gauge


class LeaderMetrics:
    """Whether this process leads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._leads = Gauge(
            "volcano_py_leader",
            "1 when this process may act: it holds the lease, or there is no election.",
            registry=registry,
        )

    def watch(self, leads: Callable[[], float]) -> None:
        """Read it whenever metrics are asked for."""
        self._leads.set_function(leads)
