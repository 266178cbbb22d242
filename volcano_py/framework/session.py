"""The session: one cycle's view of the cluster and the hooks of the conf's plugins, opened, used, closed.

It holds state and hands out the parts; policy is in plugins, procedure in actions, arithmetic in the parts.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from volcano_py.api import keys
from volcano_py.framework.contract import combine, extension_points
from volcano_py.framework.contract.combine import Point, Watcher
from volcano_py.framework.contract.extension_points import Verdicts
from volcano_py.framework.contract.plugin import DependsOn, Plugin, PluginFailed
from volcano_py.framework.evicting.victims import Victims
from volcano_py.framework.hooks.ordering import OrderedTasks, pending_tasks
from volcano_py.framework.hooks.plugin_calls import PluginCalls
from volcano_py.framework.placing import refusals
from volcano_py.framework.placing.node_sets import Sharding
from volcano_py.framework.placing.placement import Placement
from volcano_py.framework.placing.queue_admission import QueueAdmission
from volcano_py.framework.placing.raw_scores import RawScores
from volcano_py.framework.state.arrivals import Arrivals
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.equivalence import EquivalenceKeys, split
from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.framework.state.memory import CycleReport, Memory
from volcano_py.framework.state.nominated_room import NominatedRoom
from volcano_py.framework.state.pending_evictions import PendingEvictions
from volcano_py.framework.state.queue_accounts import JobAccounts, QueueColumns
from volcano_py.framework.state.roles import Roles
from volcano_py.framework.state.statement import Statement
from volcano_py.framework.state.static_filter_cache import StaticFilterCache, static_part
from volcano_py.framework.state.topology_counts import topology_counts_of
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.decisions import Emit, RecordEvent
from volcano_py.model.objects import GroupCondition, JobKey, JobRecord
from volcano_py.model.rejections import Reason, Rejection
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import PodGroupPhase, TaskStatus
from volcano_py.snapshot import layout
from volcano_py.snapshot.columns import NodeColumns, Snapshot
from volcano_py.snapshot.journal import Journal

ActivePlugin = tuple[Plugin, frozenset[type]]
"""A plugin instance and the extension points that the conf leaves switched on for it."""

_ALLOCATED: Final = TaskStatus.ALLOCATED.value  # numpy asks an enum in vain for half a dozen attributes: 2 us


class Session:
    """One cycle's state. Cluster state changes only through `statement`."""

    def __init__(
        self,
        snapshot: Snapshot,
        tiers: Sequence[Sequence[ActivePlugin]],
        actions: frozenset[str],
        clock: CycleClock,
        seed: int,
        memory: Memory,
        emit: Emit,
        statics: StaticFilterCache,
    ) -> None:
        self.resources = snapshot.resources
        self.nodes = snapshot.nodes
        self.tasks = snapshot.tasks
        self.jobs = snapshot.jobs
        self.queues = {name: QueueInfo(record, row) for row, (name, record) in enumerate(snapshot.queues.items())}
        self.queue_columns: QueueColumns | None = None  # kept up to date once a plugin asks for it, see track_queues
        self.accounts: list[JobAccounts] = []  # who is told of what jobs hold, see track
        self.memory = memory
        self.times = dict(memory.times)  # what the next cycle will remember
        self.now = clock.now
        self.utc_offset = clock.utc_offset
        self.id = memory.session_id
        self.actions = actions
        self.emit = emit
        self.journal = Journal()
        self.report = CycleReport()
        self.rejections: dict[int, dict[int, Rejection]] = {}  # job row -> shape id -> why its tasks found no node
        self.blocked: dict[int, Reason] = {}  # job row -> why it was not tried at all
        self.lost_turns: dict[int, Reason] = {}  # job row -> the plugin that failed when it was its turn
        self.queue_limits: dict[str, Reason] = {}  # queue -> why its other tasks were not tried
        self.refusals: dict[JobKey, str] = {}  # jobs that plugins did not let in -> why
        self.announced: dict[JobKey, str] = {}  # what events say about statuses that this session finds not written
        self.enqueued: set[JobKey] = set()
        self.enqueued_before = frozenset(memory.enqueued)
        self.conditions: dict[int, list[GroupCondition]] = {}  # job row -> conditions to upsert
        self.fit_errors: dict[int, str] | None = None  # job row -> why it waits, kept from `begin_close` on
        self.phases = self.jobs.phase.copy()  # as they were when the session opened
        self.tie_order = statics.tie_order(self.nodes.statics, seed)
        self.looks_ahead = bool(self.nodes.releasing.any())  # whether what is idle and what will be may differ
        self.nowhere = np.full(max(len(self.nodes), 1), -np.inf)  # (n_nodes,), read only
        self.withheld = snapshot.withheld
        self.facts = snapshot.facts
        self.loads = snapshot.loads
        self._snapshot = snapshot
        self._tiers = tiers
        self._statics = statics
        self._deltas: dict[tuple[int, TaskStatus], tuple[Floats, Floats]] = {}
        self._job_changes: dict[tuple[int, TaskStatus, TaskStatus], Floats] = {}
        self._eviction_deltas: dict[int, Floats] = {}
        self._job_infos: dict[int, JobInfo] = {}
        self._task_infos: dict[int, TaskInfo] = {}
        self._node_local: dict[int, bool] = {}
        self._equivalence_keys: EquivalenceKeys = {}
        self._limits_told: dict[tuple[object, ...], Reason] = {}
        self._roles: dict[int, Roles] = {}
        self._attempt_status = np.full(len(self.tasks.records), -1, dtype=np.int8)
        self._any_attempt = False
        self._attempt_node = np.full(len(self.tasks.records), -1, dtype=np.int32)
        self._calls = PluginCalls(self.report, clock.stopwatch)
        self.ignore = self._calls.ignore
        self.sharding = Sharding(self)
        self.placement = Placement(self)
        self._collect_points()
        self.arrivals = Arrivals(self)
        self._snapshot, self._equivalence_keys = split(snapshot, self._told_apart())
        self.topology_counts = topology_counts_of(self._snapshot)
        self.admission = QueueAdmission(self) if snapshot.queue_gates else None
        for plugin in self.plugins():
            self._calls.tell(plugin, "on_session_open", self)
        if self._calls.failed:
            self._collect_points()
        self.nominated_room = NominatedRoom(self, snapshot.nominated)
        self.pending_evictions = PendingEvictions(self)

    def _told_apart(self) -> dict[str, Ints]:
        """Return the marks of the plugins that tell tasks of one shape apart."""
        found: dict[str, Ints] = {}
        for plugin in self.plugins():
            equivalence_keys = (
                self._calls.tell(plugin, "equivalence_keys", self)
                if type(plugin).equivalence_keys is not Plugin.equivalence_keys
                else None
            )
            if equivalence_keys is None:
                continue
            try:
                found[plugin.name] = Point(
                    plugin, "equivalence_keys", lambda equivalence_keys=equivalence_keys: equivalence_keys
                ).array(len(self.tasks.records))
            except PluginFailed as failure:
                self._calls.fail(plugin, failure)
        return found

    def lose_turn(self, job: JobInfo, failure: PluginFailed) -> None:
        """Report a failure that costs a job its turn, and keep it as the reason why the job's tasks wait."""
        self.report.failures.append(f"{failure}; PodGroup {job.key} waits for the next cycle")
        self.lost_turns.setdefault(job.row, Reason(failure.plugin, "plugin-failed", str(failure)))

    def _collect_points(self) -> None:
        self.job_orders = self.points(extension_points.JobOrder, "job_order")
        self.task_orders = self.points(extension_points.TaskOrder, "task_order")
        self.queue_orders = self.points(extension_points.QueueOrder, "queue_order")
        self.namespace_orders = self.points(extension_points.NamespaceOrder, "namespace_order")
        self._job_valid = self.points(extension_points.JobValid, "job_valid")
        self._job_ready = self.points(extension_points.JobReady, "missing")
        self._overused = self.points(extension_points.Overused, "overused")
        self._allocatable = self.points(extension_points.Allocatable, "allocatable")
        self._job_enqueueable = self.tiered(extension_points.JobEnqueueable, "job_enqueueable")
        self._job_enqueued = self.points(extension_points.JobEnqueued, "job_enqueued")
        self._job_pipelined = self.tiered(extension_points.JobPipelined, "job_pipelined")
        self._static_predicates = self.points(extension_points.StaticPredicate, "static_predicate")
        self.predicates = self.points(extension_points.Predicate, "predicate")
        self.inter_pod_predicates = self.points(extension_points.InterPodPredicate, "inter_pod_filter")
        self.node_orders = self.points(extension_points.NodeOrder, "node_order")
        self.inter_pod_orders = self.points(extension_points.InterPodOrder, "inter_pod_scores")
        self.normalized = RawScores(self, self.points(extension_points.NormalizedOrder, "normalized_orders"))
        self.watchers = [
            Watcher(point, Point(point.plugin, "freed"))
            for point in self.points(extension_points.PlacementWatch, "placed")
            if point.plugin not in self._calls.failed
        ]
        self._about_nodes = list(dict.fromkeys(point.plugin for point in (*self.predicates, *self.node_orders)))
        self._node_local.clear()
        self._reasons: list[Reason] = []
        self.reason_offsets = self._number(point.plugin.reasons for point in self.predicates)
        self._static_offsets = self._number(point.plugin.static_reasons for point in self._static_predicates)
        self.filters = refusals.filters(
            self.plugins(),
            zip(self._static_predicates, self._static_offsets, strict=True),
            zip(self.predicates, self.reason_offsets, strict=True),
        )
        self.victims = Victims(self)

    def _number(self, groups: Iterable[tuple[Reason, ...]]) -> tuple[int, ...]:
        offsets = []
        for group in groups:
            offsets.append(len(self._reasons))
            self._reasons.extend(group)
        return tuple(offsets)

    def tiered(self, point: type, method: str) -> list[list[Point]]:
        """Return what the plugins answer with at an extension point, by tier."""
        return [
            [
                self._calls.point(plugin, method)
                for plugin, points in tier
                if point in points and not (plugin in self._calls.failed and point in extension_points.PREFERENCES)
            ]
            for tier in self._tiers
        ]

    def points(self, point: type, method: str) -> list[Point]:
        """Return what the plugins answer with at an extension point, in conf order."""
        return [entry for tier in self.tiered(point, method) for entry in tier]

    # What there is

    def close(self) -> None:
        """Let the plugins say what the session came to; one that did not open has nothing to say."""
        for plugin in self.plugins():
            if plugin not in self._calls.failed:
                self._calls.tell(plugin, "on_session_close", self)

    def plugins(self) -> list[Plugin]:
        """Return the plugins in conf order."""
        return [plugin for tier in self._tiers for plugin, _ in tier]

    def job(self, row: int) -> JobInfo:
        """Return a handle on a job that has a PodGroup."""
        found = self._job_infos.get(row)
        if found is None:
            found = self._job_infos[row] = JobInfo(self, row, self.jobs.record(row))
        return found

    def task_of(self, shape_id: int) -> TaskInfo:
        """Return what predicates, scores and queues see of a task of this shape."""
        found = self._task_infos.get(shape_id)
        if found is None:
            found = self._task_infos[shape_id] = TaskInfo(
                shape=self.shape_of(shape_id),
                shape_id=shape_id,
                request=self._snapshot.requests[:, shape_id].copy(),
                nonzero=self._snapshot.nonzero[:, shape_id].copy(),
                equivalence_keys=self._equivalence_keys.get(shape_id, {}),
            )
        return found

    def node_local(self, shape_id: int) -> bool:
        """Say whether all answers about tasks of this kind depend on the node alone."""
        found = self._node_local.get(shape_id)
        if found is None:
            task = self.task_of(shape_id)
            found = all(plugin.depends(task) is DependsOn.NODE_ALONE for plugin in self._about_nodes)
            self._node_local[shape_id] = found
        return found

    def shape_of(self, shape_id: int) -> Shape:
        """Return the shape of an id."""
        shape = self._snapshot.shapes[shape_id]
        if shape is None:
            raise LookupError(f"shape {shape_id} is free")
        return shape

    @property
    def shapes(self) -> list[Shape | None]:
        """Shapes by id; None where an id is free."""
        return self._snapshot.shapes

    @cached_property
    def requests(self) -> Floats:
        """What tasks of each kind ask for, shape (n_resources, n_shapes)."""
        return self._snapshot.requests

    @cached_property
    def resolvable(self) -> Bools:
        """Whether an eviction could change a verdict, by its number; 0 is no refusal at all."""
        return np.array([True, *(reason.resolvable for reason in self._reasons)], dtype=bool)

    @cached_property
    def queue_of_job(self) -> Rows:
        """The row of each job's queue among the queues, -1 where there is none, shape (n_jobs,)."""
        known = np.array(
            [-1 if (queue := self.queues.get(name)) is None else queue.row for name in self.jobs.rules.queue_names],
            dtype=np.intp,
        )
        rules = self.jobs.rules
        of_job = np.full(len(self.jobs), -1, dtype=np.intp)
        of_job[rules.present] = known[rules.queue[rules.present]]
        return of_job

    @cached_property
    def total(self) -> Floats:
        """What all nodes together can give to pods, shape (n_resources,)."""
        total: Floats = self.nodes.allocatable.sum(axis=1)
        return total

    def track_queues(self) -> QueueColumns:
        """Return what queues hold, from now on kept up to date by every statement; to be asked for at session open."""
        if self.queue_columns is None:
            records = tuple(queue.record for queue in self.queues.values())
            self.queue_columns = QueueColumns(records, self.jobs)
            self.track(self.queue_columns)
        return self.queue_columns

    def track(self, accounts: JobAccounts) -> None:
        """Have somebody told of all that jobs take and give back; to be asked for at session open."""
        if self.journal.checkpoint():
            raise RuntimeError("what jobs hold must be tracked from the opening of the session on")
        self.accounts.append(accounts)

    def rows_of_job(self, job_row: int) -> Rows:
        """Return the task rows of a job, whatever their status, shape (n_tasks,)."""
        order, bounds = self._tasks_by_job
        return order[bounds[job_row] : bounds[job_row + 1]]

    @cached_property
    def _tasks_by_job(self) -> tuple[Rows, Rows]:
        order = np.argsort(self.tasks.job, kind="stable")
        return order, np.searchsorted(self.tasks.job[order], np.arange(len(self.jobs) + 1))

    def roles_of(self, job_row: int) -> Roles:
        """Return the tasks of a job by role."""
        found = self._roles.get(job_row)
        if found is None:
            found = self._roles[job_row] = Roles(self, job_row)
        return found

    @cached_property
    def pending(self) -> OrderedTasks:
        """The pending tasks of every job, in task order, as they were at the first use."""
        return pending_tasks(self)

    def deltas(self, shape_id: int, status: TaskStatus) -> tuple[Floats, Floats]:
        """Return what a task of this shape and status adds to its node's and to its job's block."""
        found = self._deltas.get((shape_id, status))
        if found is None:
            request, nonzero = self._snapshot.requests[:, shape_id], self._snapshot.nonzero[:, shape_id]
            best_effort = self.shape_of(shape_id).best_effort
            found = (layout.node_delta(status, request, nonzero), layout.job_delta(status, request, best_effort))
            self._deltas[shape_id, status] = found
        return found

    def job_change(self, shape_id: int, before: TaskStatus, after: TaskStatus) -> Floats:
        """Return what a job's block gains when one of its tasks of this shape changes its status, shape (job_rows,)."""
        found = self._job_changes.get((shape_id, before, after))
        if found is None:
            found = self.deltas(shape_id, after)[1] - self.deltas(shape_id, before)[1]
            self._job_changes[shape_id, before, after] = found
        return found

    def eviction_delta(self, shape_id: int) -> Floats:
        """Return what the eviction of a task that holds its place adds to its node's block, shape (node_rows,)."""
        found = self._eviction_deltas.get(shape_id)
        if found is None:
            request, nonzero = self._snapshot.requests[:, shape_id], self._snapshot.nonzero[:, shape_id]
            found = self._eviction_deltas[shape_id] = layout.eviction_delta(request, nonzero)
        return found

    def look_ahead(self) -> None:
        """Have placement look at what is being released and what is promised, from now on."""
        if not self.looks_ahead:
            self.looks_ahead = True
            self.placement.forget()

    def static_verdicts(self, task: TaskInfo) -> Verdicts:
        """Return the static predicates' verdicts on all nodes, shape (n_nodes,)."""
        return self._statics.of(task.shape, self.nodes, self._static_predicates, self._static_offsets)

    def static_part(self, task: TaskInfo) -> Hashable:
        """Return what of a task static predicates look at: tasks of one part have the same verdicts."""
        return static_part(task.shape, self._static_predicates)

    def static_row(self, key: Hashable, ask: Callable[[NodeColumns], NDArray[Any]]) -> NDArray[Any]:
        """Return answers that depend on node records only, one per node, kept over cycles (`StaticFilterCache.row`)."""
        return self._statics.row(key, self.nodes, ask)

    def reason(self, code: int) -> Reason:
        """Return the reason behind a verdict: above 0 a plugin's, below 0 the lack of a resource."""
        if code > 0:
            return self._reasons[code - 1]
        name = self.resources.names[-1 - code]
        return Reason("resources", f"insufficient-{name}", f"Insufficient {name}", resolvable=True)

    def begin_close(self) -> None:
        """Say that the actions are over: nothing is placed or refused any more, so texts about it can be kept."""
        self.fit_errors = {}

    # What may change

    def statement(self) -> Statement:
        """Open a transaction."""
        return Statement(self)

    def enqueue(self, job_row: int) -> None:
        """Let a pending job in."""
        key = self.jobs.record(job_row).key
        self.jobs.phase[job_row] = PodGroupPhase.INQUEUE
        self.enqueued.add(key)
        self.report.jobs_enqueued += key not in self.enqueued_before  # else its phase is on its way

    def tell_refusal(self, job: JobRecord, type_: str, text: str) -> None:
        """Emit an event that says why a job is not let in, unless its users were told so last or its tasks come."""
        before = self.memory.refusals.get(job.key, "")
        text = before if self.arrivals.holds(*job.key) else text
        self.refusals[job.key] = text
        if text != before:
            self.emit((RecordEvent("PodGroup", *job.key, job.uid, type_, keys.EVENT_UNSCHEDULABLE, text),))

    def remember_attempt(self, tasks: Rows, status: TaskStatus, nodes: Rows) -> None:
        """Keep how far tasks had come before their statement was discarded."""
        self._any_attempt = True
        self._attempt_status[tasks] = status
        self._attempt_node[tasks] = nodes

    def forget_attempt(self, tasks: Rows) -> None:
        """Drop what was kept of tasks that are now committed."""
        if self._any_attempt:
            self._attempt_status[tasks] = -1

    def attempt(self, task_row: int) -> tuple[TaskStatus, str] | None:
        """Return the status and node a task had in its last discarded statement, None if it had none."""
        status = int(self._attempt_status[task_row])
        if status < 0:
            return None
        return TaskStatus(status), self.nodes.names[int(self._attempt_node[task_row])]

    def attempted(self, tasks: Rows) -> Bools:
        """Say for each of these tasks whether it had a node in a discarded statement, shape (n_tasks,)."""
        return np.asarray(self._attempt_status[tasks] >= 0)

    def attempts(self, tasks: Rows) -> int:
        """Return how many of these tasks would have been allocated if their job had been complete."""
        return int(np.count_nonzero(self._attempt_status[tasks] == _ALLOCATED))

    # What plugins say

    def job_valid(self, job: JobInfo) -> Reason | None:
        """Return why a job cannot be scheduled at all, None if it can; a plugin that fails here is such a reason."""
        try:
            refusal: Reason | None = combine.first_refusal(self._job_valid, job)
        except PluginFailed as failure:
            self.report.failures.append(f"{failure}; PodGroup {job.key} waits for the next cycle")
            return Reason(failure.plugin, "plugin-failed", str(failure))
        return refusal

    def is_ready(self, job: JobInfo) -> bool:
        """Say for texts whether a job is ready; where a plugin fails to say, it is not."""
        try:
            return self.missing(job) == 0
        except PluginFailed as failure:
            self.ignore(failure)
            return False

    def job_enqueueable(self, job: JobInfo) -> bool:
        """Say whether a pending job may be let in."""
        return combine.vote(self._job_enqueueable, job)

    def enqueue_refusal(self, job: JobInfo) -> Reason | None:
        """Return why a pending job may not be let in, None if it may."""
        answer = combine.rejection(self._job_enqueueable, job)
        if answer is None or isinstance(answer, Reason):
            return answer
        return Reason("enqueue", "not-enqueued", f"PodGroup {job.key} waits: a plugin of the configuration rejects it")

    def job_enqueued(self, job: JobInfo) -> None:
        """Tell the plugins that a pending job has been let in."""
        combine.notify(self._job_enqueued, job)

    def missing(self, job: JobInfo) -> int:
        """Return 0 if what a job holds may be committed, else how many more tasks that takes at the least."""
        return combine.largest(self._job_ready, job)

    def missing_with(self, job: JobInfo, tasks: Rows) -> int:
        """Return what `missing` would be if these tasks of the job, which wait or are promised a node, had one."""
        if not len(tasks):
            return self.missing(job)
        checkpoint = self.journal.checkpoint()
        kinds = np.stack((self.tasks.shape[tasks], self.tasks.status[tasks]))
        distinct, counts = np.unique(kinds, axis=1, return_counts=True)
        for (shape_id, status), count in zip(distinct.T.tolist(), counts.tolist(), strict=True):
            change = self.job_change(shape_id, TaskStatus(status), TaskStatus.ALLOCATED)
            self.journal.add(self.jobs.block, job.row, change * count)
        self.journal.replace(self.tasks.status, tasks, TaskStatus.ALLOCATED)
        try:
            return self.missing(job)
        finally:
            self.journal.rollback(checkpoint)

    def job_pipelined(self, job: JobInfo) -> bool:
        """Say whether a job that is not ready may keep what it was promised for this session."""
        return combine.vote(self._job_pipelined, job)

    def overused(self, queue: QueueInfo) -> bool:
        """Say whether a queue gets nothing more."""
        return combine.any_yes(self._overused, queue)

    def why_overused(self, queue: QueueInfo) -> Reason:
        """Return why a queue that is overused gets nothing more."""
        return refusals.why_overused(self._overused, queue, self.ignore)

    def over_limit(self, queue: QueueInfo, task: TaskInfo, asked: Floats, given: Floats) -> Reason:
        """Return why a queue may not hold one more task like this; see `Allocatable.why_not_allocatable`."""
        key = (queue.row, task.shape_id, asked.tobytes(), given.tobytes(), self.journal.n_touched)
        if self.admission is not None or (found := self._limits_told.get(key)) is None:
            found = refusals.over_limit(self._allocatable, queue, task, asked, given, self.ignore)
        return self._limits_told.setdefault(key, found) if self.admission is None else found

    def allocatable(self, queue: QueueInfo, task: TaskInfo, wanted: int) -> int:
        """Return how many of ``wanted`` tasks like this one the queue may take now."""
        return combine.smallest(self._allocatable, wanted, queue, task)
