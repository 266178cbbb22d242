"""Batch preemption: evictions for many equal tasks, where plugins are asked once per batch and not once per task.

A batch takes the next nodes in order and asks which candidates on them may be evicted. On each node it chooses as many
victims as tasks need to fit, until all tasks have a node or the nodes are used up. Then plugins are asked about all its
victims again, as one group in the order of eviction, with the number of preemptor tasks that are placed before each
victim. If the answers of plugins count the candidates before each one (`Plugin.counts`), these are the answers that
they would give task by task. The batch ends before the first task of which a victim is refused. The remaining tasks are
left to the next batch, or to a search task by task.

Victims have turns: that of their set of nodes, and in `reclaim` that of their queue. Each task gets the node whose next
victim has the first turn. The batch ends if that may be a node that it has left before. If several queues may lose
tasks, their order changes as they do, so a batch is for a part of the tasks only.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from volcano_py.framework.contract.extension_points import Preemptor
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.statement import Statement
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.resources import EPSILON

_NODES: Final = 128  # of one batch
_PARTS: Final = 4  # into which tasks are divided if several queues may lose tasks
_NEVER: Final = 2**62  # later than every turn
_LEAST: Final = 8  # tasks of such a part: how unevenly equal queues may lose tasks


class _Batch(NamedTuple):
    victims: list[int]  # task rows, in order of eviction
    nodes: list[int]  # of the tasks, in order
    ends: list[int]  # by task: how many victims are evicted for it and for the tasks before it


class NodesInOrder(NamedTuple):
    """The nodes on which evictions are tried, and whose turn it is there."""

    nodes: Rows
    """First to last, (n,): by their first turn, then by score."""
    candidates: VictimCandidates
    turns: Rows
    """Of each candidate, (n_candidates,): the one with the lowest turn goes first."""
    first: Rows
    """By node, the first turn of a candidate there, (n_nodes,)."""


class Steps(NamedTuple):
    """What a plan of evictions does at each step of a batch."""

    preemptor: Callable[[TaskInfo, int], Preemptor]
    """Returns the preemptor at the present state of the plan, for a task and its priority."""
    nodes_in_order: Callable[[TaskInfo], NodesInOrder | None]
    """Returns the nodes to try, and the candidates there; None if no eviction helps."""
    allowed: Callable[[Preemptor, VictimCandidates], Bools]
    """Returns which candidates may be evicted, shape (n,)."""
    fitting: Callable[[int, Rows], int]
    """Returns how many tasks of a shape fit on these nodes, in this order."""
    promise: Callable[[Rows, int, Rows], None]
    """Promises tasks of a shape their nodes."""


def preempt_in_batches(
    eviction: Eviction, statement: Statement, steps: Steps, info: TaskInfo, priority: int, tasks: Rows
) -> int:
    """Place tasks of one shape and priority with evictions; return how many, in order, got a node."""
    done = 0
    while done < len(tasks):
        count = _place(eviction, statement, steps, steps.preemptor(info, priority), info, tasks[done:])
        if not count:
            break
        done += count
    return done


def _place(
    eviction: Eviction, statement: Statement, steps: Steps, preemptor: Preemptor, info: TaskInfo, tasks: Rows
) -> int:
    found = steps.nodes_in_order(info)
    if found is None:
        return 0
    nodes = found.nodes[: _NODES + 1]  # the last one only tells whose turn comes next
    place = np.full(len(eviction.state.nodes), -1, dtype=np.intp)
    place[nodes] = np.arange(len(nodes))
    near = place[found.candidates.groups] >= 0
    asked = found.candidates.only(near)
    agreed = steps.allowed(preemptor, asked)
    victims, their_turns = asked.rows[agreed], found.turns[near][agreed]
    rows = eviction.in_order(preemptor.queue, victims)
    rows = rows[np.argsort(place[eviction.state.tasks.node[rows]], kind="stable")]
    by_row = np.argsort(victims)
    turns = their_turns[by_row[np.searchsorted(victims, rows, sorter=by_row)]]
    wanted = len(tasks)
    if (turns != turns[:1]).any():
        wanted = min(wanted, max(_LEAST, -(-wanted // _PARTS)))
    batch = _choose(eviction, info, rows, turns, wanted, beyond=int(nodes[-1]) if len(nodes) > _NODES else -1)
    count = _allowed_tasks(eviction, steps, preemptor, batch)
    eviction.state.report.preemption_attempts += len(set(batch.nodes[:count]))
    checkpoint = statement.checkpoint()
    while count:
        statement.evict(np.array(batch.victims[: batch.ends[count - 1]], dtype=np.intp))
        chosen = np.array(batch.nodes[:count], dtype=np.intp)
        fitting = steps.fitting(info.shape_id, chosen)
        if fitting == count:
            steps.promise(tasks[:count], info.shape_id, chosen)
            break
        statement.rollback(checkpoint)
        count = min(fitting, count - 1)
    return count


def _choose(eviction: Eviction, info: TaskInfo, rows: Rows, turns: Rows, wanted: int, *, beyond: int) -> _Batch:
    """Choose victims node by node, in order, as few as let each task fit.

    ``rows`` and their ``turns`` are in the order of their nodes. A node is left when its next victim has a later turn
    than that of another node. Nothing is chosen on the node ``beyond`` the batch.
    """
    batch = _Batch([], [], [])
    floor = (info.request - EPSILON).tolist()
    counted = info.fit.rows.tolist()
    if not len(rows):
        return batch
    of_node = eviction.state.tasks.node[rows]
    bounds = np.flatnonzero(np.concatenate(([True], of_node[1:] != of_node[:-1])))
    ends = np.append(bounds[1:], len(rows))
    order = np.argsort(turns[bounds], kind="stable")
    next_turns = [*turns[bounds[order[1:]]].tolist(), _NEVER]
    left = _NEVER  # the lowest turn of a victim on a node that was left
    requests: Floats = eviction.state.classes.requests[:, eviction.state.tasks.shape[rows]].T
    # A Python loop over the nodes of the batch and their victims, a few numbers each.
    for place, next_turn in zip(order.tolist(), next_turns, strict=True):
        start, end = int(bounds[place]), int(ends[place])
        node = int(of_node[start])
        if len(batch.nodes) == wanted or node == beyond or turns[start] > left:
            break
        room = eviction.state.nodes.future_idle[:, node].tolist()
        pending: list[int] = []
        victims = zip(rows[start:end].tolist(), requests[start:end].tolist(), turns[start:end].tolist(), strict=True)
        for row, request, turn in victims:
            if not pending and turn > min(next_turn, left):
                left = min(left, turn)
                break
            pending.append(row)
            room = [have + more for have, more in zip(room, request, strict=True)]
            while len(batch.nodes) < wanted and all(floor[one] < room[one] for one in counted):
                batch.victims.extend(pending)
                pending.clear()
                batch.nodes.append(node)
                batch.ends.append(len(batch.victims))
                room = [have - need for have, need in zip(room, info.request.tolist(), strict=True)]
            if len(batch.nodes) == wanted:
                break
    return batch


def _allowed_tasks(eviction: Eviction, steps: Steps, preemptor: Preemptor, batch: _Batch) -> int:
    """Return for how many tasks, in order, plugins allow all victims, counting those before each as evicted."""
    if not batch.victims:
        return 0
    rows = np.array(batch.victims, dtype=np.intp)
    placed_before = np.searchsorted(np.array(batch.ends), np.arange(len(rows)), side="right")
    allowed = steps.allowed(
        preemptor, VictimCandidates(eviction.state, rows, np.zeros(len(rows), dtype=np.intp), placed_before)
    )
    first = len(rows) if allowed.all() else int(allowed.argmin())
    return int(np.searchsorted(np.array(batch.ends), first, side="right"))
