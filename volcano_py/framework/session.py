"""The session: the state of one cycle, the hooks of the conf's plugins, and the engines that work on both.

It only puts these together. The state is in `state`, asking plugins is in `hooks`, finding nodes for tasks is in
`placing`, and evictions are in `evicting`. Policy is in plugins, procedure in actions.
"""

from collections.abc import Iterable, Sequence
from functools import partial

from volcano_py.api import keys
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.hooks.fit_errors import FitErrors, job_fit_error
from volcano_py.framework.hooks.hooks import Hooks
from volcano_py.framework.hooks.plugin_calls import ActivePlugin
from volcano_py.framework.placing.node_sets import NodeSets
from volcano_py.framework.placing.nominated_nodes import NominatedNodes
from volcano_py.framework.placing.placement import Placement
from volcano_py.framework.placing.queue_admission import QueueAdmission
from volcano_py.framework.placing.task_loop import TaskLoop
from volcano_py.framework.placing.topology_placement import TopologyPlacement
from volcano_py.framework.state.arrivals import Arrivals
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.nominated_room import NominatedRoom
from volcano_py.framework.state.pending_evictions import PendingEvictions
from volcano_py.framework.state.queue_gates import ComingUsage, QueueGates
from volcano_py.framework.state.state import State
from volcano_py.framework.state.static_filter_cache import StaticFilterCache
from volcano_py.model.arrays import Rows
from volcano_py.model.decisions import Emit, RecordEvent
from volcano_py.model.objects import JobRecord
from volcano_py.model.rejections import Reason
from volcano_py.model.statuses import PodGroupPhase
from volcano_py.snapshot.columns import Snapshot


class Session:
    """One cycle, opened."""

    def __init__(
        self,
        snapshot: Snapshot,
        tiers: Sequence[Sequence[ActivePlugin]],
        actions: frozenset[str],
        clock: CycleClock,
        seed: int,
        memory: Memory,
        emit: Emit,
        static_filters: StaticFilterCache,
    ) -> None:
        """Open a session on a snapshot, which the session changes."""
        self.state = state = State(snapshot, clock, memory, emit, static_filters)
        tie_order = static_filters.tie_order(state.nodes.statics, seed)
        self.arrivals = Arrivals(state)
        self.hooks = hooks = Hooks(state, tiers, actions)
        state.outcome.fit_error = partial(job_fit_error, state, hooks)
        hooks.open()
        self.pending_evictions = PendingEvictions(state)
        self.nominated_room = NominatedRoom(state, snapshot.nominated, self.pending_evictions)
        self.queue_gates = QueueGates(state) if snapshot.queue_gates else None
        state.coming = ComingUsage(self.queue_gates, self.nominated_room)
        self.admission = None if self.queue_gates is None else QueueAdmission(state, hooks, self.queue_gates)
        self.placement = Placement(
            state, hooks, NodeSets.of_shard(state.facts.shard, state.nodes, state.static_row), tie_order
        )
        self.task_loop = TaskLoop(state, hooks)
        self.topology = TopologyPlacement(state, hooks, self.placement, self.task_loop)
        self.nominated_nodes = NominatedNodes(state, hooks, self.placement, self.nominated_room)
        self.eviction = Eviction(state, hooks, self.placement, self.nominated_room, self.pending_evictions)
        self.statement = hooks.statement
        """Opens a transaction."""

    def enqueue(self, job_row: int) -> None:
        """Enqueue a pending job."""
        state, outcome = self.state, self.state.outcome
        key = state.jobs.record(job_row).key
        state.jobs.phase[job_row] = PodGroupPhase.INQUEUE
        outcome.enqueued.add(key)
        state.report.jobs_enqueued += key not in outcome.enqueued_before  # else its new phase is not visible yet

    def skip_job(self, job: JobInfo, failure: PluginFailed) -> None:
        """Skip a job because a plugin failed: report the failure, and record it as the reason why the job waits."""
        self.state.report.failed(failure, f"PodGroup {job.key} waits for the next cycle")
        self.state.outcome.skipped.setdefault(job.row, Reason(failure.plugin, "plugin-failed", failure.text))

    def announce_refusal(self, job: JobRecord, type_: str, text: str) -> None:
        """Emit an event that says why a job is not enqueued.

        Nothing is emitted if that was the last event of the job, or while its tasks still arrive.
        """
        state = self.state
        before = state.memory.refusals.get(job.key, "")
        text = before if self.arrivals.holds(*job.key) else text
        state.outcome.refusals[job.key] = text
        if text != before:
            state.emit((RecordEvent("PodGroup", *job.key, job.uid, type_, keys.EVENT_UNSCHEDULABLE, text),))

    def announce_refusals(self, job_rows: Rows, texts: Iterable[str]) -> None:
        """Emit normal events that say why many jobs are not enqueued; nearly all of them were told this text before."""
        records, before = self.state.jobs.records, self.state.memory.refusals
        refusals = self.state.outcome.refusals
        for row, text in zip(job_rows.tolist(), texts, strict=True):  # a Python loop over the jobs that are refused
            record = records[row]
            if record is None:
                continue
            if before.get(record.key) == text:
                refusals[record.key] = text
            else:
                self.announce_refusal(record, keys.EVENT_NORMAL, text)

    def warn(self, job: JobRecord, text: str) -> None:
        """Emit an event that warns the users of a job."""
        self.state.emit((RecordEvent("PodGroup", *job.key, job.uid, keys.EVENT_WARNING, keys.EVENT_TOPOLOGY, text),))

    def close(self) -> None:
        """End the actions, and let the plugins record the outcome: nothing is placed any more."""
        self.state.outcome.fit_error = FitErrors(self.state, self.hooks).of
        self.hooks.close()

    def release(self) -> None:
        """Let go of everything.

        State, hooks and engines know each other, so that otherwise only the garbage collector would free the snapshot.
        """
        for one in (self.state, self.hooks, self.placement, self):
            vars(one).clear()
