"""Turns the report of a cycle into metrics and log lines."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple

import structlog

from volcano_py.daemon.debug import LastCycle
from volcano_py.daemon.metrics import DaemonMetrics
from volcano_py.daemon.slow_plugins import SlowPlugins
from volcano_py.framework.state.report import CycleReport, JobReport, QueueReport
from volcano_py.model.objects import JobKey
from volcano_py.runtime.clock import Clock
from volcano_py.snapshot.store import ClusterStore

log = structlog.get_logger()

_STAGES_OF_OURS: Final = frozenset({"open", "close"})  # every other duration of a report is that of an action
_HOOKS: Final = {"on_session_open": "OnSessionOpen", "on_session_close": "OnSessionClose"}
"""Hooks that Volcano measures, by its names for them."""
_REPAIR: Final = "correct the plugin, or leave it out of the configuration: jobs that need its answer wait until then"
_REPORT_IT: Final = "a fault of this scheduler: please report it; a restart computes everything again"
_MOST_DIFFERENCES: Final = 5  # log lines for one cycle
_MOST_TEXT: Final = 500  # characters
_STEP: Final = 2000  # jobs
_QUEUES_IN_STEP: Final = 200
_SWEEP_S: Final = 10.0  # how often series of jobs that are gone are removed


class Timing(NamedTuple):
    """How long a cycle took, seen from outside, and why it ran."""

    why: str
    snapshot_s: float
    total_s: float


class CycleReporter:
    """Reports to operators what cycles did."""

    def __init__(
        self,
        metrics: DaemonMetrics,
        store: ClusterStore,
        *,
        clock: Clock,
        queues_hold: Callable[[Mapping[str, Mapping[str, float]]], None] = lambda _: None,
    ) -> None:
        """Take the store, which knows the existing jobs; ``queues_hold`` gets the allocated resources of queues."""
        self._queues_hold = queues_hold
        self._metrics = metrics
        self._store = store
        self._clock = clock
        self._swept_at = clock.monotonic()
        self.last: LastCycle | None = None
        """The cycle that ended last."""
        self._failures: tuple[str, ...] = ()
        self._shown: Mapping[str, QueueReport] = {}  # what metrics show of queues
        self._jobs: Mapping[JobKey, JobReport] = {}  # of the last cycle
        self._lacking: dict[str, int] = {}  # name of jobs -> the tasks that they lack
        self._below_minimum = 0  # jobs that lack tasks
        self._problems: dict[str, str] = {}  # what was wrong with queues in the last cycle
        self._slow = SlowPlugins(metrics.cycles)

    def new_policy(self) -> None:
        """Note that other plugins run from now on, so that their problems are reported again."""
        self._failures = ()
        self._slow.forget()

    def woken(self, why: str) -> None:
        """Count a cycle that begins."""
        self._metrics.state.woken(why)

    def failed(self) -> None:
        """Count a cycle that raised."""
        self._metrics.cycles.failed()

    def ended(self, report: CycleReport, timing: Timing) -> None:
        """Turn a report into metrics, and into one line if the cycle did something."""
        for _ in self.reporting(report, timing):
            pass

    def reporting(self, report: CycleReport, timing: Timing) -> Iterator[None]:
        """Do the same in steps of a few milliseconds; between two of them the event loop may run other tasks."""
        self.last = LastCycle(self._clock.now(), report)
        self._measure(report, timing)
        yield
        yield from self._show_waiting(report.jobs)
        yield from self._show_queues(report)
        self._report_problems(report)
        yield
        self._queues_hold(report.queues_hold)
        self._metrics.jobs.shares(report.job_shares)
        if self._clock.monotonic() - self._swept_at >= _SWEEP_S:
            yield
            self.sweep()
        self._report_failures(report)
        self._report_differences(report)
        did_something = report.tasks_placed or report.jobs_enqueued
        (log.info if did_something else log.debug)(
            "cycle",
            why=timing.why,
            placed=report.tasks_placed,
            jobs=report.jobs_committed,
            enqueued=report.jobs_enqueued,
            pending=report.pending_tasks,
            waiting_jobs=self._below_minimum,
            snapshot_ms=round(timing.snapshot_s * 1000, 2),
            ms=round(timing.total_s * 1000, 2),
        )

    def _show_waiting(self, jobs: Mapping[JobKey, JobReport]) -> Iterator[None]:
        """Show what jobs lack of their minimum. A cycle makes new reports only of jobs that differ."""
        before = self._jobs
        differs = [(key, job) for key, job in jobs.items() if before.get(key) is not job]
        gone = before.keys() - jobs.keys()
        yield
        changed, below = dict[str, int](), self._below_minimum
        news: Iterator[tuple[JobKey, JobReport | None]] = chain(((key, None) for key in gone), differs)
        for number, (key, job) in enumerate(news):
            if number % _STEP == _STEP - 1:
                yield
            was, now = _lacking(before.get(key)), _lacking(job)
            if was != now:
                below += (now > 0) - (was > 0)
                changed[key.name] = changed.get(key.name, self._lacking.get(key.name, 0)) + now - was
        self._jobs, self._below_minimum = jobs, below
        self._lacking.update(changed)
        for name in [name for name, count in changed.items() if not count]:
            del self._lacking[name]
        yield from self._metrics.waiting.updating(changed, below)

    def _show_queues(self, report: CycleReport) -> Iterator[None]:
        self._metrics.queues.keep_only(frozenset(report.queues))
        for number, (name, queue) in enumerate(report.queues.items()):
            if number % _QUEUES_IN_STEP == 0:
                yield
            if queue == self._shown.get(name):
                continue  # as most queues are, from cycle to cycle
            amounts = {
                "allocated": queue.allocated,
                "request": queue.request,
                "deserved": queue.deserved,
                "inqueue": queue.inqueue,
            }
            if queue.capacity is not None:
                amounts["capacity"] = queue.capacity
            if queue.real_capacity is not None:
                amounts["real_capacity"] = queue.real_capacity
            self._metrics.queues.show(name, queue.share, queue.weight, queue.overused, amounts)
        self._shown = report.queues

    def _report_problems(self, report: CycleReport) -> None:
        """Log what is wrong with queues when it differs from the last cycle."""
        for queue in sorted(report.queue_problems.keys() | self._problems.keys()):
            problem = report.queue_problems.get(queue)
            if problem is None:
                log.info("queue in order again", queue=queue)
            elif problem != self._problems.get(queue):
                log.warning("queue misconfigured", queue=queue, problem=problem)
        self._problems = dict(report.queue_problems)
        self._metrics.queues.problems(len(self._problems))

    def sweep(self) -> None:
        """Remove the series of jobs that are gone; whoever asks for metrics may do so when no cycle runs any more."""
        self._swept_at = self._clock.monotonic()
        self._metrics.jobs.keep(lambda name: self._store.job(JobKey(*name)) is not None)

    def _measure(self, report: CycleReport, timing: Timing) -> None:
        cycles = self._metrics.cycles
        cycles.ended(timing.total_s, report.tasks_placed, report.pending_tasks)
        self._metrics.evictions.attempted(report.preemption_attempts)
        cycles.stage("snapshot", timing.snapshot_s)
        opened_s = report.seconds.get("open")
        if opened_s is not None:
            cycles.opened(timing.snapshot_s + opened_s)
        for name, seconds in report.seconds.items():
            cycles.stage(name, seconds)
            if name not in _STAGES_OF_OURS:
                cycles.action(name, seconds)
        for finding_s, scoring_s in report.rankings:
            self._metrics.binds.ranked(finding_s, scoring_s)
        for (plugin, hook), seconds in report.plugin_seconds.items():
            if hook in _HOOKS:
                cycles.plugin(plugin, _HOOKS[hook], seconds)
        self._slow.look(report)

    def _report_failures(self, report: CycleReport) -> None:
        """Log failures of plugins when they differ from the last cycle: a plugin that fails does so in every cycle."""
        failures = tuple(sorted(set(report.failures)))
        if report.failures:
            self._metrics.cycles.plugin_failures(len(report.failures))
        if failures and failures != self._failures:
            log.error("plugins failed", failures=failures[:10], count=len(report.failures), what_to_do=_REPAIR)
        self._failures = failures

    def _report_differences(self, report: CycleReport) -> None:
        """Log what `--verify-cycles` found, a few of them in full."""
        self._metrics.verifying.verified(report.jobs_verified, len(report.differences))
        for one in report.differences[:_MOST_DIFFERENCES]:
            log.warning(
                "kept state differs",
                job=str(one.job),
                about=one.about,
                kept=one.kept[:_MOST_TEXT],
                anew=one.anew[:_MOST_TEXT],
                count=len(report.differences),
                what_to_do=_REPORT_IT,
            )


def _lacking(job: JobReport | None) -> int:
    """Return how many tasks a job lacks of its minimum."""
    return 0 if job is None else max(job.min_available - job.ready, 0)
