"""Eviction: the victim candidates of a session, the answers of plugins about them, and the order of eviction."""

from collections.abc import Sequence
from copy import copy
from functools import cached_property, cmp_to_key
from itertools import chain
from typing import Final

import numpy as np

from volcano_py.framework.contract import combine
from volcano_py.framework.contract.combine import Point
from volcano_py.framework.contract.extension_points import (
    JobReady,
    JobStarving,
    Predicate,
    Preemptable,
    Preemptive,
    Preemptor,
    Purpose,
    Reclaimable,
    SeesEvictions,
    UnifiedEvictable,
    VictimFilter,
    VictimQueueOrder,
    VictimTasks,
)
from volcano_py.framework.contract.plugin import Plugin, PluginFailed
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.evicting.candidate_nodes import PreemptionCandidateNodes
from volcano_py.framework.evicting.levelling import numbered
from volcano_py.framework.evicting.plan_results import PlanResults
from volcano_py.framework.hooks.hooks import Hooks
from volcano_py.framework.hooks.ordering import OrderedTasks
from volcano_py.framework.hooks.plugin_calls import is_ours
from volcano_py.framework.placing.placement import Placement
from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.framework.state.nominated_room import NominatedRoom
from volcano_py.framework.state.pending_evictions import PendingEvictions
from volcano_py.framework.state.state import State
from volcano_py.framework.state.statement import Statement
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.objects import TaskTrait
from volcano_py.model.statuses import TaskStatus

_ROUNDS: Final = 16  # in which plugins are asked again; two or three are usual
_METHODS: Final[dict[type, str]] = {
    Preemptable: "preemptable",
    Reclaimable: "reclaimable",
    UnifiedEvictable: "unified_evictable",
    VictimTasks: "victim_tasks",
}


class Eviction:
    """The part of a session that deals with evictions."""

    def __init__(
        self, state: State, hooks: Hooks, placement: Placement, room: NominatedRoom, pending: PendingEvictions
    ) -> None:
        """Take the parts of a session that plans of evictions need."""
        self.state = state
        self.hooks = hooks
        self.placement = placement
        self.room = room
        self.pending_evictions = pending
        self._starving = hooks.tiered(JobStarving, "job_starving")
        self._preemptive = hooks.points(Preemptive, "preemptive")
        self._queue_order = hooks.points(VictimQueueOrder, "victim_queue_order")
        self._answering = {point: hooks.tiered(point, method) for point, method in _METHODS.items()}
        self._tiers = {point: _voters(tiers) for point, tiers in self._answering.items()}
        seeing = {point.plugin for point in hooks.points(SeesEvictions, "predicate")}
        self.blind_predicates = any(point.plugin not in seeing for point in hooks.points(Predicate, "predicate"))
        self._candidate_nodes: dict[int, PreemptionCandidateNodes] = {}
        self.plan_results = PlanResults()
        self.free_rooms: list[Statement] = []  # plans of the present action that need no eviction
        self._filters: dict[type, tuple[list[Point], list[Point]]] = {one: self._filters_of(one) for one in _METHODS}

    def _filters_of(self, question: type) -> tuple[list[Point], list[Point]]:
        """Return the filters that apply to a question about victims, those with `about_queues` separately."""
        asked = {point.plugin for tier in self._answering[question] for point in tier}
        filters = self.hooks.points(VictimFilter, "protected")
        found = [point for point in filters if point.plugin in asked or _only_protects(point.plugin)]
        found = [point for point in found if not (point.plugin.first_say and self._others_vote_first(point, question))]
        late = [point for point in found if point.plugin.about_queues]
        return [point for point in found if point not in late], late

    def _others_vote_first(self, point: Point, question: type) -> bool:
        """Say whether a tier before that of a plugin has votes."""
        for voters, filters in zip(self._tiers[question], self.hooks.tiered(VictimFilter, "protected"), strict=True):
            if any(one.plugin is point.plugin for one in filters):
                return False
            if voters:
                return True
        return False

    # Questions

    def starving(self, job: JobInfo) -> bool:
        """Say whether pods of other jobs may be evicted for a job."""
        return combine.starving(self._starving, job)

    def starving_jobs(self) -> Bools | None:
        """Return what `starving` says of all jobs now, (n_jobs,); None if plugins must be asked about each."""
        if not self.hooks.built_in:
            return None
        tier = next((tier for tier in self._starving if tier), None)
        if tier is None:
            return np.zeros(len(self.state.jobs), dtype=bool)
        found = np.ones(len(self.state.jobs), dtype=bool)
        for point in tier:
            try:
                answer = point.other("starving_jobs")()
            except PluginFailed:
                return None  # each job is asked about, and the failure is reported there
            if answer is None:
                return None
            found &= answer
        return found

    @property
    def gang_alone(self) -> bool:
        """Whether jobs lack what their minimum says: no plugin besides gang says when a job is ready."""
        return [point.plugin.name for point in self.hooks.points(JobReady, "missing")] == ["gang"]

    def sated_queues(self, shape_id: int) -> Bools:
        """Return queues that certainly may not take room for one task of a shape, (n_queues,); see `Preemptive`."""
        found = np.zeros(len(self.state.queues), dtype=bool)
        for point in self._preemptive:
            sated = point.other("sated_queues")(self.state.task_of(shape_id))
            if sated is not None:
                found |= sated
        return found

    def safe_from(self, candidates: VictimCandidates) -> Floats:
        """Return for each candidate the highest priority of a job of its queue that surely cannot preempt it, (n,)."""
        lowest = np.full(len(candidates), np.inf)
        for tier in self._tiers[Preemptable]:
            highest = np.full(len(candidates), -np.inf)
            for point in tier:
                answer = point.other("safe_from")(candidates)
                if answer is not None:
                    highest = np.maximum(highest, answer)
            if tier:  # a tier may decide when the tiers before it allow nobody
                lowest = np.minimum(lowest, highest)
        for point in (point for tier in self._answering[Preemptable] for point in tier if point.plugin.protects):
            answer = point.other("safe_from")(candidates)
            if answer is not None:
                lowest = np.maximum(lowest, answer)
        return lowest

    def preemptive(self, queue: QueueInfo, tasks: Sequence[tuple[TaskInfo, int]]) -> bool:
        """Say whether a queue may take room from other queues for these tasks."""
        return all(point(queue, tasks) for point in self._preemptive)

    def allowed(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Return which candidates may be evicted for the task of a preemptor, shape (n,)."""
        return self._answer(Preemptable if preemptor.purpose is Purpose.PREEMPT else Reclaimable, preemptor, candidates)

    def allowed_for_gang(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Return which candidates may be evicted for a whole gang, shape (n,)."""
        return self._answer(UnifiedEvictable, preemptor, candidates)

    def all_count(self, purpose: Purpose, *, for_gang: bool = False) -> bool:
        """Say whether all plugins that `allowed` asks count the candidates before each one (`Plugin.counts`).

        ``for_gang`` means the plugins that `allowed_for_gang` asks.
        """
        question: type = Preemptable if purpose is Purpose.PREEMPT else Reclaimable
        if for_gang:
            question = UnifiedEvictable
        early, late = self._filters[question]
        asked = [*(point for tier in self._tiers[question] for point in tier), *early, *late]
        return all(point.method in point.plugin.counts for point in asked)

    def unconditional(self) -> Rows:
        """Return the running tasks that must be evicted, whoever gets their room, the first victim first.

        Plugins are asked again without those that a filter protects, so that others may go in their place.
        """
        tiers, filters = self._tiers[VictimTasks], [*chain(*self._filters[VictimTasks])]
        # Our plugins name somebody in any order of the candidates or in none, and to order all of them takes long.
        ours = all(is_ours(point.plugin) for tier in tiers for point in tier)
        unordered = self.unordered.only(self.state.tasks.status[self.unordered.rows] == TaskStatus.RUNNING)
        if ours and not combine.united(tiers, unordered).any():
            return unordered.rows[:0]
        alone = VictimCandidates(self.state, unordered.rows, np.arange(len(unordered)))
        free = unordered.only(~combine.protected(filters, None, alone))
        if ours and not combine.united(tiers, free).any():
            return free.rows[:0]
        rows = self._running_or_bound[np.isin(self._running_or_bound, free.rows)]
        candidates = VictimCandidates(self.state, rows, np.zeros(len(rows), dtype=np.intp))
        left = np.arange(len(rows))
        for _ in range(_ROUNDS):
            chosen = left[combine.united(tiers, candidates.at(left))]
            kept = combine.protected(filters, None, candidates.at(chosen))
            if not kept.any():
                break
            left = np.setdiff1d(left, chosen[kept])
        found: Rows = rows[chosen[~kept]]
        return found

    def _answer(self, question: type, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Return which candidates plugins allow and no filter protects, shape (n,).

        Each answer may count only candidates that are really evicted. So plugins and filters are asked again without
        the protected candidates, until no filter protects any more.
        """
        allowed = np.zeros(len(candidates), dtype=bool)
        early, late = self._filters[question]
        stays = np.zeros(len(candidates), dtype=bool)  # by what is known for good
        left = np.arange(len(candidates))  # places of those who are asked
        for _ in range(_ROUNDS):
            asked = candidates if len(left) == len(candidates) else candidates.at(left)
            chosen = left[combine.intersected(self._tiers[question], preemptor, asked)] if len(left) else left
            kept = combine.protected(early, preemptor, candidates.at(chosen)) if early and len(chosen) else None
            if kept is not None and kept.any():
                left = np.setdiff1d(left, chosen[kept])
                continue
            kept = combine.protected(late, preemptor, candidates.at(chosen)) if late and len(chosen) else None
            if kept is None or not kept.any():
                allowed[chosen] = True
                return allowed
            stays |= self._behind(candidates, chosen[kept])
            left = np.flatnonzero(~stays)
        chosen = chosen[~combine.protected(early, preemptor, candidates.at(chosen))]
        allowed[chosen[~combine.protected(late, preemptor, candidates.at(chosen))]] = True
        return allowed

    def _behind(self, candidates: VictimCandidates, places: Rows) -> Bools:
        """Return the candidates at these places, equal ones behind them, and all that are evicted only with them, (n,).

        Equal candidates have the same group, job and shape.
        """
        shapes = self.state.tasks.shape[candidates.rows]
        classes = numbered(candidates.groups, candidates.jobs, shapes)
        since = np.full(len(candidates), len(candidates))
        np.minimum.at(since, classes[places], places)
        behind = np.arange(len(candidates)) >= since[classes]
        return np.asarray(behind | np.isin(candidates.first_of_unit, candidates.first_of_unit[places]))

    def missing_once_free(self, job: JobInfo) -> int:
        """Return what `Hooks.missing` will be once the resources promised to the job's tasks are free."""
        state = self.state
        rows = state.rows_of_job(job.row)
        return self.hooks.missing_with(job, rows[state.tasks.status[rows] == TaskStatus.PIPELINED])

    def candidate_nodes(self, shape_id: int) -> PreemptionCandidateNodes:
        """Return where evictions might make room for tasks of this class, up to date."""
        found = self._candidate_nodes.get(shape_id)
        if found is None:
            found = self._candidate_nodes[shape_id] = PreemptionCandidateNodes(
                self.state, self.hooks.nodes, self.placement, self.state.task_of(shape_id)
            )
        else:
            found.refresh()
        return found

    def within(self, placement: Placement) -> "Eviction":
        """Return the same for plans whose tasks go to the nodes of another placement of this session only."""
        found = copy(self)
        found.placement = placement
        found._candidate_nodes = {}
        found.plan_results = self.plan_results.within()
        return found

    def must_stop(self) -> bool:
        """Say whether no further plan may be made in this cycle; the report then says that the next one must follow.

        Actions ask this only before they make a plan.
        """
        if not self.plan_results.exhausted:
            return False
        self.state.report.evictions_left = True
        return True

    def end_of_action(self) -> None:
        """Withdraw the plans that need no eviction: allocate will place their tasks."""
        for statement in self.free_rooms:
            statement.withdraw()
        if self.free_rooms:
            self.room.restore()
        self.plan_results.failed.clear()
        self.free_rooms.clear()

    # Candidates

    @cached_property
    def unordered(self) -> VictimCandidates:
        """All victim candidates at the first use, in no particular order, as one group."""
        tasks = self.state.tasks
        running_or_bound = (tasks.status == TaskStatus.RUNNING) | (tasks.status == TaskStatus.BOUND)
        running_or_bound &= (tasks.node >= 0) & (tasks.job >= 0) & (tasks.traits & TaskTrait.PREEMPTABLE.value > 0)
        rows = np.flatnonzero(running_or_bound)
        rows = rows[self.state.jobs.rules.present[tasks.job[rows]]]
        return VictimCandidates(self.state, rows, np.zeros(len(rows), dtype=np.intp))

    @cached_property
    def _running_or_bound(self) -> Rows:
        """The running and bound tasks of jobs with a PodGroup that are preemptable, by queue, the first victim first.

        Within a queue they are in the order of `in_order`: what a plugin permits only in part goes to the first ones.
        """
        rows = OrderedTasks(self.hooks.orders, self.unordered.rows).rows[::-1]
        queues = self.state.queue_of_job[self.state.tasks.job[rows]]
        return self.hooks.orders.last_tasks_merged(rows, [queues, *self._last_jobs_first(rows)])

    @cached_property
    def all(self) -> VictimCandidates:
        """All victim candidates at the first use, grouped by node."""
        nodes = self.state.tasks.node[self._running_or_bound]
        order = np.argsort(nodes, kind="stable")
        return VictimCandidates(self.state, self._running_or_bound[order], nodes[order].astype(np.intp))

    @cached_property
    def with_candidates(self) -> Bools:
        """The jobs that have candidates, (n_jobs,)."""
        return np.bincount(self.unordered.jobs, minlength=len(self.state.jobs)) > 0

    def of_preemptable_jobs(self) -> VictimCandidates:
        """Return those of `all` that are still running or bound and whose PodGroup does not forbid preemption."""
        running_or_bound = self.all.running_or_bound()
        return running_or_bound.only(~self._not_preemptable_jobs[running_or_bound.jobs])

    @cached_property
    def _not_preemptable_jobs(self) -> Bools:
        # A Python loop over the records of jobs, once in a session with an action for gangs.
        return np.array([record is not None and record.preemptable is False for record in self.state.jobs.records])

    def lent_to(self, queue: QueueInfo, candidates: VictimCandidates) -> Bools:
        """Return which candidates are running in other queues that are reclaimable, shape (n,)."""
        queues = self.state.queues.values()
        lenders = np.array([other.record.reclaimable and other is not queue for other in queues], dtype=bool)
        lent = (candidates.queues >= 0) & lenders[candidates.queues]
        return np.asarray(lent & (self.state.tasks.status[candidates.rows] == TaskStatus.RUNNING))

    # Order

    def in_order(self, preemptor: QueueInfo, rows: Rows) -> Rows:
        """Return task rows in order of eviction, the first victim first.

        The tasks that `VictimQueueOrder.loses_first` names come first. Then queues are ordered by `VictimQueueOrder`,
        else in reverse queue order. The jobs of a queue are in reverse order of the plugins' keys. The tasks of jobs
        with equal keys are in reverse task order, whichever job they belong to. (Volcano: BuildVictimsPriorityQueue.)
        """
        if len(rows) < 2:
            return rows
        return self.hooks.orders.last_tasks_first(rows, [self.ranks(preemptor, rows), *self._last_jobs_first(rows)])

    def _last_jobs_first(self, rows: Rows) -> list[Floats]:
        """Return the plugins' keys for the jobs of tasks (n,) in reverse, each (n,): the lowest is evicted first."""
        jobs, which = np.unique(self.state.tasks.job[rows], return_inverse=True)
        return [-key[which] for key in self.hooks.orders.plugin_job_keys(jobs.astype(np.intp))]

    def ranks(self, preemptor: QueueInfo, rows: Rows) -> Rows:
        """Return for each task (n,) the place of its queue in the order in which queues lose tasks, shape (n,)."""
        candidates = VictimCandidates(self.state, rows, np.zeros(len(rows), dtype=np.intp))
        ranks = self._queue_rank(preemptor, candidates.queues)
        for point in self._queue_order:
            try:
                first = point.other("loses_first")(preemptor, candidates)
            except PluginFailed as failure:
                self.hooks.ignore(failure)
                continue
            if first is not None:
                ranks = np.where(first, ranks - len(self.state.queues), ranks)
        return ranks

    def _queue_rank(self, preemptor: QueueInfo, queues: Rows) -> Rows:
        """Return the place of each of these queues (n,) in the order in which queues lose tasks, shape (n,)."""
        distinct, which = np.unique(queues, return_inverse=True)
        if len(distinct) < 2:
            return which
        infos = list(self.state.queues.values())
        keys = self._queue_keys(preemptor)
        by_keys = None if keys is None else [tuple(column) for column in keys[:, distinct].T.tolist()]

        def compare(left: int, right: int) -> int:
            one, other = infos[distinct[left]], infos[distinct[right]]
            if by_keys is None:
                opinion = combine.first_difference(self._queue_order, one, other, preemptor, ignore=self.hooks.ignore)
            else:
                opinion = (by_keys[left] > by_keys[right]) - (by_keys[left] < by_keys[right])
            if opinion:
                return -1 if opinion < 0 else 1
            return 1 if self.hooks.orders.queue_before(one, other) else -1

        rank = np.empty(len(distinct), dtype=np.intp)
        rank[sorted(range(len(distinct)), key=cmp_to_key(compare))] = np.arange(len(distinct))
        return rank[which]

    def _queue_keys(self, preemptor: QueueInfo) -> Floats | None:
        """Return the plugins' keys for which queue loses first, (n_keys, n_queues); None if a plugin has none."""
        found: list[Floats] = []
        for point in self._queue_order:
            try:
                keys = point.other("victim_queue_keys")(preemptor)
            except PluginFailed as failure:
                self.hooks.ignore(failure)
                return None
            if keys is None:
                return None
            found.append(keys)
        return np.concatenate(found) if found else np.zeros((0, len(self.state.queues)))


def _only_protects(plugin: Plugin) -> bool:
    """Say whether a plugin answers none of the questions about victims, so that its filter applies to all of them."""
    return not isinstance(plugin, tuple(_METHODS))


def _voters(tiers: list[list[Point]]) -> list[list[Point]]:
    """Return the plugins whose votes count; see `Plugin.protects`."""
    voters = [[point for point in tier if not point.plugin.protects] for tier in tiers]
    return voters if any(voters) else tiers
