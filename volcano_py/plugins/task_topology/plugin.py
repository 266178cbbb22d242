"""Task-topology: tasks of a job that should stand together go to one node, and those that should not go apart.

When the session opens, the tasks of every job with pending tasks and annotations (`annotations`) are divided into
buckets (`buckets`): first those that stand on nodes, then the others by the order of their roles, by what is said of
the role (apart from itself, together with others, with itself, apart from others), by name. Only roles of which
something is said are in a bucket.

    task order   tasks in buckets first: the bucket of the most waiting tasks, then the older; in it, the order of roles
    score        100 * weight / size of the largest bucket * (tasks of the bucket on the node
                 + waiting tasks of it that there is room for - tasks on the node that it must stand apart from)

0 if the task itself does not fit what is idle or being released there. Waiting tasks are the task itself and as many
others as fit with it; those that would go last are left out first.

(Volcano: plugins/task-topology.) Unlike there: what a node holds is read from the columns of the session, so that an
undo or an eviction counts at once, tasks on their way out or at their end do not count, and tasks that were bound
in earlier sessions repel too; the order of leaving out is fixed; the order of tasks is that at the opening, so buckets
are filled one after another; a role counts also if it is a label.
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
_LAST: Final = 1e18  # the place of tasks without a bucket


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
        """Read ``task-topology.weight``, 1."""
        return TaskTopologyArgs(get_int(arguments, _WEIGHT, 1, warn))

    def equivalence_keys(self, ssn: State) -> Ints:
        """Return a number for every bucket and role, shape (n_tasks,); 0 for tasks without a bucket."""
        self._kinds: list[Kind | None] = [None]
        layouts = Layouts(ssn)
        self._equivalence_keys: Ints = np.zeros(len(ssn.tasks.records), dtype=np.int64)
        # A Python loop over jobs; all but those with annotations and pending tasks cost one look.
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
        """Note the places of the kinds of tasks."""
        self._ssn = ssn
        marked = np.flatnonzero(self._equivalence_keys)
        places = np.array([_LAST if kind is None else kind.place for kind in self._kinds])
        self._places = np.full(len(ssn.classes.shapes), _LAST)  # by id of the kind
        self._places[ssn.tasks.shape[marked]] = places[self._equivalence_keys[marked]]

    def _kind(self, task: TaskInfo) -> Kind | None:
        return self._kinds[task.equivalence_key(self.name)]

    def depends(self, task: TaskInfo) -> DependsOn:
        """Only tasks in buckets look at where others stand."""
        return DependsOn.NODE_ALONE if self._kind(task) is None else DependsOn.OTHER_NODES

    def task_order(self, tasks: TaskColumns) -> Floats:
        """Return the place of each task among those of its job, shape (n_tasks,)."""
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
        """Return the tasks of the bucket on each node, less those that the task must stand apart from (n_nodes,)."""
        layout, n = kind.layout, len(self._ssn.nodes)
        on = self._ssn.tasks.node[layout.tasks]
        placed = (on >= 0) & STANDING[self._ssn.tasks.status[layout.tasks]]
        together = np.bincount(on[placed & (layout.buckets == kind.bucket)], minlength=n)
        repels = layout.rules.repulsion[kind.role, layout.roles[placed]]
        count = together - np.bincount(on[placed], weights=repels, minlength=n)
        return np.asarray(count if nodes.rows is None else count[nodes.rows], dtype=float)

    def _room(self, kind: Kind, task: TaskInfo, available: Floats) -> Floats:
        """Return how many waiting tasks of the bucket each node has room for, the task included, shape (n_nodes,).

        Others are left out one by one, the last first, until the rest fits.
        """
        ssn, layout = self._ssn, kind.layout
        members = layout.tasks[layout.buckets == kind.bucket]
        shapes = ssn.tasks.shape[members[ssn.tasks.status[members] == TaskStatus.PENDING]]
        same = np.flatnonzero(shapes == task.shape_id)
        others = np.delete(shapes, same[:1])[::-1].tolist()  # the first to be left out comes first
        if not others:
            return np.ones(available.shape[1])
        requests = np.stack([ssn.task_of(shape).request for shape in others], axis=1)  # (n_resources, n_others)
        kept = np.cumsum(requests[:, ::-1], axis=1) + task.request[:, None]  # with 1, 2, ... others, the first to go
        rows = np.flatnonzero(kept[:, -1] > 0)  # pods at the least
        room = np.full(available.shape[1], 1.0 + len(others))
        short = np.flatnonzero((kept[rows, -1:] >= available[rows] + EPSILON).any(axis=0))
        if short.size:
            # Needs grow with every other task, so how many fit is how many needs are not above what there is.
            fitting = [np.searchsorted(kept[row], available[row, short] + EPSILON) for row in rows.tolist()]
            room[short] = 1.0 + np.min(fitting, axis=0)
        return room
