"""Metrics of the controllers."""

from collections.abc import Callable, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge

from volcano_py.api import keys
from volcano_py.controllers.job import phases
from volcano_py.metrics.buckets import exponential
from volcano_py.metrics.histogram import Histogram

_PHASES = (keys.PHASE_INQUEUE, keys.PHASE_PENDING, keys.PHASE_RUNNING, keys.PHASE_UNKNOWN, keys.PHASE_COMPLETED)
_RESULTS = ("done", "retried", "given_up", "refused", "fault")
_ALL_FAIL = 20
"""Faults without a turn between them that was done, after which a controller counts as broken.

An object has 15 attempts, so it takes more than one object, or minutes in which nothing else happens.
"""
_FLOW_PHASES = ("Succeed", "Failed")
_JOB_PHASES = ("Completed", "Failed")


class ControllerMetrics:
    """Work queues, and PodGroups by queue and phase under Volcano's names."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._faults: dict[str, int] = {}  # of each controller since its last turn that was done
        self._turns = Counter(
            "volcano_py_controller_turns_total",
            "Turns of a controller's work queue by result.",
            ["controller", "result"],
            registry=registry,
        )
        self._backlog = Gauge(
            "volcano_py_controller_backlog",
            "Names whose turn in a controller's work queue is due or under way.",
            ["controller"],
            registry=registry,
        )
        self._ready = Gauge("volcano_py_ready", "1 when the controllers are ready.", registry=registry)
        groups = "volcano_queue_pod_group_{}_count"
        self._groups = _by_phase(_PHASES, groups, "PodGroups of a queue in phase {}.", ["queue_name"], registry)

        jobs = "volcano_job_{}_phase_count"
        self._jobs = _by_phase(
            _JOB_PHASES, jobs, "Jobs that came into phase {}, 1 for each.", ["job_name", "queue_name"], registry
        )
        entered = Counter("volcano_py_job_phases_total", "Jobs that came into a phase.", ["phase"], registry=registry)
        self._entered = {phase: entered.labels(phase) for phase in phases.SUCCESSORS if phase}
        self._job_labels: dict[str, set[tuple[str, str]]] = {}
        self._creation = Histogram(
            "volcano_controller_job_to_pod_creation_latency_milliseconds",
            "Time from the creation of a job to the creation of each of its pods.",
            buckets=exponential(50, 60_000, 30),
            registry=registry,
        )
        flows = "volcano_jobflow_{}_phase_count"
        self._flows = _by_phase(
            _FLOW_PHASES, flows, "Job flows that came into phase {}.", ["jobflow_namespace"], registry
        )
        self._flow_namespaces: set[tuple[str, str]] = set()  # (phase, namespace) with a series

    def turn(self, controller: str, result: str) -> None:
        """Count an attempt to reconcile: done, retried or given_up; a fault of ours, or a name that did not fit."""
        self._turns.labels(controller, result).inc()
        if result == "fault":
            self._faults[controller] = self._faults.get(controller, 0) + 1
        elif result == "done":
            self._faults.pop(controller, None)

    def broken(self) -> list[str]:
        """Return one reason per controller in which nothing happens but faults of ours, for a readiness probe."""
        return [
            f"{controller}: its last {faults} turns failed because of a fault of ours; the log has the tracebacks"
            for controller, faults in self._faults.items()
            if faults >= _ALL_FAIL
        ]

    def watch_backlog(self, controller: str, backlog: Callable[[], float]) -> None:
        """Read the backlog of a controller whenever metrics are asked for."""
        self._backlog.labels(controller).set_function(backlog)
        for result in _RESULTS:  # a counter that begins with 1 has no rate
            self._turns.labels(controller, result)

    def watch_readiness(self, ready: Callable[[], float]) -> None:
        """Read readiness whenever metrics are asked for."""
        self._ready.set_function(ready)

    def queue(self, name: str, counts: Mapping[str, int]) -> None:
        """Set how many PodGroups a queue has, by phase."""
        for phase, gauge in self._groups.items():
            gauge.labels(name).set(counts.get(phase, 0))

    def queue_gone(self, name: str) -> None:
        """Forget a queue."""
        for gauge in self._groups.values():
            gauge.remove(name)

    def job_phase(self, job: str, queue: str, phase: str) -> None:
        """Count that a job (namespace/name) entered a phase."""
        self._entered[phase].inc()
        if phase in self._jobs:
            self._jobs[phase].labels(job, queue).inc()
            self._job_labels.setdefault(job, set()).add((phase, queue))

    def job_gone(self, job: str) -> None:
        """Forget a job."""
        for phase, queue in self._job_labels.pop(job, ()):
            self._jobs[phase].remove(job, queue)

    def pod_created(self, seconds: float) -> None:
        """Record how long after the creation of its job a pod was created."""
        self._creation.observe(seconds * 1000)

    def flow_phase(self, namespace: str, phase: str) -> None:
        """Count that a job flow came into a phase."""
        if phase in self._flows:
            self._flows[phase].labels(namespace).inc()
            self._flow_namespaces.add((phase, namespace))

    def flows_gone(self, namespace: str) -> None:
        """Forget a namespace in which no job flow is left."""
        for phase, gauge in self._flows.items():
            if (phase, namespace) in self._flow_namespaces:
                self._flow_namespaces.discard((phase, namespace))
                gauge.remove(namespace)


def _by_phase(
    names: Sequence[str], metric: str, text: str, labels: list[str], registry: CollectorRegistry
) -> dict[str, Gauge]:
    """Return a metric for each phase, as Volcano has it, where one with a label would do."""
    return {
        phase: Gauge(metric.format(phase.lower()), text.format(phase), labels, registry=registry) for phase in names
    }
