"""Choosing nodes for tasks of one shape: one by one, many with a heap, or recomputed; always the greedy answer.

Greedy means: each task goes to the feasible node with the highest score, ties in tie order (by node name, or shuffled
by the seed). If answers depend on the node alone, placing a task changes only the node it goes to. So k placements can
only change the k best nodes of the first ranking. A heap over (node, number of tasks already placed there) then yields
exactly what one-by-one greedy would, at the price of a few array operations for the whole gang.
"""

import heapq
from collections import OrderedDict
from collections.abc import Callable, Hashable
from math import inf
from typing import Final, Protocol

import numpy as np

from volcano_py.framework.contract.normalization import HighestWatch
from volcano_py.framework.hooks.hooks import Hooks
from volcano_py.framework.placing.inter_pod_filter import InterPodFilters, depends_on_others, inter_pod_filters_of
from volcano_py.framework.placing.node_ranking import NodeRanking
from volcano_py.framework.placing.node_sets import NodeSets
from volcano_py.framework.placing.raw_scores import RawScores
from volcano_py.framework.placing.refusals import explain
from volcano_py.framework.placing.statically_infeasible import StaticallyInfeasible
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.framework.state.statement import Statement
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.rejections import Rejection
from volcano_py.model.statuses import TaskStatus

_SCORES_KEPT: Final = 2**24  # 128 MiB: rankings with this many scores are kept, those of the shapes used last
_RANKINGS_AT_LEAST: Final = 64
_MOST_INFEASIBLE: Final = 256
_LEVELS_AT_ONCE: Final = 64  # how many levels of one node are computed at a time
_FARTHER: Final = 4  # a run of one shape is chosen this many times as far ahead as the last one
_FAR: Final = 64  # the most tasks for which a run is chosen ahead
_FIRST_LOOK: Final = 1024  # nodes times levels that are computed first, unless an even spread needs more


class _Run:
    """Nodes that the next tasks of one shape go to, as long as nothing else changes."""

    __slots__ = ("ahead", "nodes", "shape_id", "stamp", "used")

    def __init__(self) -> None:
        self.begin(-1, np.zeros(0, dtype=np.intp), 0, 0)

    def begin(self, shape_id: int, nodes: Rows, used: int, ahead: int) -> None:
        """Start a new run."""
        self.shape_id = shape_id
        self.nodes = nodes
        self.used = used  # how many of the nodes have been used
        self.ahead = ahead  # for how many tasks the nodes were chosen
        self.stamp = -1  # `Journal.n_touched` after the last placement from this run


Addition = Callable[[Bools], Floats | None]
"""Returns what is added to the scores of a group of nodes, shape (n_nodes,); None for nothing."""


class Ranked(Protocol):
    """A ranking of nodes as far as the choice of nodes reads it; see `NodeRanking`."""

    @property
    def ranked(self) -> Floats:
        """A score per node, minus infinity where a task may not go, shape (n_nodes,)."""

    def after(self, rows: Rows, copies: Ints, delta: Floats) -> Floats:
        """Return what the scores of these nodes would be with more tasks on them, shape (n_rows,)."""

    def watch(self, nodes: Rows) -> HighestWatch | None:
        """Return a watch that says whether a node that becomes infeasible changes the scores of others."""


class _WithAddition:
    """A ranking whose scores have an addition that does not change while nodes are chosen."""

    __slots__ = ("_added", "_ranking", "ranked")

    def __init__(self, ranking: NodeRanking, added: Floats) -> None:
        self._ranking = ranking
        self._added = added
        self.ranked: Floats = ranking.ranked + added

    def after(self, rows: Rows, copies: Ints, delta: Floats) -> Floats:
        return self._ranking.after(rows, copies, delta) + self._added[rows]

    def watch(self, nodes: Rows) -> HighestWatch | None:
        return self._ranking.watch(nodes)


class Placement:
    """Places runs of identical tasks on the nodes of a session."""

    def __init__(self, state: State, hooks: Hooks, node_sets: NodeSets, tie_order: Rows | None) -> None:
        """Take the sets of nodes to try, and the order in which ties are broken (n_nodes,), None for that of rows."""
        self.node_sets = node_sets
        self.tie_order = tie_order
        self.raw_scores = RawScores(state, hooks.nodes.normalized_orders)
        self._state = state
        self._hooks = hooks
        self._rankings = [OrderedDict[int, NodeRanking]() for _ in node_sets.sets]  # by set of nodes, then shape
        self._most_rankings = max(_SCORES_KEPT // max(len(state.nodes), 1), _RANKINGS_AT_LEAST)
        self._looked_ahead = state.looks_ahead
        self._infeasible: dict[Hashable, StaticallyInfeasible] = {}  # by static part and set of nodes
        self._inter_pod_filters: dict[int, InterPodFilters | None] = {}
        self._nowhere = np.full(max(len(state.nodes), 1), -np.inf)  # (n_nodes,), read only
        self._everywhere = np.ones(len(state.nodes), dtype=bool)
        self._run = _Run()

    def within(self, mask: Bools) -> "Placement":
        """Return a placement on those of its nodes that are in a mask, shape (n_nodes,)."""
        return Placement(self._state, self._hooks, self.node_sets.within(mask), self.tie_order)

    def forget(self) -> None:
        """Forget all rankings: each is computed again when it is needed."""
        for rankings in self._rankings:
            rankings.clear()
        self._run.stamp = -1

    def _look_ahead(self) -> None:
        """Rank all nodes anew: something is released or promised now that was not before."""
        self._looked_ahead = self._state.looks_ahead
        self.forget()

    def ranking(self, shape_id: int, node_set: int = 0) -> NodeRanking:
        """Return the up-to-date ranking of the nodes of a set for tasks of a class."""
        if self._looked_ahead is not self._state.looks_ahead:
            self._look_ahead()
        rankings = self._rankings[node_set]
        found = rankings.get(shape_id)
        if found is None:
            if len(rankings) >= self._most_rankings:
                rankings.popitem(last=False)
            found = rankings[shape_id] = self.rank(self._state.task_of(shape_id), node_set)
        else:
            found.refresh()
        return found

    def rank(self, task: TaskInfo, node_set: int = 0) -> NodeRanking:
        """Rank the nodes of a set for tasks like this one; `ranking` keeps what this returns."""
        stopwatch = self._state.clock.stopwatch
        started = stopwatch()
        infeasible = self.statically_infeasible(task, node_set)
        filters = self.inter_pod_filters(task.shape_id)
        filtered = stopwatch()
        scores = self.raw_scores.of(task, infeasible)
        raw = stopwatch()
        found = NodeRanking(
            self._state, self._hooks.nodes, task, infeasible.nodes, filters, scores, self._explain, self._nowhere
        )
        scored_s = found.scored_s
        rest = stopwatch() - raw - (scored_s or 0.0)
        self._state.report.rankings.append(
            (filtered - started + rest, None if scored_s is None else raw - filtered + scored_s)
        )
        return found

    def fits_somewhere(self, shape_id: int) -> bool:
        """Say whether a node takes a task of this shape now, or once what is being released is free."""
        for group in range(len(self._rankings)):
            ranking = self.ranking(shape_id, group)
            if (ranking.ranked > -inf).any() or (self._state.looks_ahead and (ranking.future > -inf).any()):
                return True
        return False

    def room(self, shape_id: int) -> float:
        """Return how many tasks of this shape, one after another, find a node at most: a bound, by resources alone."""
        nodes, feasible = self._state.nodes, np.zeros(len(self._state.nodes), dtype=bool)
        for group in range(len(self._rankings)):
            ranking = self.ranking(shape_id, group)
            feasible |= ranking.ranked > -inf
            if self._state.looks_ahead:
                feasible |= ranking.future > -inf
        # While something is released or promised, a task must also fit once every promise is kept.
        available = nodes.future_idle if self._state.looks_ahead else nodes.idle
        return float(self._state.task_of(shape_id).fit.most(available[:, feasible]).sum())

    def rejection(self, shape_id: int) -> Rejection:
        """Return why no node takes a task of this shape now."""
        return self.ranking(shape_id).rejection()

    def _explain(self, task: TaskInfo, promises: bool) -> Rejection:
        return explain(self._state, self._hooks.nodes, self.node_sets, task, promises=promises)

    def statically_infeasible(self, task: TaskInfo, node_set: int | None = None) -> StaticallyInfeasible:
        """Return where tasks like this one can never go in this session, of a set of nodes or (None) of all."""
        mask = None if node_set is None else self.node_sets.sets[node_set].mask
        key = self._hooks.nodes.static_part(task.shape), None if mask is None else node_set
        found = self._infeasible.get(key)
        if found is None:
            nodes = (self._hooks.nodes.static_verdicts(task) != 0) | self.node_sets.shut
            if mask is not None:
                nodes |= ~mask
            if len(self._infeasible) >= _MOST_INFEASIBLE:
                self._infeasible.clear()
            found = self._infeasible[key] = StaticallyInfeasible(nodes)
        return found

    def inter_pod_filters(self, shape_id: int) -> InterPodFilters | None:
        """Return the inter-pod filters and scores of a class, None if other pods make no difference to it."""
        state = self._state
        if state.topology_counts is None and state.volumes is None:
            return None
        if shape_id not in self._inter_pod_filters:
            task, found = state.task_of(shape_id), None
            if depends_on_others(state, task):
                found = inter_pod_filters_of(len(state.nodes), self._hooks.nodes, task)
            self._inter_pod_filters[shape_id] = found
        return self._inter_pod_filters[shape_id]

    def one_changes_one(self, shape_id: int) -> bool:
        """Say whether placing a task of a shape changes, for the next one, only the node it goes to."""
        by_leaf = self._hooks.nodes.leaf_orders and self._leaf_order(shape_id)(self._everywhere) is not None
        return not by_leaf and self._but_for_leaves(shape_id)

    def _but_for_leaves(self, shape_id: int) -> bool:
        """Say the same of everything but what domains hold."""
        inter_pod_filters = self.inter_pod_filters(shape_id)
        return self._hooks.nodes.node_local(shape_id) and not (
            inter_pod_filters is not None and inter_pod_filters.own_pods_matter
        )

    def best_node(self, shape_id: int) -> int | None:
        """Return where `place` would put or promise a task of this shape; None for nowhere."""
        if self._hooks.nodes.leaf_orders:
            nodes = self.nodes_with(self._leaf_order(shape_id), shape_id, 1)
            return int(nodes[0]) if len(nodes) else self.future_node_with(self._leaf_order(shape_id), shape_id)
        for group in range(len(self._rankings)):
            node = self._best(self.ranking(shape_id, group).ranked)
            if node is not None:
                return node
        return self._best_future(shape_id)

    def _best_future(self, shape_id: int) -> int | None:
        """Return the best node where a task of this shape fits what is being released; None for nowhere."""
        return self.future_node_with(None, shape_id)

    def nodes_with(self, added: Addition, shape_id: int, wanted: int) -> Rows:
        """Return the nodes that greedy would pick now for ``wanted`` tasks of a shape if their scores had an addition.

        At most ``wanted`` nodes are returned, and at least one if any fits.
        """
        if self._looked_ahead is not self._state.looks_ahead:
            self._look_ahead()
        nodes = np.zeros(0, dtype=np.intp)
        for group in range(len(self._rankings)):
            if not len(nodes):
                ranking = self.ranking(shape_id, group)
                extra = added(ranking.ranked > -np.inf)
                nodes = self._choose(ranking if extra is None else _WithAddition(ranking, extra), shape_id, wanted)
        return nodes

    def future_node_with(self, added: Addition | None, shape_id: int) -> int | None:
        """Return the best node where a task of this shape fits what is being released; None for nowhere."""
        if self._state.looks_ahead:
            for group in range(len(self._rankings)):
                future = self.ranking(shape_id, group).future
                extra = None if added is None else added(future > -np.inf)
                node = self._best(future if extra is None else future + extra)
                if node is not None:
                    return node
        return None

    def place(self, statement: Statement, job_row: int, shape_id: int, tasks: Rows) -> int:
        """Place as many of these pending tasks as fit, in order; return how many found a node.

        Nodes where a task fits what is idle come first. If there are none, a node where it fits what is being released
        is promised to it. In both cases the nodes of our shard come first (Volcano's order of candidate groups). A task
        cannot use what has been promised to others, even if it is idle now: they need it together with what is being
        released.
        """
        done = self.place_idle(statement, job_row, shape_id, tasks)
        while done < len(tasks):
            node = self._best_future(shape_id)
            if node is None:
                break
            statement.pipeline(job_row, shape_id, tasks[done : done + 1], np.array([node]))
            done += 1
        return done

    def place_idle(self, statement: Statement, job_row: int, shape_id: int, tasks: Rows) -> int:
        """Place as many of these pending tasks as fit what is idle now, in order; return how many found a node."""
        if self._hooks.nodes.leaf_orders and self._leaf_order(shape_id)(self._everywhere) is not None:
            return self._place_leaf_by_leaf(statement, job_row, shape_id, tasks)
        one_by_one = not self._but_for_leaves(shape_id)  # every placement may change every score: ask again for each
        done = 0
        while done < len(tasks):
            nodes = self._next_nodes(shape_id, 1 if one_by_one else len(tasks) - done, alone=one_by_one)
            if not len(nodes):
                break
            statement.allocate(job_row, shape_id, tasks[done : done + len(nodes)], nodes)
            self._run.stamp = self._state.journal.n_touched
            done += len(nodes)
        return done

    def _leaf_order(self, shape_id: int) -> Addition:
        """Return what the domains above nodes add to the scores of a class."""
        task = self._state.task_of(shape_id)
        return lambda _: self._hooks.nodes.leaf_order(task)

    def _place_leaf_by_leaf(self, statement: Statement, job_row: int, shape_id: int, tasks: Rows) -> int:
        """Place tasks whose scores depend on what domains hold; see `LeafOrder`."""
        done = 0
        while done < len(tasks):
            wanted = len(tasks) - done if self._one_leaf_at_a_time(shape_id) else 1
            nodes = self.in_one_leaf(self.nodes_with(self._leaf_order(shape_id), shape_id, wanted))
            if not len(nodes):
                break
            statement.allocate(job_row, shape_id, tasks[done : done + len(nodes)], nodes)
            done += len(nodes)
        return done

    def _one_leaf_at_a_time(self, shape_id: int) -> bool:
        return self._state.domains.nested and self._but_for_leaves(shape_id)

    def in_one_leaf(self, nodes: Rows) -> Rows:
        """Return the nodes before the first one in another leaf: from there on, the next choice may be another one.

        More tasks in a leaf only make its nodes better, so the choices within a leaf stay the best ones.
        """
        leaves = self._state.domains.innermost[nodes]
        other = np.flatnonzero(leaves != leaves[0]) if len(nodes) else nodes
        return nodes[: int(other[0])] if len(other) else nodes

    def _next_nodes(self, shape_id: int, wanted: int, *, alone: bool) -> Rows:
        """Return the nodes that greedy would pick now for tasks of a shape: at most ``wanted``, one or more if any fit.

        Jobs of one shape often follow each other. If nothing has changed since the last placement from the run, the
        next nodes are chosen for more tasks than wanted, so that most later calls find their nodes already chosen.
        """
        if self._looked_ahead is not self._state.looks_ahead:
            self._look_ahead()
        run = self._run
        again = run.shape_id == shape_id and run.stamp == self._state.journal.n_touched and not alone
        if again and run.used < len(run.nodes):
            nodes = run.nodes[run.used : run.used + wanted]
            run.used += len(nodes)
            return nodes
        ahead = max(wanted, min(_FARTHER * run.ahead, _FAR) if again else 0)
        nodes = self._choose(self.ranking(shape_id), shape_id, ahead)
        for group in range(1, len(self._rankings)):
            if not len(nodes):
                nodes = self._choose(self.ranking(shape_id, group), shape_id, ahead)
        run.begin(shape_id, nodes, min(wanted, len(nodes)), ahead)
        return nodes[:wanted]

    def _choose(self, ranking: Ranked, shape_id: int, wanted: int) -> Rows:
        if wanted > 1:
            return self.choose_many(ranking, shape_id, wanted)
        node = self._best(ranking.ranked)
        return np.zeros(0, dtype=np.intp) if node is None else np.array([node])

    def _best(self, ranked: Floats) -> int | None:
        """Return the node of the highest score, the first in tie order; None if no node is feasible."""
        if not len(ranked):
            return None
        ties = self.tie_order
        row = int(ranked.argmax()) if ties is None else int(ties[ranked[ties].argmax()])
        return None if ranked.item(row) == -inf else row

    def choose_many(self, ranking: Ranked, shape_id: int, wanted: int) -> Rows:
        """Return the nodes that greedy would pick for ``wanted`` tasks, in order.

        Fewer are returned if there is no more room, or if the last placement changes the scores of all other nodes: a
        full node is not feasible any more, and some scores are normalised over the feasible nodes.
        """
        delta, _ = self._state.classes.deltas(shape_id, TaskStatus.ALLOCATED)
        nodes = self._top(ranking.ranked, wanted)
        if not len(nodes):
            return nodes
        table = _Levels(ranking, nodes, delta, wanted)
        watch = ranking.watch(nodes)
        # Entries: (minus score, place in tie order, tasks placed there by this call). Ties never reach the third.
        heap = [(-score, place, 0) for place, score in enumerate(table.first)]
        heapq.heapify(heap)
        chosen: list[int] = []
        # One heap step per task: the only Python loop over the tasks of a gang while it is placed.
        while heap and len(chosen) < wanted:
            _, place, copies = heap[0]
            chosen.append(place)
            score = table.score(place, copies + 1)
            if score == -np.inf:
                heapq.heappop(heap)
                if watch is not None and watch.leaves(place):
                    break
            else:
                heapq.heapreplace(heap, (-score, place, copies + 1))
        picked: Rows = nodes[np.array(chosen, dtype=np.intp)]
        return picked

    def _top(self, ranked: Floats, wanted: int) -> Rows:
        """Return the ``wanted`` best feasible nodes (all, if there are fewer), in tie order."""
        ties = self.tie_order
        if ties is not None:
            ranked = ranked[ties]
        feasible = np.flatnonzero(ranked > -np.inf)
        if len(feasible) > wanted:
            feasible = _best_of(feasible, ranked[feasible], wanted)
        return feasible if ties is None else ties[feasible]


def _best_of(rows: Rows, scores: Floats, wanted: int) -> Rows:
    """Return the ``wanted`` rows of the highest scores, the first ones among equals, in the order given."""
    best = np.flatnonzero(scores == scores.max())
    if len(best) >= wanted:  # common, and much cheaper than any sort: an empty cluster, nodes all alike
        return np.asarray(rows[best[:wanted]])
    threshold = np.sort(scores)[-wanted]  # sorting beats partitioning where many scores are equal
    keep = scores > threshold
    equal = np.flatnonzero(scores == threshold)
    keep[equal[: wanted - int(keep.sum())]] = True
    return np.asarray(rows[keep])


class _Levels:
    """Scores of some nodes with 0, 1, 2, ... more tasks of the shape on them, computed in blocks.

    The first block covers as many levels of every node as about a thousand entries allow: one wide array operation
    costs as much as a few narrow ones. If a node fills up further, its next levels are computed separately.
    """

    __slots__ = ("_delta", "_known", "_nodes", "_ranking", "_table", "first")

    def __init__(self, ranking: Ranked, nodes: Rows, delta: Floats, wanted: int) -> None:
        self._ranking = ranking
        self._nodes = nodes
        self._delta = delta
        self.first: list[float] = ranking.ranked[nodes].tolist()
        even = -(-wanted // len(nodes)) + 1
        depth = min(wanted, _LEVELS_AT_ONCE, max(even, _FIRST_LOOK // len(nodes)))
        levels = np.broadcast_to(np.arange(1, depth), (len(nodes), depth - 1)).ravel()
        rows = np.repeat(nodes, depth - 1)
        self._table = ranking.after(rows, levels, delta).reshape(len(nodes), depth - 1)
        self._known: dict[int, list[float]] = {}  # node's place -> scores at levels 1, 2, ...

    def score(self, place: int, copies: int) -> float:
        """Return the score of a node that already took ``copies`` tasks, minus infinity if it takes no more."""
        known = self._known.get(place)
        if known is None:
            known = self._known[place] = self._table[place].tolist()
        if copies > len(known):
            levels = np.arange(len(known) + 1, len(known) + 1 + _LEVELS_AT_ONCE)
            rows = np.full(_LEVELS_AT_ONCE, self._nodes[place])
            known.extend(self._ranking.after(rows, levels, self._delta).tolist())
        return known[copies - 1]
