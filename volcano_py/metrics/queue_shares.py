"""Allocated, requested and deserved resources of queues, under Volcano's names."""

from collections.abc import Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Gauge

from volcano_py.metrics.series import SeriesGauge

_QUANTITIES: Final = ("allocated", "request", "deserved", "inqueue", "capacity", "real_capacity")


class QueueMetrics:
    """Gauges of queues; a queue that is not reported any more loses its series.

    Scalar resources are in thousandths (pods: in pods), as in Volcano.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str, *more: str) -> SeriesGauge:
            return SeriesGauge(f"volcano_queue_{name}", text, ["queue_name", *more], registry)

        self._cpu = {what: gauge(f"{what}_milli_cpu", f"CPU {what}, thousandths of a core.") for what in _QUANTITIES}
        self._memory = {what: gauge(f"{what}_memory_bytes", f"Memory {what}.") for what in _QUANTITIES}
        self._scalar = {
            what: gauge(f"{what}_scalar_resources", f"Other resources {what}.", "resource") for what in _QUANTITIES
        }
        self._share = gauge("share", "Largest ratio of allocated to deserved over all resources.")
        self._weight = gauge("weight", "Weight of the queue.")
        self._overused = gauge("overused", "1 while the queue has at least what it deserves.")
        self._problems = Gauge(
            "volcano_py_queue_problems",
            "Queues with problems in their specification; the log names them.",
            registry=registry,
        )
        self._plain = (*self._cpu.values(), *self._memory.values(), self._share, self._weight, self._overused)
        self._shown: dict[str, frozenset[tuple[str, str]]] = {}  # queue -> (quantity, resource) of its scalars

    def show(
        self, queue: str, share: float, weight: int | None, overused: bool, amounts: Mapping[str, Mapping[str, float]]
    ) -> None:
        """Show a queue; ``amounts`` maps each quantity of the configuration to amounts by resource."""
        self._share.set((queue,), share)
        if weight is not None:
            self._weight.set((queue,), weight)
        elif queue in self._shown:  # until now, another plugin may have reported it
            self._weight.remove((queue,))
        self._overused.set((queue,), overused)
        scalars: set[tuple[str, str]] = set()
        for what, by_resource in amounts.items():
            self._cpu[what].set((queue,), by_resource.get("cpu", 0.0))
            self._memory[what].set((queue,), by_resource.get("memory", 0.0))
            for resource, amount in by_resource.items():
                if resource not in ("cpu", "memory"):
                    self._scalar[what].set((queue, resource), amount)
                    scalars.add((what, resource))
        before = self._shown.get(queue, frozenset())
        for what in _QUANTITIES if queue in self._shown else ():
            if what not in amounts:
                self._cpu[what].remove((queue,))
                self._memory[what].remove((queue,))
        for what, resource in before - scalars:
            if what in amounts:
                self._scalar[what].set((queue, resource), 0)
                scalars.add((what, resource))
            else:
                self._scalar[what].remove((queue, resource))
        self._shown[queue] = frozenset(scalars)

    def problems(self, count: int) -> None:
        """Show how many queues have problems in their specification."""
        self._problems.set(count)

    def keep_only(self, queues: frozenset[str]) -> None:
        """Drop the series of every other queue."""
        for queue in self._shown.keys() - queues:
            for gauge in self._plain:
                gauge.remove((queue,))
            for what, resource in self._shown.pop(queue):
                self._scalar[what].remove((queue, resource))
