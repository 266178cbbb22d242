"""Nodegroup: queues and the groups of nodes that their tasks go to, by the node label ``volcano.sh/nodegroup-name``.

A node is refused, for the first of these reasons that holds:

    the queue's annotation of limits cannot be read
    the node is in no group             (with ``strict: false`` a queue without affinity may use such nodes)
    the queue says nothing of groups
    its group is not in (required or preferred), without anti-required, or in anti-preferred
    what the queue's tasks hold on the group, and this one, is more than its limit of a resource that is named there

    score = 100 if required + 50 if preferred; -1 if anti-preferred

With ``enablePreferredOrder`` the i-th of n preferred groups adds 50 * (n - i) / n, i counted from 0. With
``enableHierarchy`` a queue that has no affinity at all takes that of its nearest ancestor that has any; one with four
empty lists stops the search. Limits and what counts against them are the queue's own. Promised tasks count, and what an
eviction frees does not. No refusal is lifted by an eviction, as in Volcano. (Volcano: plugins/nodegroup.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from volcano_py.api import keys
from volcano_py.conf.arguments import Warn, get_bool
from volcano_py.framework.contract.extension_points import NodeOrder, PlacementWatch, Predicate, Verdicts
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.objects import NodeGroupAffinity, QueueRecord
from volcano_py.model.rejections import Reason
from volcano_py.model.resources import EPSILON
from volcano_py.model.shape import Field
from volcano_py.model.statuses import ALLOCATED_STATUSES, members
from volcano_py.snapshot.columns import NodeColumns

INVALID, NO_LABEL, NO_AFFINITY, MISMATCH, OVER_LIMIT = range(1, 6)
_REQUIRED_SCORE: Final = 100.0
_PREFERRED_SCORE: Final = 50.0
_UNSET: Final = NodeGroupAffinity()
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True)
class NodeGroupArgs:
    """Whether nodes of no group are for nobody, and whether the order of preferred groups counts."""

    strict: bool = True
    preferred_order: bool = False


class _Limited(NamedTuple):
    """What a queue may use and uses of each group."""

    ceiling: Floats  # (n_resources, n_groups), infinite for what is not named
    used: Floats  # (n_resources, n_groups)


class _Class:
    """Queues to which all nodes look alike; a queue with limits is one by itself."""

    __slots__ = ("affinity", "limited", "problem", "score", "verdict")

    def __init__(self, affinity: NodeGroupAffinity, problem: bool) -> None:
        self.affinity = affinity
        self.problem = problem
        self.limited: _Limited | None = None
        self.verdict: Verdicts  # (n_nodes,), of all but limits
        self.score: Floats  # (n_nodes,)


class NodeGroup(Plugin, Predicate, NodeOrder, PlacementWatch):
    """Affinity of queues to groups of nodes."""

    name = "nodegroup"
    depends_on = DependsOn.OTHER_NODES
    hierarchical = frozenset()  # it inherits with a hierarchy, and answers all its questions without one too
    reads = frozenset({Field.REQUEST})
    arguments = frozenset({"strict", "enablePreferredOrder"})
    reasons = (
        Reason("nodegroup", "limit-annotation-invalid", "node group resource limit annotation invalid"),
        Reason("nodegroup", "label-not-found", "node group label not found"),
        Reason("nodegroup", "affinity-not-specified", "node group affinity not specified"),
        Reason("nodegroup", "affinity-mismatch", "node does not satisfy the node group affinity"),
        Reason("nodegroup", "limit-exceeded", "node group resource limit exceeded"),
    )

    def __init__(self, arguments: NodeGroupArgs | None = None) -> None:
        self._args = arguments or NodeGroupArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> NodeGroupArgs:
        """Read ``strict`` (true) and ``enablePreferredOrder`` (false)."""
        return NodeGroupArgs(
            strict=get_bool(arguments, "strict", True, warn),
            preferred_order=get_bool(arguments, "enablePreferredOrder", False, warn),
        )

    def equivalence_keys(self, ssn: State) -> Ints:
        """Return the class of the queue of each task's job, shape (n_tasks,); 0: the queue says nothing of groups."""
        self._classes = [_Class(_UNSET, problem=False)]
        self._limited: dict[str, int] = {}  # queue -> its class
        alike: dict[NodeGroupAffinity, int] = {_UNSET: 0}
        # A Python loop over queues.
        classes = {name: self._class_of(queue.record, ssn, alike) for name, queue in ssn.queues.items()}
        rules = ssn.jobs.rules
        of_name = np.array([classes.get(name, 0) for name in rules.queue_names], dtype=np.int64)
        of_job = np.zeros(len(ssn.jobs) + 1, dtype=np.int64)  # the last element answers for tasks of no job
        present = ssn.jobs.present()
        of_job[present] = of_name[rules.queue[present]]
        self._equivalence_keys: Ints = of_job[ssn.tasks.job]
        return self._equivalence_keys

    def _class_of(self, queue: QueueRecord, ssn: State, alike: dict[NodeGroupAffinity, int]) -> int:
        affinity = self._affinity(queue, ssn)
        limits = queue.node_group_limits
        if limits is None and affinity in alike:
            return alike[affinity]
        number = len(self._classes)
        self._classes.append(_Class(affinity, problem=limits is not None and bool(limits.problem)))
        if limits is None:
            alike[affinity] = number
        elif limits.amounts:
            self._limited[queue.name] = number
        return number

    def _affinity(self, queue: QueueRecord, ssn: State) -> NodeGroupAffinity:
        """Return what counts for a queue: its own word, or that of the nearest ancestor that has any, root at last."""
        seen: set[str] = set()
        while self.hierarchy and queue.node_groups is None and queue.name not in seen:
            seen.add(queue.name)
            parent = ssn.queues.get(queue.parent or keys.ROOT_QUEUE)
            if parent is None:
                break
            queue = parent.record
        return queue.node_groups or _UNSET

    def on_session_open(self, ssn: State) -> None:
        """Lay out, for every class, what each node is to it; count what queues with limits hold on each group."""
        self._journal = ssn.journal
        label = ssn.nodes.label(keys.LABEL_NODE_GROUP)
        self._groups: Rows = np.zeros(len(ssn.nodes), np.intp) if label is None else label.codes.astype(np.intp)
        self._names = [""] if label is None else list(label.values)  # by code; 0 is no group
        for entry in self._classes:
            entry.verdict = self._verdicts(entry)[self._groups]
            entry.score = self._scores(entry.affinity)[self._groups]
        for queue, number in self._limited.items():
            self._classes[number].limited = self._count(ssn, queue, self._equivalence_keys == number)

    def _verdicts(self, entry: _Class) -> Verdicts:
        """Return what becomes of each group, shape (n_groups,)."""
        affinity = entry.affinity
        verdicts = np.full(len(self._names), INVALID, dtype=np.int16)
        if entry.problem:
            return verdicts
        if affinity == _UNSET:
            verdicts[:] = NO_AFFINITY
            verdicts[0] = NO_LABEL if self._args.strict else 0
            return verdicts
        allowed = {*affinity.required, *affinity.preferred} - {*affinity.anti_required} | {*affinity.anti_preferred}
        verdicts[:] = [0 if name in allowed else MISMATCH for name in self._names]
        verdicts[0] = NO_LABEL
        return verdicts

    def _scores(self, affinity: NodeGroupAffinity) -> Floats:
        """Return the score of each group, shape (n_groups,)."""
        index = {name: place for place, name in enumerate(affinity.preferred)}
        scores = np.zeros(len(self._names))
        for code, name in enumerate(self._names[1:], 1):  # groups are few
            scores[code] = _REQUIRED_SCORE * (name in affinity.required)
            if name in index:
                part = (len(index) - index[name]) / len(index) if self._args.preferred_order else 1.0
                scores[code] += _PREFERRED_SCORE * part
            if name in affinity.anti_preferred:
                scores[code] = -1.0
        return scores

    def _count(self, ssn: State, queue: str, theirs: Bools) -> _Limited:
        """Return the limits of a queue and what its tasks, mask (n_tasks,), hold on each group."""
        limits = ssn.queues[queue].record.node_group_limits
        amounts = {} if limits is None else limits.amounts
        ceiling = np.full((len(ssn.resources), len(self._names)), np.inf)
        for code, name in enumerate(self._names[1:], 1):
            for resource, amount in amounts.get(name, {}).items():
                row = ssn.resources.find(resource)
                if row is not None:
                    ceiling[row, code] = amount
        tasks = ssn.tasks
        holding = theirs & members(ALLOCATED_STATUSES)[tasks.status] & (tasks.node >= 0)
        used = np.zeros(ceiling.shape)
        pairs = np.stack((tasks.shape[holding], self._groups[tasks.node[holding]]))
        distinct, counts = np.unique(pairs, axis=1, return_counts=True)
        for (shape, group), count in zip(distinct.T.tolist(), counts.tolist(), strict=True):  # shapes times groups
            used[:, group] += ssn.task_of(shape).request * count
        return _Limited(ceiling, used)

    def depends(self, task: TaskInfo) -> DependsOn:
        """Only a limit ties the nodes of a group together."""
        limited = self._classes[task.equivalence_key(self.name)].limited
        return DependsOn.NODE_ALONE if limited is None else DependsOn.OTHER_NODES

    def predicate(self, task: TaskInfo, nodes: NodeColumns) -> Verdicts:
        """Refuse nodes that are not in a group of the queue, or of whose group it has enough, shape (n_nodes,)."""
        entry = self._classes[task.equivalence_key(self.name)]
        verdicts = _of(entry.verdict, nodes)
        if entry.limited is None:
            return verdicts
        ceiling, used = entry.limited
        over = np.any(used + task.request[:, None] - ceiling >= EPSILON, axis=0)  # (n_groups,)
        return np.where((verdicts == 0) & over[_of(self._groups, nodes)], np.int16(OVER_LIMIT), verdicts)

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        """Return what the queue thinks of each node's group, shape (n_nodes,)."""
        return _of(self._classes[task.equivalence_key(self.name)].score, nodes)

    def placed(self, job_row: int, task: TaskInfo, tasks: Rows, nodes: Rows) -> None:
        """Count what a queue with limits takes."""
        self._move(task, nodes, 1.0)

    def freed(self, job_row: int, task: TaskInfo, tasks: Rows, nodes: Rows) -> None:
        """Count what evictions give back to a queue with limits."""
        self._move(task, nodes, -1.0)

    def _move(self, task: TaskInfo, nodes: Rows, sign: float) -> None:
        limited = self._classes[task.equivalence_key(self.name)].limited
        if limited is not None:
            groups, counts = np.unique(self._groups[nodes], return_counts=True)
            self._journal.add(limited.used, groups, sign * task.request[:, None] * counts)


def _of(values: NDArray[Number], nodes: NodeColumns) -> NDArray[Number]:
    """Return the values, one per node of the session, of the nodes of a view."""
    return values if nodes.rows is None else values[nodes.rows]
