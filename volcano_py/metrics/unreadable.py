"""The metric of objects that cannot be read; all three programs have it."""

from prometheus_client import CollectorRegistry, Gauge


def unreadable_gauge(registry: CollectorRegistry) -> Gauge:
    """Return the gauge of objects that are left out, by resource; its numbers are read when metrics are asked for."""
    return Gauge(
        "volcano_py_quarantined_objects",
        "Objects left out because they cannot be read.",
        ["resource"],
        registry=registry,
    )
