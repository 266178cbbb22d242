"""A plan of evictions: the victims that let tasks of one job get nodes, proved before any of them is evicted.

1. Search. Each task gets a node without an eviction if there is one, as allocate would choose it. Otherwise nodes are
   tried in order. On each node the victims that plugins allow are evicted one after the other, in the order of
   `Eviction.in_order`, until the task fits, its queue may hold it and every predicate passes (Volcano: normalPreempt).
2. Proof. All placements are undone, and then made again with all victims evicted, by the rules of allocate: the queue
   is not overused and may hold the tasks, each task fits its node, predicates pass. The job must then have its minimum,
   and each task beyond it must hold by itself. JobPipelined must also say yes, which alone is not enough.
3. Trimming. In reverse order of eviction, each victim is put back if the same placements still hold without its
   eviction. So no victim is evicted in vain: every remaining one was needed when even fewer were put back.
4. Commit. All evictions and nominations are one batch. A plan without victims is left to allocate: it keeps its room
   from later plans of the action, and is withdrawn when the action ends.
"""

import heapq
from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import chain, count, groupby, islice
from typing import Final

import numpy as np

from volcano_py.framework.contract import combine
from volcano_py.framework.contract.extension_points import Preemptor, Purpose
from volcano_py.framework.contract.victim_candidates import Earlier, VictimCandidates
from volcano_py.framework.evicting.batch_preemption import NodesInOrder, Steps, preempt_in_batches
from volcano_py.framework.evicting.bundles import safe_in_groups
from volcano_py.framework.evicting.displaced import candidates_for
from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.evicting.futile import plan_class
from volcano_py.framework.evicting.minimum import greatest_gains
from volcano_py.framework.evicting.pick_one_node import order_by_victims
from volcano_py.framework.evicting.planned import Placed, loads_of
from volcano_py.framework.placing.placement import Placement
from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.framework.state.statement import Cause, Statement
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.columns import NodeColumns

_FIRST_LOOK: Final = 32  # nodes about which plugins are asked first; each further look takes four times as many
_WALKS: Final = 64  # nodes on which evictions are tried for one task before the plan gives up on the task

PlaceGang = Callable[[Statement, Rows], bool]
"""Places tasks of a gang with a statement; says whether the gang then has its minimum once all room is free."""


class Plan:
    """Evictions for one job, on one statement."""

    def __init__(
        self,
        eviction: Eviction,
        purpose: Purpose,
        queue: QueueInfo,
        job: JobInfo,
        candidates: VictimCandidates,
        blind: bool = False,
        compared: int = 0,
        *,
        for_gang: bool = False,
        place_gang: PlaceGang | None = None,
    ) -> None:
        """Take the preemptor, and the candidates grouped by node.

        ``blind`` leaves out nodes that refuse the task now, even if evictions might change that. ``compared`` is how
        many nodes, the first in order, are compared by their victims before they are tried (`pick_one_node`).
        ``for_gang`` asks plugins as the actions for gangs do, about tasks that are safe to evict (`bundles`).
        ``place_gang`` finds the nodes of a whole gang; None: each task is placed where it fits best.
        """
        self._eviction = eviction
        self._purpose = purpose
        self._queue = queue
        self._job = job
        self._bound = len(eviction.pending_evictions.preemptors(job)) > 0
        self._candidates = candidates_for(eviction, job, candidates)
        self._blind = blind
        self._compared = compared
        self._for_gang = for_gang
        self._place_gang = place_gang
        self.statement = eviction.hooks.statement()
        self._start = self.statement.checkpoint()
        self._given_up: dict[int, int] = {}  # shape -> number of victims when a task of it found no node
        self._needed = max(1, eviction.missing_once_free(job))
        # How many placements complete the minimum; -1: not complete yet.
        self._minimum = 0 if eviction.missing_once_free(job) == 0 else -1
        self._plan_class: Hashable | None = None
        self._held = eviction.state.jobs.taken[:, job.row].copy()  # what the job holds before the plan
        self._gains: Floats | None = None  # the most that the minimum adds to the job

    # Search

    def fill(
        self, tasks: Rows, may_preempt: Callable[[int, int], bool] | None = None, *, starving_or_not: bool = False
    ) -> None:
        """Find nodes for pending tasks of the job, in order, as long as it starves.

        ``may_preempt`` says of a shape and a number whether that many more tasks of it may be placed at all.
        """
        eviction = self._eviction
        self._gains = greatest_gains(eviction.state, self._job, tasks, self._needed)
        self._plan_class = self._plan_class_of(tasks) if eviction.starving(self._job) else None
        if self._plan_class is not None and eviction.plan_results.fails(self._plan_class, self._needed):
            return
        shapes = eviction.state.tasks.shape[tasks]
        start = 0
        # A Python loop over the job's tasks, by runs of equal ones as far as its minimum needs them.
        while start < len(tasks) and (starving_or_not or eviction.starving(self._job)):
            shape_id = int(shapes[start])
            other = np.flatnonzero(shapes[start:] != shape_id)
            run = int(other[0]) if len(other) else len(tasks) - start
            needed = min(run, eviction.missing_once_free(self._job)) if self._minimum < 0 else 0
            if needed > 1 and (may_preempt is None or may_preempt(shape_id, needed)):
                done = self.place_needed(tasks[start : start + needed])
                start += done
                if done:
                    continue
            if may_preempt is None or may_preempt(shape_id, 1):
                self.place(int(tasks[start]))
            start += 1

    def _plan_class_of(self, tasks: Rows) -> Hashable | None:
        """Return all that a plan for these tasks depends on besides their number; None if it depends on more.

        There is a class for a job that holds nothing and whose tasks are equal, if no nominated room is open to it and
        all plugins state that they read nothing else (`Plugin.counts`).
        """
        eviction, job = self._eviction, self._job
        shapes, priorities = eviction.state.tasks.shape[tasks], eviction.state.tasks.priority[tasks]
        alike = (shapes == shapes[0]).all() and (priorities == priorities[0]).all()
        if not alike or self._bound or eviction.state.jobs.taken[:, job.row].any():
            return None
        if eviction.room.may_be_opened[job.row]:
            return None
        if job.record.role_rule or len(tasks) < self._needed:
            return None
        if not eviction.all_count(self._purpose, for_gang=self._for_gang):
            return None
        return plan_class(self._purpose, self._queue.row, int(shapes[0]), int(priorities[0]), job.record.priority)

    def place(self, task: int) -> bool:
        """Find a node for a pending task of the job, with evictions if necessary; say whether there is one."""
        shape_id = int(self._eviction.state.tasks.shape[task])
        n_victims = len(self.statement.evicted)
        if self._given_up.get(shape_id, -1) == n_victims:
            return False
        if not (self._place_freely(task, shape_id) or self._place_with_evictions(task, shape_id)):
            self._given_up[shape_id] = n_victims
            return False
        if self._minimum < 0 and self._eviction.missing_once_free(self._job) == 0:
            self._minimum = len(self.statement)
        return True

    def place_needed(self, tasks: Rows) -> int:
        """Find nodes for pending tasks of one shape that the job's minimum needs, in order; return how many got one.

        It does what `place` does, but for many tasks at a time where plugins allow it (`batch_preemption`).
        """
        eviction, shape_id = self._eviction, int(self._eviction.state.tasks.shape[tasks[0]])
        info, priorities = eviction.state.task_of(shape_id), eviction.state.tasks.priority[tasks]
        done = 0
        while done < len(tasks) and self._place_freely(int(tasks[done]), shape_id):
            done += 1
        in_batches = eviction.placement.one_changes_one(shape_id) and not self._compared
        in_batches = in_batches and eviction.all_count(self._purpose, for_gang=self._for_gang)
        if len(tasks) - done > 1 and in_batches and (priorities == priorities[0]).all():
            done += preempt_in_batches(
                eviction, self.statement, self._batch_steps(), info, int(priorities[0]), tasks[done:]
            )
        if self._minimum < 0 and done and eviction.missing_once_free(self._job) == 0:
            self._minimum = len(self.statement)
        return done

    def _batch_steps(self) -> Steps:
        return Steps(self.preemptor, self.nodes_in_order, self.allowed, self.fitting, self.promise)

    def _place_freely(self, task: int, shape_id: int) -> bool:
        if not self._eviction.hooks.allocatable(self._queue, self._eviction.state.task_of(shape_id), 1):
            return False
        node = self._eviction.placement.best_node(shape_id)
        if node is None:
            return False
        self.promise(np.array([task]), shape_id, np.array([node]))
        return True

    def promise(self, tasks: Rows, shape_id: int, nodes: Rows) -> None:
        """Promise tasks of one shape their nodes."""
        self.statement.pipeline(self._job.row, shape_id, tasks, nodes)

    def _place_with_evictions(self, task: int, shape_id: int) -> bool:
        info = self._eviction.state.task_of(shape_id)
        preemptor = self.preemptor(info, int(self._eviction.state.tasks.priority[task]))
        chances = self._chances(preemptor, info)
        best = order_by_victims(self._eviction, self._queue, info, list(islice(chances, self._compared)))
        for node, victims in islice(chain(best, chances), max(_WALKS, len(best))):
            if self._walk(info, node, self._eviction.in_order(self._queue, victims)):
                self.promise(np.array([task]), shape_id, np.array([node]))
                return True
        return False

    def preemptor(self, info: TaskInfo, priority: int) -> Preemptor:
        """Return the preemptor at the present state of the plan: it needs the minimum, or one task beyond it."""
        gains, given = info.request, None
        if self._minimum < 0 and self._gains is not None:
            gains, given = self._gains, self._eviction.state.jobs.taken[:, self._job.row] - self._held
        return Preemptor(self._purpose, self._job, self._queue, info, priority, gains, given)

    def allowed(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Return which candidates may be evicted for the task of a preemptor, shape (n,)."""
        if not self._for_gang:
            return self._eviction.allowed(preemptor, candidates)
        allowed = safe_in_groups(self._eviction, candidates)
        allowed[allowed] = self._eviction.allowed_for_gang(preemptor, candidates.only(allowed))
        return allowed

    def nodes_in_order(self, info: TaskInfo) -> NodesInOrder | None:
        """Return the nodes to try, first to last, and the candidates there; None if no eviction helps.

        On each of these nodes there is enough room if all candidates are evicted.
        """
        eviction = self._eviction
        candidates = self._present(info)
        if not len(candidates):
            return None
        scores = eviction.candidate_nodes(info.shape_id).scores
        worth_trying = (scores > -np.inf) & info.fit.fits(eviction.state.nodes.future_idle + self._sums(candidates))
        worth_trying &= np.bincount(candidates.groups, minlength=len(eviction.state.nodes)) > 0
        if self._blind:
            worth_trying &= ~_refused(eviction, info, eviction.state.nodes)
        candidates = candidates.only(worth_trying[candidates.groups])
        if not len(candidates):
            return None
        turns = self._turns(candidates)
        nodes = _by_score(eviction.placement, np.where(worth_trying, scores, -np.inf))
        starts = np.flatnonzero(np.diff(candidates.groups, prepend=-1))
        first = np.full(len(eviction.state.nodes), np.iinfo(np.intp).max)
        first[candidates.groups[starts]] = np.minimum.reduceat(turns, starts)
        return NodesInOrder(nodes[np.argsort(first[nodes], kind="stable")], candidates, turns, first)

    def _turns(self, candidates: VictimCandidates) -> Rows:
        """Return the turn of each candidate (n,): by the set of its node, then by the order in which queues lose tasks.

        Only `Purpose.RECLAIM` has an order of queues.
        """
        places = self._eviction.placement.node_sets.places(candidates.groups)
        if self._purpose is not Purpose.RECLAIM:
            return places
        return places * (2 * len(self._eviction.state.queues)) + self._eviction.ranks(self._queue, candidates.rows)

    def _chances(self, preemptor: Preemptor, info: TaskInfo) -> Iterator[tuple[int, Rows]]:
        """Yield nodes in order, each with its allowed victims, if all of these together free enough room.

        The node whose first allowed victim has the first turn comes first.
        """
        found = self.nodes_in_order(info)
        if found is None:
            return
        nodes = found.nodes
        seen: list[tuple[int, int, int, Rows]] = []  # a heap by the turn of the first allowed victim, then in order
        places = count()
        start, size = 0, _FIRST_LOOK
        while start < len(nodes):
            for node, turn, victims in self._chances_on(preemptor, info, nodes[start : start + size], found):
                heapq.heappush(seen, (turn, next(places), node, victims))
            start, size = start + size, size * 4
            while seen and (start >= len(nodes) or seen[0][0] <= found.first[nodes[start]]):
                _, _, node, victims = heapq.heappop(seen)
                yield node, victims

    def _chances_on(
        self, preemptor: Preemptor, info: TaskInfo, nodes: Rows, found: NodesInOrder
    ) -> Iterator[tuple[int, int, Rows]]:
        """Yield nodes in order, with the first turn of their allowed victims and these victims, if they are enough."""
        chosen = np.zeros(len(self._eviction.state.nodes), dtype=bool)
        chosen[nodes] = True
        chosen = chosen[found.candidates.groups]
        asked = found.candidates.only(chosen)
        agreed = self.allowed(preemptor, asked)
        allowed, turns = asked.only(agreed), found.turns[chosen][agreed]
        enough = info.fit.fits((self._eviction.state.nodes.future_idle + self._sums(allowed))[:, nodes])
        bounds = np.searchsorted(allowed.groups, np.stack((nodes, nodes + 1)))
        for node, fits, start, end in zip(nodes.tolist(), enough.tolist(), *bounds.tolist(), strict=True):
            if fits and end > start:
                yield node, int(turns[start:end].min()), allowed.rows[start:end]

    def _present(self, info: TaskInfo) -> VictimCandidates:
        """Return the candidates that are still running or bound; a best-effort task preempts only best-effort ones."""
        present = self._candidates.running_or_bound()
        if not info.shape.best_effort:
            return present
        return present.only(self._eviction.state.classes.best_effort[self._eviction.state.tasks.shape[present.rows]])

    def _sums(self, candidates: VictimCandidates) -> Floats:
        """Return what the candidates of each node hold, shape (n_resources, n_nodes)."""
        n = len(self._eviction.state.nodes)
        return np.array([np.bincount(candidates.groups, row, n) for row in candidates.requests])

    def _walk(self, info: TaskInfo, node: int, victims: Rows) -> bool:
        """Evict in order until a task like this one could be placed on the node; undo everything if that fails."""
        statement, eviction = self.statement, self._eviction
        eviction.state.report.preemption_attempts += 1
        checkpoint = statement.checkpoint()
        room = eviction.state.nodes.future_idle[:, node, None] + np.cumsum(
            eviction.state.classes.requests[:, eviction.state.tasks.shape[victims]], axis=1
        )
        first = int(info.fit.fits(room).argmax()) + 1  # how many must be evicted to free enough resources
        statement.evict(victims[:first])
        if self._placeable(info, node):
            return True
        statement.evict(victims[first:])
        if len(victims) == first or not self._placeable(info, node):
            statement.rollback(checkpoint)
            return False
        # All victims are enough but the first few are not: evict the others one by one.
        statement.rollback(checkpoint)
        statement.evict(victims[:first])
        for victim in victims[first:].tolist():
            statement.evict(np.array([victim]))
            if self._placeable(info, node):
                return True
        statement.rollback(checkpoint)
        return False

    def _placeable(self, info: TaskInfo, node: int) -> bool:
        if not self._eviction.hooks.allocatable(self._queue, info, 1):
            return False
        view = self._eviction.state.nodes.rows_view(np.array([node]))
        return bool(info.fit.fits(view.future_idle)[0]) and not _refused(self._eviction, info, view).any()

    def retry(self, victims: Rows, tasks: Rows) -> bool:
        """Start again: evict victims and place these tasks, in order, until the job has its minimum; say if it has.

        If the job had its minimum before, one task is placed.
        """
        self.statement.rollback(self._start)
        self._minimum = -1
        if len(victims):
            self.statement.evict(victims)
        if self._place_gang is not None:
            if self._place_gang(self.statement, tasks):
                self._minimum = len(self.statement)
            return self._minimum >= 0
        failed: set[int] = set()  # shapes of which no further task finds a node
        # A Python loop over the tasks that a gang lacks.
        for task in tasks.tolist():
            shape_id = int(self._eviction.state.tasks.shape[task])
            if shape_id in failed:
                continue
            if not self._place_freely(task, shape_id):
                failed.add(shape_id)
            elif self._eviction.missing_once_free(self._job) == 0:
                self._minimum = len(self.statement)
                return True
        return False

    # Proof

    def conclude(self, cause: Cause, units: Sequence[Rows] | None = None) -> int:
        """Prove the plan, put back the victims that are not needed, and commit; return how many tasks get nodes.

        A plan that found no node, or whose proof fails, is abandoned. ``units`` are the victims that are evicted or put
        back together, in order of eviction; None: each victim alone.
        """
        eviction, statement = self._eviction, self.statement
        planned = [Placed(task, int(eviction.state.tasks.shape[task]), node) for task, node in statement.placed]
        victims = np.array(statement.evicted, dtype=np.intp)
        statement.rollback(self._start)
        if not planned or self._minimum < 0:
            eviction.plan_results.failure(self._plan_class, self._needed)
            self.abandon()
            return 0
        if len(victims):
            statement.evict(victims)
        checkpoint = statement.checkpoint()
        proved = self._replay(planned)
        if proved < max(self._minimum, 1) or not self._whole():
            self.abandon()
            return 0
        planned = planned[:proved]
        statement.rollback(checkpoint)
        self._trim(planned, list(victims.reshape(-1, 1)) if units is None else units)
        self._replay(planned)
        eviction.plan_results.success(evicts=bool(statement.evicted))
        if statement.evicted:
            eviction.pending_evictions.add(self._job, statement.evicted)
            statement.commit(cause)
        else:
            eviction.free_rooms.append(statement)
        return proved

    def abandon(self) -> None:
        """Undo everything."""
        self.statement.rollback(self._start)

    def _trim(self, planned: list[Placed], units: Sequence[Rows]) -> None:
        """Put back the victims that are not needed, the last victims first; nothing is placed before and after."""
        eviction, statement = self._eviction, self.statement
        loads = loads_of(eviction, planned)
        checkpoint = statement.checkpoint()
        # A Python loop over the victims: for most it is clear at once that their node needs the room.
        for unit in reversed([unit.tolist() for unit in units]):
            if any(
                (load := loads.get(int(eviction.state.tasks.node[victim]))) is not None
                and not load.leaves(eviction, eviction.state.classes.requests[:, eviction.state.tasks.shape[victim]])
                for victim in unit
            ):
                continue
            for victim in unit:
                statement.put_back(victim)
            without = statement.checkpoint()
            if self._replay(planned) == len(planned) and self._whole():
                checkpoint = without
            statement.rollback(checkpoint)

    def _whole(self) -> bool:
        return self._eviction.missing_once_free(self._job) == 0 and self._eviction.hooks.job_pipelined(self._job)

    def _replay(self, planned: list[Placed]) -> int:
        """Make placements again as allocate would; return how many could be made, in order.

        The tasks of the minimum are placed together, and each task beyond it by itself.
        """
        parts = [planned[: self._minimum], *([task] for task in planned[self._minimum :])]
        done = 0
        for part in parts:
            if not part:
                continue
            count = 0 if self._eviction.hooks.overused(self._queue) else self._replay_part(part)
            done += count
            if count < len(part):
                break
        return done

    def _replay_part(self, part: list[Placed]) -> int:
        done = 0
        for shape_id, group in groupby(part, key=lambda placed: placed.shape_id):
            run = list(group)
            tasks = np.array([placed.task for placed in run], dtype=np.intp)
            nodes = np.array([placed.node for placed in run], dtype=np.intp)
            count = self._replay_run(shape_id, tasks, nodes)
            done += count
            if count < len(run):
                break
        return done

    def _replay_run(self, shape_id: int, tasks: Rows, nodes: Rows) -> int:
        done = 0
        while done < len(tasks) and (count := self.fitting(shape_id, nodes[done:])):
            self.promise(tasks[done : done + count], shape_id, nodes[done : done + count])
            done += count
        return done

    def fitting(self, shape_id: int, nodes: Rows) -> int:
        """Return how many tasks of one shape fit on these nodes, in this order; it may try only the first node."""
        eviction, info = self._eviction, self._eviction.state.task_of(shape_id)
        allowed = eviction.hooks.allocatable(self._queue, info, len(nodes))
        if not eviction.placement.one_changes_one(shape_id):  # each placement may change the answers about the next
            return int(allowed > 0 and self._placeable(info, int(nodes[0])))
        earlier = Earlier(np.zeros(len(nodes), dtype=np.intp), nodes).count()
        delta, _ = eviction.state.classes.deltas(shape_id, TaskStatus.PIPELINED)
        view = eviction.state.nodes.after(nodes, earlier, delta)
        fits = info.fit.fits(view.future_idle) & ~_refused(eviction, info, view)
        return min(allowed, len(nodes) if fits.all() else int(fits.argmin()))


def _by_score(placement: Placement, scores: Floats) -> Rows:
    """Return the nodes that have a score (n_nodes,), the best first, equal ones in tie order."""
    order = np.arange(len(scores)) if placement.tie_order is None else placement.tie_order
    order = order[scores[order] > -np.inf]
    return np.asarray(order[np.argsort(-scores[order], kind="stable")])


def _refused(eviction: Eviction, info: TaskInfo, view: NodeColumns) -> Bools:
    """Return which nodes of a view of the session's nodes refuse a task like this one, shape (n,)."""
    refused = combine.refused(eviction.hooks.nodes.predicates, len(view), info, view)
    inter_pod_filters = eviction.placement.inter_pod_filters(info.shape_id)
    allowed = None if inter_pod_filters is None else inter_pod_filters.allowed()
    if allowed is None:
        return np.zeros(len(view), dtype=bool) if refused is None else refused
    kept_out: Bools = ~(allowed if view.rows is None else allowed[view.rows])
    return kept_out if refused is None else kept_out | refused
