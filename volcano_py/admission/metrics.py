"""Metrics of the webhooks. Volcano's own webhook manager has none, so there are no names to keep."""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)

_RESULTS: Final = ("allowed", "refused", "malformed", "failed")
_TURNED_AWAY: Final = ("408", "413", "503", "connections")


class AdmissionMetrics:
    """What is asked, what is answered, and what the answers cost."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reviews = Histogram(
            "volcano_py_admission_review_seconds",
            "Time from a review read to its answer written, by path and result: allowed, refused, malformed or failed.",
            ["path", "result"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._by_result: dict[tuple[str, str], Histogram] = {}  # a look into the histogram costs more than the count
        self._turned_away = Counter(
            "volcano_py_admission_turned_away_total",
            "Requests and connections that ended before a review was read, by reason.",
            ["reason"],
            registry=registry,
        )
        for reason in _TURNED_AWAY:
            self._turned_away.labels(reason)
        self._confirmations = Counter(
            "volcano_py_admission_confirmations_total",
            "Verdicts that rest on other objects, by what confirmed them: watch, or live reads: same or changed.",
            ["result"],
            registry=registry,
        )
        self._live_reads = Counter(
            "volcano_py_admission_live_reads_total", "Live reads by kind.", ["kind"], registry=registry
        )
        self._ready = Gauge("volcano_py_ready", "1 when the webhooks answer.", registry=registry)
        self._leads = Gauge(
            "volcano_py_admission_leader", "1 when this process writes certificates and bundles.", registry=registry
        )
        self._expiry = Gauge(
            "volcano_py_admission_certificate_expiry_timestamp_seconds",
            "When the certificate that is served expires.",
            registry=registry,
        )
        self._loads = Counter(
            "volcano_py_admission_certificate_loads_total",
            "Certificates that were loaded, by result: served or refused.",
            ["result"],
            registry=registry,
        )
        for result in ("served", "refused"):
            self._loads.labels(result)

    def review(self, path: str, result: str, seconds: float) -> None:
        """Count an answered review."""
        found = self._by_result.get((path, result))
        if found is None:
            for one in _RESULTS:  # a counter that begins with 1 has no rate
                self._by_result[path, one] = self._reviews.labels(path, one)
            found = self._by_result[path, result]
        found.observe(seconds)

    def turned_away(self, reason: str) -> None:
        """Count a request or connection that ended before a review was read."""
        self._turned_away.labels(reason).inc()

    def confirmed(self, result: str) -> None:
        """Count a verdict that was confirmed."""
        self._confirmations.labels(result).inc()

    def live_read(self, kind: str) -> None:
        """Count a live read."""
        self._live_reads.labels(kind).inc()

    def certificate(self, expires_at: float) -> None:
        """Note the certificate that is served now."""
        self._expiry.set(expires_at)
        self._loads.labels("served").inc()

    def certificate_refused(self) -> None:
        """Count a certificate that cannot be served."""
        self._loads.labels("refused").inc()

    def watch(self, ready: Callable[[], float], leads: Callable[[], float]) -> None:
        """Read readiness and leadership whenever metrics are asked for."""
        self._ready.set_function(ready)
        self._leads.set_function(leads)
