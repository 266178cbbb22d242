"""Metrics as Prometheus reads them."""

from typing import Final

from prometheus_client import CollectorRegistry, generate_latest

COUNTERS_WITHOUT_TOTAL: Final = (
    "volcano_job_retry_counts",
    "volcano_total_preemption_attempts",
    "volcano_job_completed_phase_count",
    "volcano_job_failed_phase_count",
)
"""Counters of Volcano without the suffix that the library adds to every counter; they are therefore kept as gauges."""


def exposition(registry: CollectorRegistry) -> bytes:
    """Return the metrics of a registry as text, each with the type it has in Volcano."""
    text = generate_latest(registry)
    for name in COUNTERS_WITHOUT_TOTAL:
        text = text.replace(f"# TYPE {name} gauge\n".encode(), f"# TYPE {name} counter\n".encode())
    return text
