"""What the scheduler does to the API server: binds, other writes, and what it had to leave out."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from volcano_py.metrics.buckets import exponential
from volcano_py.metrics.histogram import Histogram


class BindMetrics:
    """Binds by how they ended, how long they took, and how many are on their way."""

    def __init__(self, registry: CollectorRegistry) -> None:
        latency = Histogram(
            "volcano_task_scheduling_latency_milliseconds",
            "From the creation of a pod to a stage of its scheduling.",
            ["stage"],
            buckets=exponential(50, 60000, 30),
            registry=registry,
        )
        self._watched = latency.labels("Watched")
        self._assumed = latency.labels("Assumed")
        self._since_creation = latency.labels("Bound")
        self._job_latency = Histogram(
            "volcano_e2e_job_scheduling_latency_milliseconds",
            "From the creation of a PodGroup to the placing of each of its tasks.",
            buckets=exponential(100, 120000, 30),
            registry=registry,
        )
        stages = Histogram(
            "volcano_scheduling_stage_duration_milliseconds",
            "Duration of a stage of scheduling.",
            ["stage"],
            buckets=exponential(0.1, 500, 20),
            registry=registry,
        )
        self._request = stages.labels("Bind")
        results = Counter("volcano_py_binds_total", "Binds by result.", ["result"], registry=registry)
        self._bound = results.labels("bound")
        self._adopted = results.labels("adopted")  # found bound to our node after an answer was lost
        self._failed = results.labels("failed")
        self._refused = results.labels("refused")  # the cluster changed between decision and bind
        self._unknown = results.labels("unknown")  # given up without knowing; the ledger finds out
        self._retries = Counter(
            "volcano_py_bind_retries_total", "Binds tried again, by why.", ["why"], registry=registry
        )
        self._partial = Counter(
            "volcano_py_gangs_bound_in_part_total", "Gangs of which some binds failed.", registry=registry
        )
        self._queued = Gauge("volcano_py_binds_queued", "Binds waiting for a connection or a retry.", registry=registry)
        self._in_flight = Gauge("volcano_py_binds_in_flight", "Binds sent and not answered.", registry=registry)
        self._limit = Gauge("volcano_py_bind_limit", "Binds that may be in flight now.", registry=registry)

    def watch(self, queued: Callable[[], float], in_flight: Callable[[], float], limit: Callable[[], float]) -> None:
        """Read these numbers whenever metrics are asked for."""
        self._queued.set_function(queued)
        self._in_flight.set_function(in_flight)
        self._limit.set_function(limit)

    def watched(self, seconds: float) -> None:
        """Count a pending pod that the watch has shown, so long after its creation."""
        self._watched.observe(seconds * 1000)

    def assumed(self, seconds_since_pod: float, seconds_since_group: float) -> None:
        """Count a bind that the cache has taken in, so long after its pod and its PodGroup were created."""
        self._assumed.observe(seconds_since_pod * 1000)
        self._job_latency.observe(seconds_since_group * 1000)

    def refused(self) -> None:
        """Count a bind that the cache has not taken in."""
        self._refused.inc()

    def bound(self, request_seconds: float) -> None:
        """Count a bind that the API server confirmed."""
        self._bound.inc()
        self._request.observe(request_seconds * 1000)

    def bound_since_creation(self, seconds: float) -> None:
        """Count how long a pod waited from its creation to its bind."""
        self._since_creation.observe(seconds * 1000)

    def adopted(self) -> None:
        """Count a bind whose answer was lost and which a look at the pod confirmed."""
        self._adopted.inc()

    def failed(self) -> None:
        """Count a bind given up."""
        self._failed.inc()

    def unknown(self) -> None:
        """Count a bind given up without knowing whether it took effect."""
        self._unknown.inc()

    def retried(self, why: str) -> None:
        """Count another attempt."""
        self._retries.labels(why).inc()

    def gang_in_part(self) -> None:
        """Count a gang of which some binds failed."""
        self._partial.inc()


class WriteQueueMetrics:
    """What waits in the lanes for statuses, conditions and events, and what became of it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ended = Counter(
            "volcano_py_lane_writes_total", "Entries of a lane by result.", ["lane", "result"], registry=registry
        )
        self._backlog = Gauge("volcano_py_lane_backlog", "Entries waiting in a lane.", ["lane"], registry=registry)
        self._dropped_events = Counter(
            "volcano_py_events_dropped_total",
            "Events that were not written because too many waited.",
            registry=registry,
        )
        self._children: dict[tuple[str, str], Counter] = {}

    def watch(self, lane: str, backlog: Callable[[], float]) -> None:
        """Read the backlog of a lane whenever metrics are asked for."""
        self._backlog.labels(lane).set_function(backlog)

    def count(self, lane: str, result: str) -> None:
        """Count an entry: written, unchanged, merged, dropped, retried, failed or obsolete."""
        child = self._children.get((lane, result))
        if child is None:
            child = self._children[lane, result] = self._ended.labels(lane, result)
        child.inc()

    def dropped_event(self) -> None:
        """Count an event left out."""
        self._dropped_events.inc()


class RequestMetrics:
    """Every request to the API server; :meth:`observe` has the form of the client's observer."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "volcano_py_api_requests_total",
            "Requests to the API server; result is the HTTP status, or none for no answer.",
            ["verb", "resource", "result"],
            registry=registry,
        )
        self._seconds = Histogram(
            "volcano_py_api_request_seconds",
            "Requests to the API server; of a watch the time until it is open.",
            ["verb", "resource"],
            buckets=exponential(0.001, 60, 16),
            registry=registry,
        )
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def observe(self, verb: str, resource: str, status: int, seconds: float) -> None:
        """Count a request."""
        key = (verb, resource, status)
        children = self._children.get(key)
        if children is None:
            counter = self._requests.labels(verb, resource, str(status) if status else "none")
            children = self._children[key] = (counter, self._seconds.labels(verb, resource))
        children[0].inc()
        children[1].observe(seconds)
