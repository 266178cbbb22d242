"""Task-topology: tasks of a job with affinity go to one node, and tasks with anti-affinity to different nodes.

When the session opens, the tasks of every job with pending tasks and annotations (`annotations`) are divided into
buckets (`buckets`). Tasks on nodes join first. The others follow in the order of their roles, then by the priority of
the role (apart from itself, together with others, together with itself, apart from others), then by name. Only tasks of
roles that the annotations place together or apart are in a bucket.

    task order   tasks in buckets first: the bucket with the most pending tasks, then the older one; within it, the
                 order of roles
    score        100 * weight / size of the largest bucket * (tasks of the bucket on the node
                 + pending tasks of the bucket that fit - tasks on the node that the task must be placed apart from)

The score is 0 if the task itself does not fit idle + releasing resources of the node. The pending tasks are the task
itself and as many others as fit with it; the last in task order are left out first.

(Volcano: plugins/task-topology.) Differences: the tasks on a node are read from the columns of the session, so an undo
or an eviction counts at once, releasing and finished tasks do not count, and tasks bound in earlier sessions repel,
too. The order in which tasks are left out is fixed. The task order is that of the session's opening, so buckets are
filled one after another. A role may also be given by a label.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from volcano_py.conf.arguments import Warn, get_int
from volcano_py.framework.contract.extension_points import NodeOrder, TaskOrder
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.state.info import TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Floats, Ints
from volcano_py.model.resources import EPSILON
from volcano_py.model.shape import Field
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.task_topology.layouts import STANDING, Kind, Layouts
from volcano_py.snapshot.columns import NodeColumns, TaskColumns

_WEIGHT: Final = "task-topology.weight"
_LAST: Final = 1e18  # the position of tasks without a bucket


@dataclass(frozen=True, slots=True)
class TaskTopologyArgs:
    """The weight of the plugin."""

    weight: int = 1


class TaskTopology(Plugin, TaskOrder, NodeOrder):
    """Affinity between the roles of a job."""

    name = "task-topology"
    depends_on = DependsOn.OTHER_NODES
    reads = frozenset({Field.REQUEST})
    arguments = frozenset({_WEIGHT})

    def __init__(self, arguments: TaskTopologyArgs | None = None) -> None:
        self._args = arguments or TaskTopologyArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> TaskTopologyArgs:
        """Read ``task-topology.weight`` (1)."""
        return TaskTopologyArgs(get_int(arguments, _WEIGHT, 1, warn))

    def equivalence_keys(self, ssn: State) -> Ints:
        """Return a number for every bucket and role, shape (n_tasks,); 0 for tasks without a bucket."""
        self._kinds: list[Kind | None] = [None]
        layouts = Layouts(ssn)
        self._equivalence_keys: Ints = np.zeros(len(ssn.tasks.records), dtype=np.int64)
        # A Python loop over jobs with pending tasks; a job without annotations costs one check.
        for row in np.flatnonzero(ssn.jobs.counts[TaskStatus.PENDING]).tolist():
            record = ssn.jobs.records[row]
            if record is not None and record.topology is not None:
                found = layouts.of(row, record.key, record.topology)
                if found is not None:
                    layout, kinds, which = found
                    self._equivalence_keys[layout.tasks[: len(which)]] = len(self._kinds) + which
                    self._kinds += kinds
        return self._equivalence_keys

    def on_session_open(self, ssn: State) -> None:
        """Store the position of each kind of tasks in the task order."""
        self._ssn = ssn
        marked = np.flatnonzero(self._equivalence_keys)
        places = np.array([_LAST if kind is None else kind.place for kind in self._kinds])
        self._places = np.full(len(ssn.classes.shapes), _LAST)  # by shape id
        self._places[ssn.tasks.shape[marked]] = places[self._equivalence_keys[marked]]

    def _kind(self, task: TaskInfo) -> Kind | None:
        return self._kinds[task.equivalence_key(self.name)]

    def depends(self, task: TaskInfo) -> DependsOn:
        """Return OTHER_NODES for tasks in buckets, because their scores depend on where other tasks are."""
        return DependsOn.NODE_ALONE if self._kind(task) is None else DependsOn.OTHER_NODES

    def task_order(self, tasks: TaskColumns) -> Floats:
        """Return the position of each task within its job, shape (n_tasks,)."""
        return np.where(tasks.shape >= 0, self._places[tasks.shape], _LAST)

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        """Return how well a node would keep the task's bucket together, shape (n_nodes,)."""
        kind = self._kind(task)
        if kind is None:
            return np.zeros(len(nodes))
        layout = kind.layout
        available = nodes.idle + nodes.releasing  # (n_resources, n_nodes)
        score = self._standing(kind, nodes) + self._room(kind, task, available)
        scale = self._args.weight * 100.0 / layout.largest
        return np.where(task.fit.fits(available), score * scale, 0.0)

    def _standing(self, kind: Kind, nodes: NodeColumns) -> Floats:
        """Return the bucket's tasks on each node minus the tasks that repel this one, shape (n_nodes,)."""
        layout, n = kind.layout, len(self._ssn.nodes)
        on = self._ssn.tasks.node[layout.tasks]
        placed = (on >= 0) & STANDING[self._ssn.tasks.status[layout.tasks]]
        together = np.bincount(on[placed & (layout.buckets == kind.bucket)], minlength=n)
        repels = layout.rules.repulsion[kind.role, layout.roles[placed]]
        count = together - np.bincount(on[placed], weights=repels, minlength=n)
        return np.asarray(count if nodes.rows is None else count[nodes.rows], dtype=float)

    def _room(self, kind: Kind, task: TaskInfo, available: Floats) -> Floats:
        """Return how many pending tasks of the bucket, including this one, fit on each node, shape (n_nodes,).

        Other tasks are left out one by one, the last first, until the rest fits.
        """
        ssn, layout = self._ssn, kind.layout
        members = layout.tasks[layout.buckets == kind.bucket]
        shapes = ssn.tasks.shape[members[ssn.tasks.status[members] == TaskStatus.PENDING]]
        same = np.flatnonzero(shapes == task.shape_id)
        others = np.delete(shapes, same[:1])  # in task order
        if not len(others):
            return np.ones(available.shape[1])
        kept = np.cumsum(ssn.classes.requests[:, others], axis=1) + task.request[:, None]  # with 1, 2, ... of them
        rows = np.flatnonzero(kept[:, -1] > 0)  # at least pods
        room = np.full(available.shape[1], 1.0 + len(others))
        short = np.flatnonzero((kept[rows, -1:] >= available[rows] + EPSILON).any(axis=0))
        if short.size:
            # Needs grow with every other task, so the number that fit is the number of needs within the available.
            fitting = [np.searchsorted(kept[row], available[row, short] + EPSILON) for row in rows.tolist()]
            room[short] = 1.0 + np.min(fitting, axis=0)
        return room
