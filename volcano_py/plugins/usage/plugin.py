"""Usage: nodes with a high measured load are refused, and nodes with a low load score higher.

    refused   measured cpu, else measured memory, is above its threshold
    score     100 * weight * ((1 - load_cpu) * w_cpu + (1 - load_memory) * w_memory) / (w_cpu + w_memory)

Loads are measurements plus estimates (`estimates`) for pods that do not show in the measurements yet: allocated,
pipelined, binding and bound pods; and running pods that started less than one measurement interval ago or have no start
time. A pod's own estimate is not part of its score. A node whose last measurement is older than five minutes, or that
was never measured, is not refused and scores 0.

(Volcano: plugins/usage.) Differences: estimates are rounded to a tiny part of a byte. Tasks that are on nodes when the
session opens are counted in order of node, creation and uid; in Volcano their order is arbitrary, which matters near
risk_threshold. An eviction removes the task's estimate, and undoing the eviction restores it; in Volcano the undo adds
an estimate even to a pod that had none.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from volcano_py.conf.arguments import Warn
from volcano_py.framework.contract.extension_points import NodeOrder, PlacementWatch, Predicate, Verdicts
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.rejections import Reason
from volcano_py.model.resources import CPU_ROW, MEMORY_ROW
from volcano_py.model.shape import Field
from volcano_py.model.statuses import TaskStatus, members
from volcano_py.plugins.usage.arguments import UsageArgs, read
from volcano_py.plugins.usage.estimates import Gauge, Growth, growth_of, mean_load
from volcano_py.snapshot.columns import NodeColumns

FRESH_S: Final = 300.0
CPU_BUSY, MEMORY_BUSY = 1, 2
_ON_THEIR_WAY: Final = members((TaskStatus.ALLOCATED, TaskStatus.BINDING, TaskStatus.BOUND))
_STANDING: Final = members((TaskStatus.BINDING, TaskStatus.BOUND, TaskStatus.RUNNING))  # placed before this session
_CPU_AND_MEMORY: Final = slice(CPU_ROW, MEMORY_ROW + 1)


class Usage(Plugin, Predicate, NodeOrder, PlacementWatch):
    """Thresholds and scores by measured load."""

    name = "usage"
    depends_on = DependsOn.NODE_ALONE
    refusals_stay = True
    reads = frozenset({Field.REQUEST, Field.LIMITS})
    arguments = frozenset({"usage.weight", "cpu.weight", "memory.weight", "thresholds", "estimator"})
    reasons = (
        Reason("usage", "cpu-load", "the CPU load of the node exceeds the upper limit."),
        Reason("usage", "memory-load", "the memory load of the node exceeds the upper limit."),
    )

    def __init__(self, arguments: UsageArgs | None = None) -> None:
        self._args = arguments or UsageArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> UsageArgs:
        """Read ``usage.weight`` (5), ``cpu.weight`` and ``memory.weight`` (1), ``thresholds`` (80 percent each) and
        ``estimator``, see `arguments`.
        """
        return read(arguments, warn)

    def on_session_open(self, ssn: State) -> None:
        """Prepare the measured loads, and estimate the tasks that do not show in them."""
        n, loads = len(ssn.nodes), ssn.loads
        self._tasks = ssn.tasks
        self._journal, self._growths = ssn.journal, dict[int, Growth]()
        self._estimated = np.zeros((2, n))  # of all tasks together
        self._of_task = np.zeros((2, len(ssn.tasks.records)))  # the part of each task
        percent = np.zeros((2, n)) if loads is None else loads.percent
        self._fresh: Bools = np.zeros(n, dtype=bool) if loads is None else loads.measured >= ssn.now - FRESH_S
        busy = percent > np.array(self._args.thresholds)[:, None]
        verdicts = np.where(busy[0], CPU_BUSY, np.where(busy[1], MEMORY_BUSY, 0))
        self._verdicts: Verdicts = np.where(self._fresh, verdicts, 0).astype(np.int16)
        capacity: Floats = np.stack([ssn.static_row(("capacity", row), _capacity_of(row)) for row in (0, 1)])
        self._gauge = Gauge(percent, capacity, self._args.weights, self._args.estimator)
        if loads is not None and self._fresh.any():
            self._warm_up(ssn, ssn.now - loads.interval_s)
        found = self._gauge.loads(self._estimated)
        self._means = mean_load(found, self._args.weights)  # (n_nodes,)
        self._scores = self._fresh_scores(found, slice(None))  # (n_nodes,)

    def _warm_up(self, ssn: State, since: float) -> None:
        """Estimate the tasks on nodes with a fresh measurement that do not show in it."""
        tasks = ssn.tasks
        rows = np.flatnonzero(
            (tasks.node >= 0)
            & (_ON_THEIR_WAY[tasks.status] | (tasks.status == TaskStatus.RUNNING))
            & (tasks.shape >= 0)
        )
        rows = rows[self._fresh[tasks.node[rows]]]
        running = tasks.status[rows] == TaskStatus.RUNNING
        # A Python loop over the running tasks of measured nodes: start times are in their records.
        started = np.array([tasks.record(row).started for row in rows[running].tolist()])
        hidden = np.ones(len(rows), dtype=bool)
        hidden[running] = (started == 0) | (started > since)
        rows = rows[hidden]
        uids = np.array([tasks.record(row).uid for row in rows.tolist()], dtype=str)
        order = rows[np.lexsort((uids, tasks.creation[rows], tasks.node[rows]))]
        nodes = tasks.node[order].astype(np.intp)
        turn = np.arange(len(order)) - np.searchsorted(nodes, nodes)  # index of each task among those of its node
        for number in range(int(turn.max(initial=-1)) + 1):  # at most the number of pods on a node
            now = turn == number
            growths = [self._growth(ssn.task_of(shape)) for shape in tasks.shape[order[now]].tolist()]
            self._add(order[now], nodes[now], growths)

    def _add(self, tasks: Rows, nodes: Rows, growths: list[Growth]) -> None:
        """Add the estimate of one task to each of some nodes."""
        careful = self._gauge.at(nodes).mean(self._estimated[:, nodes]) >= self._args.estimator.risk_threshold
        calm_amounts = np.array([growth.calm for growth in growths]).T
        careful_amounts = np.array([growth.careful for growth in growths]).T
        self._of_task[:, tasks] = np.where(careful, careful_amounts, calm_amounts)
        self._estimated[:, nodes] += self._of_task[:, tasks]

    def _growth(self, task: TaskInfo) -> Growth:
        found = self._growths.get(task.shape_id)
        if found is None:
            limits, shape = np.array(task.shape.limits), task.shape
            found = growth_of(task.request[_CPU_AND_MEMORY], limits, shape.best_effort, self._args.estimator)
            self._growths[task.shape_id] = found
        return found

    def predicate(self, task: TaskInfo, nodes: NodeColumns) -> Verdicts:
        """Refuse nodes with a load above a threshold, shape (n_nodes,)."""
        return self._verdicts if nodes.rows is None else self._verdicts[nodes.rows]

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        """Return a score for how idle each node is, shape (n_nodes,)."""
        if nodes.rows is None:
            return self._scores.copy()  # it changes with every placement
        if nodes.copies is None:
            return self._scores[nodes.rows]
        gauge = self._gauge.at(nodes.rows)
        after = gauge.after(self._estimated[:, nodes.rows], self._growth(task), nodes.copies)
        return self._fresh_scores(gauge.loads(after), nodes.rows)

    def _fresh_scores(self, loads: Floats, nodes: Any) -> Floats:
        """Return the scores of nodes with these loads (2, n_nodes), shape (n_nodes,)."""
        return np.where(self._fresh[nodes], score(loads, self._args.weights, self._args.weight), 0.0)

    def placed(self, job_row: int, task: TaskInfo, tasks: Rows, nodes: Rows) -> None:
        """Estimate placed tasks one after the other; a task whose eviction is undone gets its old estimate back."""
        if _STANDING[self._tasks.status[tasks]].all():
            self._move(nodes, self._of_task[:, tasks])
            return
        growth = self._growth(task)
        if len(tasks) == 1:
            careful = self._means[nodes] >= self._args.estimator.risk_threshold
        else:
            distinct, which, counts = np.unique(nodes, return_inverse=True, return_counts=True)
            calm = self._gauge.at(distinct).calm_steps(self._estimated[:, distinct], growth, counts)
            careful = _turns(which.reshape(-1)) >= calm[which.reshape(-1)]
        amounts = np.where(careful, growth.careful[:, None], growth.calm[:, None])
        self._journal.add(self._of_task, tasks, amounts - self._of_task[:, tasks])
        self._move(nodes, amounts)

    def freed(self, job_row: int, task: TaskInfo, tasks: Rows, nodes: Rows) -> None:
        """Subtract the estimates of evicted tasks from their nodes."""
        self._move(nodes, -self._of_task[:, tasks])

    def _move(self, nodes: Rows, amounts: Floats) -> None:
        """Add amounts (2, n_tasks) to their nodes (n_tasks,), and update the nodes' means and scores."""
        if len(nodes) > 1:
            nodes, which = np.unique(nodes, return_inverse=True)
            bins = which.reshape(-1)
            amounts = np.array([np.bincount(bins, weights=row, minlength=len(nodes)) for row in amounts])
        self._journal.add(self._estimated, nodes, amounts)
        found = self._gauge.at(nodes).loads(self._estimated[:, nodes])
        self._journal.replace(self._means, nodes, mean_load(found, self._args.weights))
        self._journal.replace(self._scores, nodes, self._fresh_scores(found, nodes))


def score(loads: Floats, weights: tuple[int, int], weight: int) -> Floats:
    """Return the scores of nodes with these loads (2, n_nodes), shape (n_nodes,)."""
    return np.asarray(mean_load(1.0 - loads, weights) * 100.0 * weight)


def _turns(groups: Rows) -> Ints:
    """Return for each element how many elements of the same group come before it."""
    order = np.argsort(groups, kind="stable")
    turns = np.empty(len(groups), dtype=np.int64)
    turns[order] = np.arange(len(groups)) - np.searchsorted(groups[order], groups[order])
    return turns


def _capacity_of(row: int) -> Any:
    def ask(nodes: NodeColumns) -> Floats:
        records = nodes.statics.records
        rows = range(len(records)) if nodes.rows is None else nodes.rows
        # A Python loop over nodes whose records have changed; answers are cached.
        return np.array([records[number].capacity[row] for number in rows], dtype=float)

    return ask
