"""Asking plugins about jobs, tasks and queues: one answer, combined from those of all plugins. It knows no engine."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from volcano_py.framework.contract import combine, extension_points
from volcano_py.framework.contract.combine import Watcher
from volcano_py.framework.contract.plugin import Plugin, PluginFailed
from volcano_py.framework.hooks import refusals
from volcano_py.framework.hooks.border import Border
from volcano_py.framework.hooks.node_hooks import NodeHooks
from volcano_py.framework.hooks.ordering import Orders, PendingTasks
from volcano_py.framework.hooks.plugin_calls import ActivePlugin, PluginCalls, is_ours
from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.framework.state.statement import Statement
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.rejections import Reason
from volcano_py.model.statuses import TaskStatus


class Hooks:
    """The plugins of a session and their combined answers. Call `open` first."""

    def __init__(self, state: State, tiers: Sequence[Sequence[ActivePlugin]], actions: frozenset[str]) -> None:
        """Take the plugins by tier with the extension points that are switched on, and the names of the actions."""
        self.actions = actions
        self._state = state
        self._calls = PluginCalls(tiers, state.report, state.clock.stopwatch, Border(state))
        self.points = self._calls.points
        """Returns a `Point` for each plugin that answers an extension point, in conf order."""
        self.tiered = self._calls.tiered
        """The same by tier."""
        self.ignore = self._calls.ignore
        """Reports a failed answer that the cycle continues without."""
        self._limit_texts: dict[tuple[object, ...], Reason] = {}
        self._collect()

    def open(self) -> None:
        """Split equivalence classes by the keys of plugins, and open the plugins.

        The preferences of a plugin that fails do not count.
        """
        self._state.split_classes(self._calls.equivalence_keys(self._state))
        self._calls.open(self._state)
        if self._calls.failed:
            self._collect()

    def _collect(self) -> None:
        points, tiered = self._calls.points, self._calls.tiered
        self.orders = Orders(self._state, self._calls)
        """The orders of jobs, tasks, queues and namespaces."""
        self._job_valid = points(extension_points.JobValid, "job_valid")
        self._job_ready = points(extension_points.JobReady, "missing")
        self._overused = points(extension_points.Overused, "overused")
        self._allocatable = points(extension_points.Allocatable, "allocatable")
        self._job_enqueueable = tiered(extension_points.JobEnqueueable, "job_enqueueable")
        self._job_enqueued = points(extension_points.JobEnqueued, "job_enqueued")
        self._job_pipelined = tiered(extension_points.JobPipelined, "job_pipelined")
        self._watchers = [
            Watcher(point, point.other("freed"))
            for point in points(extension_points.PlacementWatch, "placed")
            if point.plugin not in self._calls.failed
        ]
        self.nodes = NodeHooks(self._state, self._calls)
        """What plugins answer about nodes."""

    @property
    def built_in(self) -> bool:
        """Whether all plugins are ours: those of others may answer from more than the session."""
        return all(is_ours(plugin) for plugin in self.plugins())

    def plugins(self) -> list[Plugin]:
        """Return the plugins in conf order."""
        return self._calls.plugins()

    def close(self) -> None:
        """Let the plugins record the outcome of the session."""
        self._calls.close(self._state)

    def statement(self) -> Statement:
        """Open a transaction; it reports its placements and evictions to the plugins that count them."""
        return Statement(self._state, self._watchers)

    @cached_property
    def pending(self) -> PendingTasks:
        """The pending tasks of every job, in task order, as they were at the first use."""
        return PendingTasks(self.orders)

    # Jobs

    def surely_valid(self) -> Bools:
        """Return jobs that are certainly valid, (n_jobs,), without asking plugins about each; others may be valid."""
        found = np.ones(len(self._state.jobs), dtype=bool)
        for point in self._job_valid:
            try:
                found &= point.other("surely_valid")()
            except PluginFailed as failure:
                self.ignore(failure)
                found[:] = False  # then each job is asked about
        return found

    def job_valid(self, job: JobInfo) -> Reason | None:
        """Return why a job cannot be scheduled at all, None if it can; a plugin that fails here is also a reason."""
        try:
            refusal: Reason | None = combine.first_refusal(self._job_valid, job)
        except PluginFailed as failure:
            self._state.report.failed(failure, f"PodGroup {job.key} waits for the next cycle")
            return Reason(failure.plugin, "plugin-failed", failure.text)
        return refusal

    def is_ready(self, job: JobInfo) -> bool:
        """Say whether a job is ready, for texts only: if a plugin fails, the job counts as not ready."""
        try:
            return self.missing(job) == 0
        except PluginFailed as failure:
            self.ignore(failure)
            return False

    def job_enqueueable(self, job: JobInfo) -> bool:
        """Say whether a pending job may be enqueued."""
        return combine.vote(self._job_enqueueable, job)

    def enqueue_refusal(self, job: JobInfo) -> Reason | None:
        """Return why a pending job may not be enqueued, None if it may."""
        answer = combine.rejection(self._job_enqueueable, job)
        if answer is None or isinstance(answer, Reason):
            return answer
        return Reason("enqueue", "not-enqueued", f"PodGroup {job.key} waits: a plugin of the configuration rejects it")

    def enqueue_refusals(self, jobs: Rows) -> tuple[Ints, list[Reason]]:
        """Return why some of these pending jobs with minResources may certainly not be enqueued.

        The first result has for each job the place of its reason, (n,), or -1 where `enqueue_refusal` must say it.
        """
        return combine.rejections(self._job_enqueueable, jobs, self._calls.failed, self.ignore)

    def job_enqueued(self, job: JobInfo) -> None:
        """Tell the plugins that a pending job has been enqueued; that one of them fails is only reported."""
        combine.notify(self._job_enqueued, job, ignore=self.ignore)

    def missing(self, job: JobInfo) -> int:
        """Return 0 if the placements of a job may be committed, else a lower bound of the tasks that it still needs."""
        return combine.largest(self._job_ready, job)

    def missing_with(self, job: JobInfo, tasks: Rows) -> int:
        """Return what `missing` would be if these tasks of the job, pending or pipelined now, were allocated."""
        if not len(tasks):
            return self.missing(job)
        state, journal = self._state, self._state.journal
        checkpoint = journal.checkpoint()
        alike = np.stack((state.tasks.shape[tasks], state.tasks.status[tasks]))
        distinct, counts = np.unique(alike, axis=1, return_counts=True)
        for (shape_id, status), count in zip(distinct.T.tolist(), counts.tolist(), strict=True):
            change = state.classes.job_change(shape_id, TaskStatus(status), TaskStatus.ALLOCATED)
            journal.add(state.jobs.block, job.row, change * count)
        journal.replace(state.tasks.status, tasks, TaskStatus.ALLOCATED)
        try:
            return self.missing(job)
        finally:
            journal.rollback(checkpoint)

    def job_pipelined(self, job: JobInfo) -> bool:
        """Say whether a job that is not ready may keep the room promised to it in this session."""
        return combine.vote(self._job_pipelined, job)

    # Queues

    def overused(self, queue: QueueInfo) -> bool:
        """Say whether a queue already holds all that it may have; if a plugin fails here, it gets nothing now."""
        try:
            return combine.any_yes(self._overused, queue)
        except PluginFailed as failure:
            self.ignore(failure)
            return True

    def overused_queues(self) -> Bools:
        """Return `overused` of all queues, (n_queues,)."""
        found = np.zeros(len(self._state.queues), dtype=bool)
        for point in self._overused:
            try:
                overused = point.other("overused_queues")()
            except PluginFailed as failure:
                self.ignore(failure)
                overused = None
            if overused is None:
                # A Python loop over queues, for plugins that know one at a time.
                return np.array([self.overused(queue) for queue in self._state.queues.values()], dtype=bool)
            found |= overused
        return found

    def why_overused(self, queue: QueueInfo) -> Reason:
        """Return why an overused queue gets nothing more."""
        return refusals.why_overused(self._overused, queue, self.ignore)

    def over_limit(self, queue: QueueInfo, task: TaskInfo, asked: Floats, given: Floats) -> Reason:
        """Return why a queue may not hold one more task like this; see `Allocatable.why_not_allocatable`."""
        key = (queue.row, task.shape_id, asked.tobytes(), given.tobytes(), self._state.journal.n_touched)
        found = self._limit_texts.get(key)
        if found is None:
            found = refusals.over_limit(self._allocatable, queue, task, asked, given, self.ignore)
            if not self._state.classes.queue_gates:  # with gates the limit changes without a placement
                self._limit_texts[key] = found
        return found

    def full_queues(self, task: TaskInfo) -> Bools:
        """Return queues that certainly may not hold one more task like this, (n_queues,); others may still refuse."""
        found = np.zeros(len(self._state.queues), dtype=bool)
        for point in self._allocatable:
            full = point.other("full_queues")(task)
            if full is not None:
                found |= full
        return found

    def allocatable(self, queue: QueueInfo, task: TaskInfo, wanted: int) -> int:
        """Return how many of ``wanted`` tasks like this one the queue may take now."""
        return combine.smallest(self._allocatable, wanted, queue, task)
