"""The columns of a snapshot: nodes, tasks and jobs as arrays, together with their records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from volcano_py.model.arrays import Bools, Codes, Floats, Ints, Objects, Rows
from volcano_py.model.facts import NO_FACTS, ClusterFacts
from volcano_py.model.loads import NodeLoads
from volcano_py.model.objects import JobKey, JobRecord, NodeRecord, QueueRecord, TaintRecord, TaskRecord
from volcano_py.model.resources import PODS_ROW, ResourceRegistry
from volcano_py.model.shape import Shape
from volcano_py.snapshot import layout
from volcano_py.snapshot.domains import NO_DOMAINS, Domains
from volcano_py.snapshot.ports import NodePorts
from volcano_py.snapshot.roles import RoleMinimums
from volcano_py.snapshot.shown import Shown
from volcano_py.snapshot.volume_columns import SnapshotVolumes


@dataclass(frozen=True, slots=True)
class LabelColumn:
    """The values of one label over all nodes, as codes; 0 means that the node does not have the label."""

    codes: Codes  # (n_nodes,)
    values: Sequence[str]  # values[code]; values[0] is unused

    def table(self) -> Bools:
        """Return an all-False table, shape (n_codes,); the caller fills it and looks answers up as ``table[codes]``."""
        return np.zeros(len(self.values), dtype=bool)


@dataclass(frozen=True, eq=False)
class NodeStatics:
    """The node data that does not change during a cycle. Rows are nodes in order of their names."""

    layout: tuple[object, int]  # changes when nodes come or go; rows and versions are comparable only within a layout
    names: tuple[str, ...]
    records: tuple[NodeRecord, ...]
    versions: Ints  # (n_nodes,), changes whenever the record of the node changes
    labels: Mapping[str, LabelColumn]
    taint_ids: Codes  # (n_nodes,), index into taint_sets
    taint_sets: tuple[tuple[TaintRecord, ...], ...]
    unschedulable: Bools  # (n_nodes,)
    closed: Bools  # (n_nodes,), see NodeRecord.closed

    @cached_property
    def row_of(self) -> dict[str, int]:
        """Row by node name."""
        return {name: row for row, name in enumerate(self.names)}


class NodeColumns:
    """All nodes as columns, or a view of some; resources are rows, nodes are columns.

    A view made by :meth:`rows_view` or :meth:`after` has the same attributes for some nodes, in the given order. So a
    policy written for all nodes also works for one node, a group, or nodes as they would be after some placements.
    """

    __slots__ = (
        *("_n", "allocatable", "block", "copies", "idle", "nonzero", "ports", "requested", "rows", "statics", "used"),
    )

    def __init__(
        self, statics: NodeStatics, block: Floats, n_resources: int, ports: NodePorts, rows: Rows | None = None
    ) -> None:
        self.statics = statics
        self.block = block  # (layout.node_rows(n_resources), n_nodes)
        self.ports = ports  # of all nodes, also in a view
        self.rows = rows  # which rows of the statics these are; None means all of them
        self.copies: Ints | None = None  # (n_nodes,), how many additional tasks of the current shape a view assumes
        self._n = n = n_resources
        # Sections of the block, (n_resources, n_nodes) each. They are sliced once because policies use them often.
        self.idle: Floats = block[:n]  # allocatable minus used; may be negative
        self.used: Floats = block[n : 2 * n]  # held by tasks on the node, terminating ones included
        self.requested: Floats = block[4 * n : 5 * n]  # by the pods that kube-scheduler's NodeInfo would contain
        self.allocatable: Floats = block[5 * n : 6 * n]  # available to pods in total
        self.nonzero: Floats = block[6 * n :]  # (2, n_nodes), requests with kube-scheduler's defaults for missing ones

    def __len__(self) -> int:
        return int(self.block.shape[1])

    @property
    def names(self) -> Sequence[str]:
        """Names in row order."""
        if self.rows is None:
            return self.statics.names
        return [self.statics.names[row] for row in self.rows]

    @property
    def releasing(self) -> Floats:
        """Resources that terminating tasks will free."""
        return self.block[2 * self._n : 3 * self._n]

    @property
    def pipelined(self) -> Floats:
        """The part of `releasing` that is promised to pipelined tasks."""
        return self.block[3 * self._n : 4 * self._n]

    @property
    def future_idle(self) -> Floats:
        """Idle + releasing - pipelined; may be negative."""
        return self.idle + self.releasing - self.pipelined

    @property
    def pod_count(self) -> Floats:
        """Number of pods on each node, pipelined ones included, shape (n_nodes,)."""
        count: Floats = self.block[4 * self._n + PODS_ROW]
        return count

    def label(self, key: str) -> LabelColumn | None:
        """Return the column of a label, None if no node has it."""
        column = self.statics.labels.get(key)
        if column is None or self.rows is None:
            return column
        return LabelColumn(column.codes[self.rows], column.values)

    @property
    def taint_ids(self) -> Codes:
        """Index into ``statics.taint_sets``, shape (n_nodes,)."""
        return self.statics.taint_ids if self.rows is None else self.statics.taint_ids[self.rows]

    @property
    def port_codes(self) -> Codes:
        """The set of used host ports of each node, as an index into ``ports``, shape (n_nodes,)."""
        return self.ports.codes if self.rows is None else self.ports.codes[self.rows]

    @property
    def unschedulable(self) -> Bools:
        """Cordoned nodes, shape (n_nodes,)."""
        return self.statics.unschedulable if self.rows is None else self.statics.unschedulable[self.rows]

    @property
    def closed(self) -> Bools:
        """Nodes on which nothing more may be placed, shape (n_nodes,)."""
        return self.statics.closed if self.rows is None else self.statics.closed[self.rows]

    def rows_view(self, rows: Rows) -> "NodeColumns":
        """Return a copy of these nodes in the given order; rows may repeat."""
        base = rows if self.rows is None else self.rows[rows]
        return NodeColumns(self.statics, self.block.take(rows, axis=1), self._n, self.ports, base)

    def after(self, rows: Rows, copies: Ints, delta: Floats) -> "NodeColumns":
        """Return these nodes as they would be with ``copies[i]`` more tasks, ``delta`` each, on node ``rows[i]``.

        What such tasks take besides amounts, such as host ports, follows from ``copies`` of the view.
        """
        view = self.rows_view(rows)
        view.block += delta[:, None] * copies
        view.copies = copies
        return view


class _ChosenRecords(Sequence["TaskRecord | None"]):
    """The records of some tasks, found when they are read: a cycle orders a million tasks by their columns alone."""

    __slots__ = ("_records", "_rows")

    def __init__(self, records: Sequence[TaskRecord | None], rows: Rows) -> None:
        self._records = records
        self._rows = rows

    @overload
    def __getitem__(self, place: int) -> TaskRecord | None: ...

    @overload
    def __getitem__(self, place: slice) -> "Sequence[TaskRecord | None]": ...

    def __getitem__(self, place: int | slice) -> "TaskRecord | Sequence[TaskRecord | None] | None":
        if isinstance(place, slice):
            return _ChosenRecords(self._records, self._rows[place])
        record: TaskRecord | None = self._records[self._rows[place]]
        return record

    def __len__(self) -> int:
        return len(self._rows)


class TaskColumns:
    """Tasks as columns, or a view of some. Rows are in no particular order; a row without a record is free."""

    __slots__ = (
        *("arrived", "creation", "job", "node", "priority", "records", "role", "role_names", "rows", "shape", "status"),
        *("shown", "suffix", "traits"),
    )

    def __init__(
        self,
        records: Sequence[TaskRecord | None],
        status: NDArray[np.int8],
        node: Codes,
        job: Codes,
        shape: Codes,
        priority: Ints,
        creation: Floats,
        suffix: Ints,
        traits: NDArray[np.uint8],
        arrived: Ints,
        role: Codes,
        role_names: tuple[str, ...],
        shown: Shown,
        rows: Rows | None = None,
    ) -> None:
        self.records = records  # an array, in a snapshot
        self.rows = rows  # in a view: which rows of all tasks these are; None means all of them
        self.status = status  # TaskStatus
        self.node = node  # row of the node, -1 for none or for one that is not in the snapshot
        self.job = job  # row of the job, -1 for none
        self.shape = shape  # id of the shape
        self.priority = priority
        self.creation = creation  # seconds since the epoch
        self.suffix = suffix  # the number at the end of the name, -1 without one (see store)
        self.traits = traits  # TaskTrait
        self.arrived = arrived  # order of arrival, from 1; a task that joins another job gets a new number
        self.role = role  # index into role_names, -1 in a free row
        self.role_names = role_names
        self.shown = shown  # the conditions of pods

    def __len__(self) -> int:
        return len(self.status)

    def rows_view(self, rows: Rows) -> "TaskColumns":
        """Return a copy of these tasks in the given order, with the same attributes."""
        return TaskColumns(
            records=_ChosenRecords(self.records, rows),
            status=self.status[rows],
            node=self.node[rows],
            job=self.job[rows],
            shape=self.shape[rows],
            priority=self.priority[rows],
            creation=self.creation[rows],
            suffix=self.suffix[rows],
            traits=self.traits[rows],
            arrived=self.arrived[rows],
            role=self.role[rows],
            role_names=self.role_names,
            shown=self.shown.rows_view(rows),
            rows=rows if self.rows is None else self.rows[rows],
        )

    def record(self, row: int) -> TaskRecord:
        """Return the record of a row that is not free."""
        record = self.records[row]
        if record is None:
            raise LookupError(f"task row {row} is free")
        return record


class NominatedTasks(NamedTuple):
    """Pending tasks with a nominated node, ordered by namespace, name and uid; other schedulers' tasks included."""

    tasks: Rows  # (n,), rows of the tasks
    nodes: Rows  # (n,), rows of their nodes
    lost: Rows  # (n_lost,), rows of further tasks, whose nodes are not in the snapshot


NO_NOMINATIONS: Final = NominatedTasks(*(np.zeros(0, dtype=np.intp) for _ in range(3)))


def nominated_tasks(nominated: Mapping[int, str], records: Objects, statics: NodeStatics) -> NominatedTasks:
    """Return the nominations (task row -> node) in an order that does not depend on history."""
    if not nominated:
        return NO_NOMINATIONS
    found = [
        (record.namespace, record.name, record.uid, task, statics.row_of.get(node, -1))
        for task, node in nominated.items()
        if (record := records[task]) is not None
    ]
    rows = np.array([(task, node) for *_, task, node in sorted(found)], dtype=np.intp).reshape(-1, 2)
    known = rows[:, 1] >= 0
    return NominatedTasks(rows[known, 0], rows[known, 1], rows[~known, 0])


@dataclass(frozen=True, eq=False)
class JobRules:
    """What is known of PodGroups that does not change during a cycle."""

    present: Bools  # (n_jobs,), whether there is a PodGroup
    min_resources: Floats  # (n_resources, n_jobs), 0 for resources not named
    has_min_resources: Bools  # (n_jobs,)
    queue: Codes  # (n_jobs,), index into queue_names; undefined in a row without a record
    queue_names: tuple[str, ...]
    role_minimums: RoleMinimums
    with_sub_groups: Rows  # (n,), the rows of the jobs that have policies for sub-groups
    with_topology: Rows  # (n,), the rows of the jobs that, or some of whose sub-groups, have a network topology
    versions: (
        Ints  # (n_jobs,), another number whenever the PodGroup or one of its tasks changes, but for what they show
    )
    shown: Shown  # the statuses of PodGroups, (n_jobs,)
    places: Ints  # (n_jobs,), place in the order of namespace and name; undefined in a free row


class JobColumns:
    """Jobs as columns. Rows are in no particular order; a row without a record has no PodGroup."""

    __slots__ = ("_n", "block", "creation", "min_available", "phase", "priority", "records", "rows", "rules")

    def __init__(
        self,
        records: Sequence[JobRecord | None],
        block: Floats,
        n_resources: int,
        min_available: Ints,
        priority: Ints,
        creation: Floats,
        phase: NDArray[np.int8],
        rules: JobRules,
        rows: Rows | None = None,
    ) -> None:
        self.records = records  # an array, in a snapshot
        self.rules = rules
        self.rows = rows  # which rows of the rules these are; None means all of them
        self.block = block  # (layout.job_rows(n_resources), n_jobs)
        self._n = n_resources
        self.min_available = min_available
        self.priority = priority
        self.creation = creation
        self.phase = phase  # PodGroupPhase

    def __len__(self) -> int:
        return int(self.block.shape[1])

    @property
    def counts(self) -> Floats:
        """Number of tasks by status, shape (N_STATUSES, n_jobs)."""
        return self.block[: layout.HELD_ROW]

    @property
    def held(self) -> Floats:
        """Number of tasks that count towards the minimum, pending best-effort ones included, shape (n_jobs,)."""
        count: Floats = self.block[layout.HELD_ROW]
        return count

    @property
    def valid(self) -> Floats:
        """Number of tasks that count, or may later count, towards the minimum, shape (n_jobs,)."""
        count: Floats = self.block[layout.VALID_ROW]
        return count

    def _section(self, section: int) -> Floats:
        start = layout.JOB_HEAD + section * self._n
        return self.block[start : start + self._n]

    @property
    def allocated(self) -> Floats:
        """Requests of tasks in allocated statuses, shape (n_resources, n_jobs)."""
        return self._section(layout.ALLOCATED)

    @property
    def pending(self) -> Floats:
        """Requests of pending tasks, shape (n_resources, n_jobs)."""
        return self._section(layout.PENDING)

    @property
    def total(self) -> Floats:
        """Requests of all tasks, shape (n_resources, n_jobs)."""
        return self._section(layout.TOTAL)

    @property
    def promised(self) -> Floats:
        """Requests of pipelined tasks, shape (n_resources, n_jobs)."""
        return self._section(layout.PROMISED)

    @property
    def taken(self) -> Floats:
        """Requests of allocated and of pipelined tasks, shape (n_resources, n_jobs)."""
        return self.allocated + self.promised

    @property
    def min_resources(self) -> Floats:
        """The minResources of PodGroups, 0 for resources not named, shape (n_resources, n_jobs)."""
        return self.rules.min_resources if self.rows is None else self.rules.min_resources[:, self.rows]

    @property
    def has_min_resources(self) -> Bools:
        """Whether a PodGroup has minResources, shape (n_jobs,)."""
        return self.rules.has_min_resources if self.rows is None else self.rules.has_min_resources[self.rows]

    def rows_view(self, rows: Rows) -> "JobColumns":
        """Return a copy of these jobs in the given order, with the same attributes."""
        return JobColumns(
            records=[self.records[row] for row in rows],
            block=self.block.take(rows, axis=1),
            n_resources=self._n,
            min_available=self.min_available[rows],
            priority=self.priority[rows],
            creation=self.creation[rows],
            phase=self.phase[rows],
            rules=self.rules,
            rows=rows if self.rows is None else self.rows[rows],
        )

    def record(self, row: int) -> JobRecord:
        """Return the record of a row that has a PodGroup."""
        record = self.records[row]
        if record is None:
            raise LookupError(f"job row {row} has no PodGroup")
        return record

    def present(self) -> Rows:
        """Return the rows that have a PodGroup, in no particular order."""
        return np.flatnonzero(self.rules.present if self.rows is None else self.rules.present[self.rows])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A private copy of the cluster's state for one cycle, which may change the columns."""

    resources: ResourceRegistry
    nodes: NodeColumns
    tasks: TaskColumns
    jobs: JobColumns
    queues: dict[str, QueueRecord]
    shapes: list[Shape | None]  # by id
    requests: Floats  # (n_resources, n_shapes)
    nonzero: Floats  # (2, n_shapes)
    withheld: dict[JobKey, str] = field(default_factory=dict)  # why a PodGroup that exists is not among the jobs
    facts: ClusterFacts = NO_FACTS
    domains: Domains = NO_DOMAINS  # of the HyperNodes
    nominated: NominatedTasks = NO_NOMINATIONS
    loads: NodeLoads | None = None  # None if loads are not measured
    has_inter_pod_terms: bool = False  # whether any task has inter-pod terms
    queue_gates: bool = False  # whether any task has, or had, the gate of its queue
    volumes: SnapshotVolumes | None = None  # None if no task uses claims
