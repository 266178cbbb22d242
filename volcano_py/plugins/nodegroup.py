"""Nodegroup: affinity of queues to groups of nodes, given by the node label ``volcano.sh/nodegroup-name``.

A node is refused for the first of these reasons that applies:

    the queue's annotation of limits cannot be read
    the node is in no group             (with ``strict: false`` a queue without affinity may use such nodes)
    the queue has no node group affinity
    the node's group is not allowed: allowed = (required + preferred - anti-required) + anti-preferred
    the task and those of the queue on the group together exceed the group's limit for some resource

    score = 100 if required + 50 if preferred; -1 if anti-preferred

With ``enablePreferredOrder`` the i-th of n preferred groups adds 50 * (n - i) / n, with i from 0. With
``enableHierarchy`` a queue without any affinity inherits that of its nearest ancestor that has one; an affinity of four
empty lists ends the search. Limits are not inherited, and only the queue's own tasks count against them. Pipelined
tasks count; tasks evicted in this session do not. As in Volcano, an eviction resolves no refusal. (Volcano:
plugins/nodegroup.)
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
from volcano_py.model.arrays import Floats, Ints, Rows
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
    """Whether all queues are kept off nodes without a group, and whether the order of preferred groups counts."""

    strict: bool = True
    preferred_order: bool = False


class _Limited(NamedTuple):
    """The limits and the usage of a queue by group."""

    ceiling: Floats  # (n_resources, n_groups), infinite for resources not named
    used: Floats  # (n_resources, n_groups)


class _Class:
    """A class of queues with the same answers for all nodes; each queue with limits is its own class."""

    __slots__ = ("affinity", "limited", "problem", "score", "verdict")

    def __init__(self, affinity: NodeGroupAffinity, problem: bool) -> None:
        self.affinity = affinity
        self.problem = problem
        self.limited: _Limited | None = None
        self.verdict: Verdicts  # (n_nodes,), without the check of limits
        self.score: Floats  # (n_nodes,)


class NodeGroup(Plugin, Predicate, NodeOrder, PlacementWatch):
    """Node group affinity of queues."""

    name = "nodegroup"
    depends_on = DependsOn.OTHER_NODES
    refusals_stay = True
    hierarchical = frozenset()  # with a hierarchy, affinities are inherited; no extension point depends on one
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
        """Return the class of the queue of each task's job, shape (n_tasks,); 0 for a queue without affinity."""
        self._classes = [_Class(_UNSET, problem=False)]
        self._limited: dict[str, int] = {}  # queue -> its class
        alike: dict[NodeGroupAffinity, int] = {_UNSET: 0}
        # A Python loop over queues.
        classes = {name: self._class_of(queue.record, ssn, alike) for name, queue in ssn.queues.items()}
        rules = ssn.jobs.rules
        of_name = np.array([classes.get(name, 0) for name in rules.queue_names], dtype=np.int64)
        of_job = np.zeros(len(ssn.jobs) + 1, dtype=np.int64)  # the last element is for tasks without a job
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
        """Return the affinity of a queue: its own, or with a hierarchy that of its nearest ancestor that has one."""
        seen: set[str] = set()
        while self.hierarchy and queue.node_groups is None and queue.name not in seen:
            seen.add(queue.name)
            parent = ssn.queues.get(queue.parent or keys.ROOT_QUEUE)
            if parent is None:
                break
            queue = parent.record
        return queue.node_groups or _UNSET

    def on_session_open(self, ssn: State) -> None:
        """Compute verdicts and scores of every class; count what queues with limits hold on each group."""
        self._journal = ssn.journal
        label = ssn.nodes.label(keys.LABEL_NODE_GROUP)
        self._groups: Rows = np.zeros(len(ssn.nodes), np.intp) if label is None else label.codes.astype(np.intp)
        self._names = [""] if label is None else list(label.values)  # by code; 0 is no group
        for entry in self._classes:
            entry.verdict = self._verdicts(entry)[self._groups]
            entry.score = self._scores(entry.affinity)[self._groups]
        if self._limited:
            used = self._used(ssn)
            for queue, number in self._limited.items():
                self._classes[number].limited = _Limited(self._ceiling(ssn, queue), used[number])

    def _verdicts(self, entry: _Class) -> Verdicts:
        """Return the verdict on each group, shape (n_groups,)."""
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
        for code, name in enumerate(self._names[1:], 1):  # there are few groups
            scores[code] = _REQUIRED_SCORE * (name in affinity.required)
            if name in index:
                part = (len(index) - index[name]) / len(index) if self._args.preferred_order else 1.0
                scores[code] += _PREFERRED_SCORE * part
            if name in affinity.anti_preferred:
                scores[code] = -1.0
        return scores

    def _ceiling(self, ssn: State, queue: str) -> Floats:
        """Return the limits of a queue on each group, shape (n_resources, n_groups)."""
        limits = ssn.queues[queue].record.node_group_limits
        amounts = {} if limits is None else limits.amounts
        ceiling = np.full((len(ssn.resources), len(self._names)), np.inf)
        for code, name in enumerate(self._names[1:], 1):
            for resource, amount in amounts.get(name, {}).items():
                row = ssn.resources.find(resource)
                if row is not None:
                    ceiling[row, code] = amount
        return ceiling

    def _used(self, ssn: State) -> Floats:
        """Return what the tasks of each class hold on each group, shape (n_classes, n_resources, n_groups)."""
        tasks, n_groups = ssn.tasks, len(self._names)
        limited = np.zeros(len(self._classes), dtype=bool)
        limited[list(self._limited.values())] = True
        keys_of = self._equivalence_keys
        rows = np.flatnonzero(limited[keys_of] & members(ALLOCATED_STATUSES)[tasks.status] & (tasks.node >= 0))
        places = keys_of[rows] * n_groups + self._groups[tasks.node[rows]]
        size = len(self._classes) * n_groups
        found = [
            np.bincount(places, weights=amounts[tasks.shape[rows]], minlength=size).reshape(-1, n_groups)
            for amounts in ssn.classes.requests
        ]
        return np.stack(found, axis=1).astype(float)  # without tasks, numpy counts in integers

    def depends(self, task: TaskInfo) -> DependsOn:
        """Return OTHER_NODES for queues with limits, because a limit ties the nodes of a group together."""
        limited = self._classes[task.equivalence_key(self.name)].limited
        return DependsOn.NODE_ALONE if limited is None else DependsOn.OTHER_NODES

    def predicate(self, task: TaskInfo, nodes: NodeColumns) -> Verdicts:
        """Refuse nodes outside the queue's groups, or in a group whose limit would be exceeded, shape (n_nodes,)."""
        entry = self._classes[task.equivalence_key(self.name)]
        verdicts = _of(entry.verdict, nodes)
        if entry.limited is None:
            return verdicts
        ceiling, used = entry.limited
        over = np.any(used + task.request[:, None] - ceiling >= EPSILON, axis=0)  # (n_groups,)
        return np.where((verdicts == 0) & over[_of(self._groups, nodes)], np.int16(OVER_LIMIT), verdicts)

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        """Return the queue's score for each node's group, shape (n_nodes,)."""
        return _of(self._classes[task.equivalence_key(self.name)].score, nodes)

    def placed(self, job_row: int, task: TaskInfo, tasks: Rows, nodes: Rows) -> None:
        """Add placed tasks to the usage of a queue with limits."""
        self._move(task, nodes, 1.0)

    def freed(self, job_row: int, task: TaskInfo, tasks: Rows, nodes: Rows) -> None:
        """Subtract evicted tasks from the usage of a queue with limits."""
        self._move(task, nodes, -1.0)

    def _move(self, task: TaskInfo, nodes: Rows, sign: float) -> None:
        limited = self._classes[task.equivalence_key(self.name)].limited
        if limited is not None:
            groups, counts = np.unique(self._groups[nodes], return_counts=True)
            self._journal.add(limited.used, groups, sign * task.request[:, None] * counts)


def _of(values: NDArray[Number], nodes: NodeColumns) -> NDArray[Number]:
    """Return the values for the nodes of a view, from one value per node of the session."""
    return values if nodes.rows is None else values[nodes.rows]
