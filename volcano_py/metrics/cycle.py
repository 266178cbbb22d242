"""Metrics of scheduling cycles: durations, results and waiting jobs."""

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from volcano_py.metrics.buckets import exponential
from volcano_py.metrics.series import RoundsGauge, SeriesGauge

_STEP: Final = 2000  # jobs: about 1 ms


class CycleMetrics:
    """Durations of cycles, sessions, actions and plugins, and counts of tasks."""

    def __init__(self, registry: CollectorRegistry) -> None:
        wide = exponential(1, 5000, 20)
        self._cycle = Histogram(
            "volcano_e2e_scheduling_latency_milliseconds", "Duration of a cycle.", buckets=wide, registry=registry
        )
        self._open = Histogram(
            "volcano_open_session_duration_milliseconds",
            "Duration of the snapshot and of opening the plugins.",
            buckets=wide,
            registry=registry,
        )
        self._action = Histogram(
            "volcano_action_scheduling_latency_milliseconds",
            "Duration of one action.",
            ["action"],
            buckets=exponential(1, 2000, 20),
            registry=registry,
        )
        self._plugin = Histogram(
            "volcano_plugin_scheduling_latency_milliseconds",
            "Duration of opening or closing one plugin.",
            ["plugin", "OnSession"],
            buckets=exponential(0.1, 100, 15),
            registry=registry,
        )
        self._attempts = Counter(
            "volcano_schedule_attempts_total",
            "Tasks that cycles placed or left pending.",
            ["result"],
            registry=registry,
        )
        self._scheduled = self._attempts.labels("scheduled")
        self._unscheduled = self._attempts.labels("unschedulable")
        self._cycles = Counter("volcano_py_cycles_total", "Cycles by result.", ["result"], registry=registry)
        self._ended = self._cycles.labels("ended")
        self._failed = self._cycles.labels("failed")
        self._stage = Histogram(
            "volcano_py_cycle_stage_seconds",
            "Duration of a stage of a cycle: snapshot, open, each action, close.",
            ["stage"],
            buckets=exponential(0.0001, 10, 16),
            registry=registry,
        )
        self._plugin_failures = Counter(
            "volcano_py_plugin_failures_total", "Plugins that raised or gave an invalid answer.", registry=registry
        )
        self._slow_plugins = Counter(
            "volcano_py_plugin_slow_cycles_total",
            "Cycles in which a plugin took longer than allowed.",
            ["plugin"],
            registry=registry,
        )

    def ended(self, seconds: float, placed: int, left_pending: int) -> None:
        """Count a cycle that completed."""
        self._ended.inc()
        self._cycle.observe(seconds * 1000)
        self._scheduled.inc(placed)
        self._unscheduled.inc(left_pending)

    def failed(self) -> None:
        """Count a cycle that raised."""
        self._failed.inc()

    def opened(self, seconds: float) -> None:
        """Record the duration of opening a session, its snapshot included."""
        self._open.observe(seconds * 1000)

    def stage(self, name: str, seconds: float) -> None:
        """Record the duration of a stage."""
        self._stage.labels(name).observe(seconds)

    def action(self, name: str, seconds: float) -> None:
        """Record the duration of an action."""
        self._action.labels(name).observe(seconds * 1000)

    def plugin(self, name: str, hook: str, seconds: float) -> None:
        """Record the duration of opening or closing a plugin; ``hook`` is OnSessionOpen or OnSessionClose."""
        self._plugin.labels(name, hook).observe(seconds * 1000)

    def slow_plugin(self, name: str) -> None:
        """Count a cycle in which a plugin took longer than allowed."""
        self._slow_plugins.labels(name).inc()

    def plugin_failures(self, count: int) -> None:
        """Count plugins that failed."""
        self._plugin_failures.inc(count)


class VerifyMetrics:
    """What --verify-cycles has found."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._verified = Counter(
            "volcano_py_verified_jobs_total", "Jobs that --verify-cycles has looked at.", registry=registry
        )
        self._differences = Counter(
            "volcano_py_verify_differences_total",
            "Differences between what was kept about these jobs and what was found anew.",
            registry=registry,
        )

    def verified(self, jobs: int, differences: int) -> None:
        """Count jobs that were verified, and what differed."""
        self._verified.inc(jobs)
        self._differences.inc(differences)


class WaitingMetrics:
    """Jobs below their minimum; a job that stops waiting loses its series."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._tasks = SeriesGauge(
            "volcano_unschedule_task_count", "Tasks that a job lacks for its minimum.", ["job_id"], registry
        )
        self._jobs = Gauge("volcano_unschedule_job_count", "Jobs below their minimum.", registry=registry)
        # Shown as a counter, see metrics/exposition.py.
        self._retries = RoundsGauge(
            "volcano_job_retry_counts", "Cycles that left a job below its minimum.", ["job_id"], registry
        )

    def update(self, lacking: Mapping[str, int], jobs: int) -> None:
        """Show the tasks that jobs lack, by name (Volcano's label has no namespace), and how many jobs lack any.

        Only jobs that lack another number than after the last cycle are named, also those that lack none any more.
        """
        for _ in self.updating(lacking, jobs):
            pass

    def updating(self, lacking: Mapping[str, int], jobs: int) -> Iterator[None]:
        """Do the same in steps; between two of them the event loop may run other tasks."""
        self._jobs.set(jobs)
        for number, (name, count) in enumerate(lacking.items()):
            if number % _STEP == 0:
                yield
            if count:
                self._tasks.set((name,), count)
                self._retries.begin((name,))
            else:
                self._tasks.remove((name,))
                self._retries.remove((name,))
        self._retries.end_round()
