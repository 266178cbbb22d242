"""Metrics as Prometheus reads them."""

from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

COUNTERS_WITHOUT_TOTAL: Final = (
    "volcano_job_retry_counts",
    "volcano_total_preemption_attempts",
    "volcano_job_completed_phase_count",
    "volcano_job_failed_phase_count",
    "volcano_jobflow_succeed_phase_count",
    "volcano_jobflow_failed_phase_count",
)
"""Counters of Volcano without the suffix that the library adds to every counter; they are therefore kept as gauges."""

_SERIES: Final = 150  # of one piece: about 3 ms


def exposition(registry: CollectorRegistry) -> Iterator[bytes]:
    """Yield the metrics of a registry as text, each with the type it has in Volcano.

    With thousands of jobs the text takes long. Between two pieces, the event loop may run other tasks.
    """
    for family in registry.collect():
        samples = family.samples
        # Samples of a gauge are lines of their own; those of other types are few, and some of them belong together.
        size = _SERIES if family.type == "gauge" else max(len(samples), 1)
        yield _text(family, samples[:size])
        for start in range(size, len(samples), size):
            _help, _type, lines = _text(family, samples[start : start + size]).split(b"\n", 2)
            yield lines


def _text(family: Metric, samples: list[Sample]) -> bytes:
    family.samples = samples
    text = generate_latest(_One(family))
    if family.name in COUNTERS_WITHOUT_TOTAL:
        text = text.replace(f"# TYPE {family.name} gauge\n".encode(), f"# TYPE {family.name} counter\n".encode(), 1)
    return text


class _One(Collector):
    """A collector of one metric."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        """Yield it."""
        yield self._family
