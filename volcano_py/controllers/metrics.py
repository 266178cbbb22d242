"""Metrics of the controllers."""

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from volcano_py.api import keys

_PHASES = (keys.PHASE_INQUEUE, keys.PHASE_PENDING, keys.PHASE_RUNNING, keys.PHASE_UNKNOWN, keys.PHASE_COMPLETED)


class ControllerMetrics:
    """Work queues, and PodGroups by queue and phase under Volcano's names."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._turns = Counter(
            "volcano_py_controller_turns_total",
            "Turns of a controller's work queue by result.",
            ["controller", "result"],
            registry=registry,
        )
        self._backlog = Gauge(
            "volcano_py_controller_backlog",
            "Names that wait in a controller's work queue or are worked on.",
            ["controller"],
            registry=registry,
        )
        self._ready = Gauge("volcano_py_ready", "1 when the controllers are ready.", registry=registry)
        self._groups = {
            phase: Gauge(
                f"volcano_queue_pod_group_{phase.lower()}_count",
                f"PodGroups of a queue in phase {phase}.",
                ["queue_name"],
                registry=registry,
            )
            for phase in _PHASES
        }

        job_labels = ["job_name", "queue_name"]
        self._jobs = {
            "Completed": Gauge(
                "volcano_job_completed_phase_count", "1 for a job that has completed.", job_labels, registry=registry
            ),
            "Failed": Gauge(
                "volcano_job_failed_phase_count", "1 for a job that has failed.", job_labels, registry=registry
            ),
        }
        self._job_labels: dict[str, set[tuple[str, str]]] = {}
        self._creation = Histogram(
            "volcano_controller_job_to_pod_creation_latency_milliseconds",
            "Time that the creation of the pods of a job took, by batch.",
            buckets=[50 * (60_000 / 50) ** (step / 29) for step in range(30)],
            registry=registry,
        )

    def turn(self, controller: str, result: str) -> None:
        """Count an attempt to reconcile: done, retried or given_up; or a name that a full work queue refused."""
        self._turns.labels(controller, result).inc()

    def watch_backlog(self, controller: str, backlog: Callable[[], float]) -> None:
        """Read the backlog of a controller whenever metrics are asked for."""
        self._backlog.labels(controller).set_function(backlog)

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
        if phase in self._jobs:
            self._jobs[phase].labels(job, queue).inc()
            self._job_labels.setdefault(job, set()).add((phase, queue))

    def job_gone(self, job: str) -> None:
        """Forget a job."""
        for phase, queue in self._job_labels.pop(job, ()):
            self._jobs[phase].remove(job, queue)

    def pods_created(self, seconds: float) -> None:
        """Count how long a batch of pods of a job took."""
        self._creation.observe(seconds * 1000)
