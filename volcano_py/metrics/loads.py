"""Whether the loads of nodes are known, and since when."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class LoadMetrics:
    """Questions for loads of nodes, by what came of them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        rounds = Counter(
            "volcano_py_node_load_rounds_total",
            "Questions for the loads of all nodes: answered or failed.",
            ["result"],
            registry=registry,
        )
        self._answered = rounds.labels("answered")
        self._failed = rounds.labels("failed")
        self._at = Gauge(
            "volcano_py_node_load_time_seconds", "When loads were last measured, Unix seconds.", registry=registry
        )
        self._nodes = Gauge("volcano_py_node_load_nodes", "Nodes whose load was known then.", registry=registry)

    def answered(self, now: float, nodes: int) -> None:
        """Count a round that was answered."""
        self._answered.inc()
        self._at.set(now)
        self._nodes.set(nodes)

    def failed(self) -> None:
        """Count a round that was not."""
        self._failed.inc()
