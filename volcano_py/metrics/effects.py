"""Metrics of requests to the API server: binds, other writes, and writes that were dropped."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from volcano_py.metrics.buckets import exponential
from volcano_py.metrics.histogram import Histogram


class BindMetrics:
    """Binds: results, durations, and the number under way."""

    def __init__(self, registry: CollectorRegistry) -> None:
        latency = Histogram(
            "volcano_task_scheduling_latency_milliseconds",
            "Time from the creation of a pod to a stage of its scheduling.",
            ["stage"],
            buckets=exponential(50, 60000, 30),
            registry=registry,
        )
        self._watched = latency.labels("Watched")
        self._assumed = latency.labels("Assumed")
        self._prepared = latency.labels("PreBound")
        self._since_creation = latency.labels("Bound")
        self._job_latency = Histogram(
            "volcano_e2e_job_scheduling_latency_milliseconds",
            "Time from the creation of a PodGroup to the placement of each of its tasks.",
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
        self._finding = stages.labels("Predicate")
        self._scoring = stages.labels("Scoring")
        self._preparation = stages.labels("PreBind")
        self._request = stages.labels("Bind")
        results = Counter("volcano_py_binds_total", "Binds by result.", ["result"], registry=registry)
        self._bound = results.labels("bound")
        self._adopted = results.labels("adopted")  # found bound to our node after an answer was lost
        self._failed = results.labels("failed")
        self._refused = results.labels("refused")  # the cluster changed between decision and bind
        self._unknown = results.labels("unknown")  # given up without an answer; the ledger finds out
        self._retries = Counter(
            "volcano_py_bind_retries_total", "Retries of binds by reason.", ["why"], registry=registry
        )
        self._partial = Counter(
            "volcano_py_gangs_bound_in_part_total", "Gangs with some failed binds.", registry=registry
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
        """Record how long after its creation the watch has shown a pending pod."""
        self._watched.observe(seconds * 1000)

    def assumed(self, seconds_since_pod: float, seconds_since_group: float) -> None:
        """Record how long after the creation of its pod and its PodGroup the cache has assumed a bind."""
        self._assumed.observe(seconds_since_pod * 1000)
        self._job_latency.observe(seconds_since_group * 1000)

    def ranked(self, finding_s: float, scoring_s: float | None) -> None:
        """Record a look at all nodes for a kind of task: the time to find feasible nodes, and to score them if any."""
        self._finding.observe(finding_s * 1000)
        if scoring_s is not None:
            self._scoring.observe(scoring_s * 1000)

    def prepared(self, seconds_since_pod: float, seconds: float) -> None:
        """Record that a bind may be sent: the age of its pod, and how long its preparation took (0: it needs none)."""
        self._prepared.observe(seconds_since_pod * 1000)
        self._preparation.observe(seconds * 1000)

    def refused(self) -> None:
        """Count a bind that the cache has refused."""
        self._refused.inc()

    def bound(self, request_seconds: float) -> None:
        """Count a bind that the API server confirmed."""
        self._bound.inc()
        self._request.observe(request_seconds * 1000)

    def bound_since_creation(self, seconds: float) -> None:
        """Record how long a pod waited from its creation to its bind."""
        self._since_creation.observe(seconds * 1000)

    def adopted(self) -> None:
        """Count a bind whose answer was lost and that reading the pod confirmed."""
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
        """Count a gang with some failed binds."""
        self._partial.inc()


class WriteQueueMetrics:
    """The write queues for statuses, conditions and events: their backlogs and results.

    The metrics and their label keep the older name ``lane``.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ended = Counter(
            "volcano_py_lane_writes_total", "Entries of a write queue by result.", ["lane", "result"], registry=registry
        )
        self._backlog = Gauge(
            "volcano_py_lane_backlog", "Entries that wait in a write queue.", ["lane"], registry=registry
        )
        self._dropped_events = Counter(
            "volcano_py_events_dropped_total",
            "Events that were dropped because too many waited.",
            registry=registry,
        )
        self._children: dict[tuple[str, str], Counter] = {}

    def watch(self, queue: str, backlog: Callable[[], float]) -> None:
        """Read the backlog of a write queue whenever metrics are asked for."""
        self._backlog.labels(queue).set_function(backlog)

    def count(self, queue: str, result: str) -> None:
        """Count an entry: written, unchanged, merged, dropped, retried, failed or obsolete."""
        child = self._children.get((queue, result))
        if child is None:
            child = self._children[queue, result] = self._ended.labels(queue, result)
        child.inc()

    def dropped_event(self) -> None:
        """Count a dropped event."""
        self._dropped_events.inc()
