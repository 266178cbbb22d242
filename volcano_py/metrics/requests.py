"""Metrics of requests to the API server, under our names and under those of Go programs."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from volcano_py.metrics.buckets import exponential
from volcano_py.metrics.histogram import Histogram

_METHODS: Final = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
_NO_ANSWER: Final = "<error>"
"""What Go programs show as the status of a request without an answer."""


class RequestMetrics:
    """Requests to the API server; :meth:`observe` has the signature of the client's observer."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "volcano_py_api_requests_total",
            "Requests to the API server; result is the HTTP status, or none without an answer.",
            ["verb", "resource", "result"],
            registry=registry,
        )
        self._seconds = Histogram(
            "volcano_py_api_request_seconds",
            "Duration of requests to the API server; for a watch, the time until it is open.",
            ["verb", "resource"],
            buckets=exponential(0.001, 60, 16),
            registry=registry,
        )
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        registry.register(_AsGoPrograms(self._requests, self._seconds))

    def observe(self, verb: str, resource: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (verb, resource, status)
        children = self._children.get(key)
        if children is None:
            counter = self._requests.labels(verb, resource, str(status) if status else "none")
            children = self._children[key] = (counter, self._seconds.labels(verb, resource))
        children[0].inc()
        children[1].observe(seconds)


class _AsGoPrograms(Collector):
    """The same numbers by HTTP method, as client-go names them: Volcano's dashboards ask for these names.

    They are added up when somebody asks for metrics, so that a request costs nothing more.
    """

    def __init__(self, requests: Counter, seconds: Histogram) -> None:
        self._requests = requests
        self._seconds = seconds

    def describe(self) -> Iterator[Metric]:
        """Yield the names."""
        yield CounterMetricFamily(
            "rest_client_requests", "Requests to the API server by HTTP method and status.", labels=["method", "code"]
        )
        yield HistogramMetricFamily(
            "rest_client_request_duration_seconds", "Duration of requests to the API server.", labels=["verb"]
        )

    def collect(self) -> Iterator[Metric]:
        """Yield the sums over all resources."""
        requests, durations = self.describe()
        counts: defaultdict[tuple[str, str], float] = defaultdict(float)
        for labels, value in _samples(self._requests, "_total"):
            code = labels["result"]
            counts[_method(labels), _NO_ANSWER if code == "none" else code] += value
        for (method, code), count in sorted(counts.items()):
            requests.add_sample("rest_client_requests_total", {"method": method, "code": code}, count)
        yield requests
        for suffix in ("_bucket", "_count", "_sum"):
            sums: defaultdict[tuple[str, ...], float] = defaultdict(float)
            for labels, value in _samples(self._seconds, suffix):
                sums[_method(labels), *([labels["le"]] if "le" in labels else [])] += value
            for (method, *bound), total in sums.items():
                shown = {"verb": method, **({"le": bound[0]} if bound else {})}
                durations.add_sample(f"rest_client_request_duration_seconds{suffix}", shown, total)
        yield durations


def _samples(metric: Counter | Histogram, suffix: str) -> Iterator[tuple[dict[str, str], float]]:
    for family in metric.collect():
        for sample in family.samples:
            if sample.name.endswith(suffix):
                yield sample.labels, sample.value


def _method(labels: dict[str, str]) -> str:
    return _METHODS.get(labels["verb"], "GET")
