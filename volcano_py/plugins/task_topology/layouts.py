"""The layout of a job's tasks: their buckets, and classes of equivalent tasks.

Thousands of pending jobs come from a few templates, so rules and buckets are computed once for tasks of the same roles,
sizes and nodes.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Floats, Rows
from volcano_py.model.objects import JobKey, TopologyTexts
from volcano_py.model.statuses import ALLOCATED_STATUSES, TaskStatus, members
from volcano_py.plugins.task_topology.annotations import InvalidTopology, Rules, read, rules_of
from volcano_py.plugins.task_topology.buckets import form, size_of

STANDING: Final = members((*ALLOCATED_STATUSES, TaskStatus.PIPELINED, TaskStatus.UNKNOWN))


@dataclass(slots=True)
class Layout:
    """A job's tasks and their buckets. A task in no bucket matters only to tasks that must be placed apart from it."""

    rules: Rules
    tasks: Rows  # (n_tasks,), rows of all tasks of the job: first those in buckets, in the order in which they joined
    roles: Rows  # (n_tasks,)
    buckets: Rows  # (n_tasks,), -1 for none
    largest: int  # size of the largest bucket


@dataclass(frozen=True, slots=True)
class Kind:
    """Tasks of one role in one bucket of one job."""

    layout: Layout
    bucket: int
    role: int
    place: float  # position in the task order of the job


class Layouts:
    """Computes the layouts of the jobs of one session."""

    def __init__(self, ssn: State) -> None:
        self._ssn = ssn
        self._rules: dict[tuple[TopologyTexts, tuple[str, ...]], Rules | None] = {}
        self._sizes: dict[int, float] = {}  # by id of the shape
        self._buckets: dict[tuple[bytes, bytes, bytes, bytes], Rows] = {}

    def of(self, row: int, job: JobKey, texts: TopologyTexts) -> tuple[Layout, list[Kind], Rows] | None:
        """Return the layout of a job, its `Kind`s, and the index of the kind of each task in a bucket, in order.

        Returns None without a topology; as in Volcano, invalid annotations count as none.
        """
        ssn = self._ssn
        tasks = ssn.rows_of_job(row)
        records = [ssn.tasks.record(task) for task in tasks.tolist()]
        names = tuple(sorted({record.role for record in records}))
        rules = self._rules_of(texts, names, job)
        if rules is None:
            return None
        place = {name: number for number, name in enumerate(names)}
        roles = np.array([place[record.role] for record in records], dtype=np.intp)
        status = ssn.tasks.status[tasks]
        waiting = status == TaskStatus.PENDING
        nodes = np.where(STANDING[status], ssn.tasks.node[tasks], -1).astype(np.intp)
        in_bucket = (rules.priority[roles] > 0) & (waiting | (nodes >= 0))
        if names[0] == "":
            in_bucket &= roles > 0
        rank = rules.rank[roles].tolist()
        joining = [(node < 0, node if node >= 0 else rank[i]) for i, node in enumerate(nodes.tolist())]
        order = sorted(np.flatnonzero(in_bucket).tolist(), key=lambda i: (*joining[i], records[i].name, records[i].uid))
        if not order:
            return None
        inside = np.array(order, dtype=np.intp)
        everyone = np.concatenate((inside, np.flatnonzero(~in_bucket)))
        buckets = self._form(rules, roles[inside], nodes[inside], self._sizes_of(ssn.tasks.shape[tasks[inside]]))
        layout = Layout(
            rules=rules,
            tasks=tasks[everyone],
            roles=roles[everyone],
            buckets=np.concatenate((buckets, np.full(len(everyone) - len(inside), -1))),
            largest=int(np.bincount(buckets).max()),
        )
        left = np.bincount(buckets, weights=waiting[inside]).astype(float)
        kinds, which = _kinds(layout, buckets, roles[inside], left)
        return layout, kinds, which

    def _rules_of(self, texts: TopologyTexts, names: tuple[str, ...], job: JobKey) -> Rules | None:
        key = (texts, names)
        if key not in self._rules:
            try:
                self._rules[key] = rules_of(read(texts, names, job), names)
            except InvalidTopology:
                self._rules[key] = None
        return self._rules[key]

    def _sizes_of(self, shapes: "np.ndarray[tuple[int], np.dtype[np.int32]]") -> Floats:
        for shape in set(shapes.tolist()) - self._sizes.keys():
            self._sizes[shape] = size_of(self._ssn.task_of(shape).request)
        return np.array([self._sizes[shape] for shape in shapes.tolist()])

    def _form(self, rules: Rules, roles: Rows, nodes: Rows, sizes: Floats) -> Rows:
        key = (rules.attraction.tobytes(), roles.tobytes(), nodes.tobytes(), sizes.tobytes())
        found = self._buckets.get(key)
        if found is None:
            found = self._buckets[key] = form(roles, nodes, sizes, rules.attraction)
        return found


def _kinds(layout: Layout, buckets: Rows, roles: Rows, waiting: Floats) -> tuple[list[Kind], Rows]:
    """Return the kinds of the tasks in buckets, and each task's kind by index; ``waiting``: pending tasks by bucket."""
    rank, n_roles = layout.rules.rank, len(layout.rules.rank)
    by_bucket = np.argsort(np.lexsort((np.arange(len(waiting)), -waiting))).tolist()
    pairs, which = np.unique(buckets * n_roles + roles, return_inverse=True)
    kinds = [
        Kind(
            layout, pair // n_roles, pair % n_roles, float(by_bucket[pair // n_roles] * n_roles + rank[pair % n_roles])
        )
        for pair in pairs.tolist()
    ]
    return kinds, which.reshape(-1)
