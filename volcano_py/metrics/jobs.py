"""Jobs under Volcano's names: their share of the cluster, and when their tasks were placed."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from prometheus_client import CollectorRegistry

from volcano_py.metrics.series import GivenGauge, SeriesGauge

_LABELS = ["job_name", "queue", "job_namespace"]

Name = tuple[str, str]
"""Namespace and name of a PodGroup."""
N = TypeVar("N", bound=tuple[str, str])


class JobMetrics:
    """Series by job; :meth:`keep` removes those of jobs that are gone."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._share = GivenGauge("volcano_job_share", "Dominant share of a job.", ["job_ns", "job_id"], registry)
        self._duration = SeriesGauge(
            "volcano_e2e_job_scheduling_duration",
            "Milliseconds from the creation of a PodGroup to the placement of its last task.",
            _LABELS,
            registry,
        )
        self._start = SeriesGauge(
            "volcano_e2e_job_scheduling_start_time",
            "When the PodGroup was created, in Unix seconds.",
            _LABELS,
            registry,
        )
        self._last = SeriesGauge(
            "volcano_e2e_job_scheduling_last_time",
            "When its last task was placed, in Unix seconds.",
            _LABELS,
            registry,
        )
        self._queues: dict[Name, str] = {}  # of jobs that have times

    def shares(self, shares: Mapping[N, float]) -> None:
        """Show the shares of jobs; a job that is not named holds nothing."""
        self._share.give(shares)

    def placed(self, name: Name, queue: str, created: float, now: float) -> None:
        """Note that tasks of a job were placed now; both times in Unix seconds."""
        if self._queues.get(name, queue) != queue:
            self._forget_times(name)
        self._queues[name] = queue
        labels = (name[1], queue, name[0])
        self._duration.set(labels, (now - created) * 1000)
        self._start.set(labels, created)
        self._last.set(labels, now)

    def keep(self, exists: Callable[[Name], bool]) -> None:
        """Remove the series of jobs that do not exist any more."""
        self._share.keep(exists)
        for name in [name for name in self._queues if not exists(name)]:
            self._forget_times(name)

    def _forget_times(self, name: Name) -> None:
        labels = (name[1], self._queues.pop(name), name[0])
        for gauge in (self._duration, self._start, self._last):
            gauge.remove(labels)
