"""Metrics of the measured loads of nodes."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class LoadMetrics:
    """Queries for the loads of nodes, by result."""

    def __init__(self, registry: CollectorRegistry) -> None:
        rounds = Counter(
            "volcano_py_node_load_rounds_total",
            "Queries for the loads of all nodes by result: answered or failed.",
            ["result"],
            registry=registry,
        )
        self._answered = rounds.labels("answered")
        self._failed = rounds.labels("failed")
        self._at = Gauge(
            "volcano_py_node_load_time_seconds", "Time of the last measurement in Unix seconds.", registry=registry
        )
        self._nodes = Gauge(
            "volcano_py_node_load_nodes", "Nodes with a load in the last measurement.", registry=registry
        )

    def answered(self, now: float, nodes: int) -> None:
        """Count a query that was answered."""
        self._answered.inc()
        self._at.set(now)
        self._nodes.set(nodes)

    def failed(self) -> None:
        """Count a query that failed."""
        self._failed.inc()
