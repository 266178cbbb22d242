"""The incremental store: it receives every change once and makes snapshots in microseconds per thousand objects.

One thread owns it (the event loop of the daemon); snapshots are private copies. The store does not know where changes
come from: the cache, tests and benchmarks all use it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from volcano_py.model.arrays import Objects
from volcano_py.model.objects import JobKey, JobRecord, NodeRecord, QueueRecord, TaskRecord
from volcano_py.model.resources import NOT_OFFERED, ResourceRegistry
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import OCCUPYING_STATUSES, PodGroupPhase, TaskStatus
from volcano_py.snapshot import layout, resource_order
from volcano_py.snapshot.columns import JobColumns, JobRules, Snapshot, TaskColumns, nominated_tasks
from volcano_py.snapshot.default_spread import DefaultSpread
from volcano_py.snapshot.domains import DomainStore
from volcano_py.snapshot.facts import FactStore
from volcano_py.snapshot.job_marks import JobMarks
from volcano_py.snapshot.loads import LoadStore
from volcano_py.snapshot.names import name_suffix
from volcano_py.snapshot.nodes import NodeStore
from volcano_py.snapshot.ports import PortSet
from volcano_py.snapshot.roles import RoleTable
from volcano_py.snapshot.rows import RowTable, grown
from volcano_py.snapshot.selection import Selection
from volcano_py.snapshot.shapes import ShapeTable, undivided
from volcano_py.snapshot.shown import ShownTables, alike_but_for_condition, with_status_of
from volcano_py.snapshot.task_place import TaskPlace
from volcano_py.snapshot.volumes import VolumeStore, uses_claims


class ClusterStore:
    """Nodes, tasks, jobs and queues, with columns that are updated with every change."""

    def __init__(self) -> None:
        self.resources = ResourceRegistry()
        self.shapes = ShapeTable(self.resources)
        self.nodes = NodeStore(self.resources)
        self.facts = FactStore(self._label_namespace)
        self.loads = LoadStore()
        self.volumes = VolumeStore()
        self._domains = DomainStore()
        self.queues: dict[str, QueueRecord] = {}
        self._withheld: dict[JobKey, str] = {}
        self._selection = Selection()
        self.series = DefaultSpread(self._spread_again)
        self._task_table: RowTable[str] = RowTable()
        self._roles = RoleTable()
        self._nominated: dict[int, str] = {}  # row of a pending task -> its nominated node
        self._places: list[TaskPlace | None] = []
        self._task_records: Objects = np.zeros(0, dtype=object)  # TaskRecord or None
        self._status = np.zeros(0, dtype=np.int8)
        self._node = np.zeros(0, dtype=np.int32)
        self._job = np.zeros(0, dtype=np.int32)
        self._shape = np.zeros(0, dtype=np.int32)
        self._priority = np.zeros(0, dtype=np.int64)
        self._creation = np.zeros(0)
        self._suffix = np.zeros(0, dtype=np.int64)
        self._traits = np.zeros(0, dtype=np.uint8)
        self._arrived = np.zeros(0, dtype=np.int64)
        self._role = np.zeros(0, dtype=np.int32)
        self.shown = ShownTables()
        self._arrivals = 0
        self._job_table: RowTable[JobKey] = RowTable()
        self.job_marks = JobMarks()
        self._job_records: Objects = np.zeros(0, dtype=object)  # JobRecord or None
        self._job_tasks: list[set[str]] = []  # uids
        self._n_resources = len(self.resources)
        self._job_block = np.zeros((layout.job_rows(self._n_resources), 0))
        self._min_available = np.zeros(0, dtype=np.int64)
        self._job_priority = np.zeros(0, dtype=np.int64)
        self._job_creation = np.zeros(0)
        self._phase = np.zeros(0, dtype=np.int8)
        self._job_present = np.zeros(0, dtype=bool)
        self._min_resources = np.zeros((self._n_resources, 0))
        self._has_min_resources = np.zeros(0, dtype=bool)
        self._job_queue = np.zeros(0, dtype=np.int32)
        self._with_sub_groups: set[int] = set()  # rows of the jobs that have policies for sub-groups
        self._with_topology: set[int] = set()  # rows of the jobs that, or some of whose sub-groups, have a topology
        self._queue_codes: dict[str, int] = {}  # every queue name that a PodGroup ever had

    # Nodes and queues

    def set_node(self, record: NodeRecord) -> None:
        """Add or replace a node."""
        self.nodes.set(record)
        self._offered(record.allocatable)

    def remove_node(self, name: str) -> None:
        """Forget a node."""
        self.nodes.remove(name)

    def set_queue(self, record: QueueRecord) -> None:
        """Add or replace a queue."""
        self.queues[record.name] = record
        for name in record.named_resources:
            self.resources.row(name)
        self._offered(record.named_resources)

    def remove_queue(self, name: str) -> None:
        """Forget a queue."""
        self.queues.pop(name, None)

    # Jobs

    def set_job(self, record: JobRecord) -> None:
        """Add or replace a PodGroup."""
        asked, left_out = record.min_resources, self.resources.ask(record.min_resources or ())
        self._grow()
        row = self._job_row(record.key)
        before, self._job_records[row] = self._job_records[row], record
        self.shown.put_group(row, record, before)
        if before is None or with_status_of(before, record) != record:
            self.job_marks.changed(row)
        self._job_present[row] = True
        self._min_resources[:, row] = 0.0 if asked is None else self.resources.vector(asked, left_out)
        self._has_min_resources[row] = asked is not None
        self._job_queue[row] = self._queue_codes.setdefault(record.queue, len(self._queue_codes))
        self._min_available[row] = record.min_available
        self._job_priority[row] = record.priority
        self._job_creation[row] = record.creation
        self._phase[row] = PodGroupPhase.of(record.phase)
        self._roles.set_minimums(row, record.role_rule)
        (self._with_sub_groups.add if record.sub_group_policies else self._with_sub_groups.discard)(row)
        (self._with_topology.add if record.has_topology else self._with_topology.discard)(row)

    def remove_job(self, key: JobKey) -> None:
        """Forget a PodGroup; its tasks stay."""
        if (row := self._job_table.get(key)) is not None:
            self._job_records[row] = None
            self.job_marks.changed(row)
            self._job_present[row] = False
            self._roles.set_minimums(row, {})
            self._with_sub_groups.discard(row)
            self._with_topology.discard(row)
            self._drop_job_if_unused(key, row)

    def withhold(self, key: JobKey, why: str) -> None:
        """Record why an existing PodGroup is not among the jobs; "" removes the record."""
        self._withheld.pop(key, None)
        if why:
            self._withheld[key] = why

    def job(self, key: JobKey) -> JobRecord | None:
        """Return the record of a PodGroup."""
        row = self._job_table.get(key)
        return None if row is None else cast(JobRecord | None, self._job_records[row])

    def tasks_of(self, key: JobKey) -> tuple[str, ...]:
        """Return the uids of a job's tasks, sorted."""
        row = self._job_table.get(key)
        return () if row is None else tuple(sorted(self._job_tasks[row]))

    def count(self, key: JobKey, *statuses: TaskStatus) -> int:
        """Return how many tasks of a job are in one of these statuses."""
        row = self._job_table.get(key)
        # One by one: an index of many lets other threads run, and a running cycle does not give way at once.
        return 0 if row is None else int(sum(self._job_block[status, row] for status in statuses))

    def _job_row(self, key: JobKey) -> int:
        if (row := self._job_table.get(key)) is not None:
            return row
        row = self._job_table.add(key)
        self.job_marks.add(key, row)
        if row == len(self._job_tasks):
            self._job_tasks.append(set())
            height = self._job_table.height
            self._job_records = grown(self._job_records, height, fill=None)
            self._job_block = grown(self._job_block, height)
            self._min_available = grown(self._min_available, height)
            self._job_priority = grown(self._job_priority, height)
            self._job_creation = grown(self._job_creation, height)
            self._phase = grown(self._phase, height)
            self._job_present = grown(self._job_present, height)
            self._min_resources = grown(self._min_resources, height)
            self._has_min_resources = grown(self._has_min_resources, height)
            self._job_queue = grown(self._job_queue, height)
        return row

    def _drop_job_if_unused(self, key: JobKey, row: int) -> None:
        if self._job_records[row] is None and not self._job_tasks[row]:
            self._job_table.remove(key)
            self.job_marks.remove(key)
            columns = (self._min_available, self._job_priority, self._job_creation, self._phase, self._job_queue)
            for column in columns:
                column[row] = 0
            self._min_resources[:, row] = self._has_min_resources[row] = 0
            self._job_tasks[row] = set()  # one that has become empty keeps its memory

    # Tasks

    def set_task(self, record: TaskRecord, shape: Shape, status: TaskStatus, node: str = "") -> None:
        """Add or replace a task with its status and node.

        The given shape describes the pod's spec. The store adds the selectors that select the pod, and the default
        spread constraints if the pod has none of its own.
        """
        if shape.spread or record.foreign:
            self.series.drop(record)
        elif spread := self.series.put(record):
            shape = replace(shape, spread=spread)
        row = self._task_table.get(record.uid)
        known = None if row is None else self.shapes.shape(int(self._shape[row]))
        before = frozenset() if known is None else known.selectors
        self._select_again(self._selection.put(record, shape.selectors, before))
        selected_by = self._selection.of(record.uid)
        if shape.selected_by != selected_by:
            shape = replace(shape, selected_by=selected_by)
        if row is not None and (shape is known or shape == known):
            self._set_record(row, record)
            place, present = TaskPlace(record, status, node), self._places[row]
            if present is not None and present[1:] == place[1:] and alike_but_for_condition(present.record, record):
                self._places[row], self._task_records[row] = place, record
            else:
                self._move(row, place)
            return
        shape_id = self.shapes.acquire(shape)  # before the old one is released: an equal shape keeps its id
        self._grow()
        if row is None:
            row = self._task_table.add(record.uid)
            if row == len(self._places):
                self._add_task_row()
            self._number(row)
        else:
            if self._withdraw(row).record.key != record.key:
                self._number(row)
            self.shapes.release(int(self._shape[row]))
        self._shape[row] = shape_id
        self._set_record(row, record)
        self._enter(row, TaskPlace(record, status, node))

    def move_task(self, uid: str, status: TaskStatus, node: str = "") -> None:
        """Change only the status and node of a known task."""
        row = self._row_of(uid)
        if (place := self._places[row]) is None:
            raise LookupError(f"task row {row} is free")
        self._move(row, TaskPlace(place.record, status, node))

    def remove_task(self, uid: str) -> None:
        """Forget a task."""
        if (row := self._task_table.get(uid)) is None:
            return
        before = self.shapes.shape(int(self._shape[row])).selectors
        self.series.drop(self._withdraw(row).record)
        self.shapes.release(int(self._shape[row]))
        self._task_table.remove(uid)
        self.shown.pods.forget(row)
        self._roles.release(int(self._role[row]))
        self._role[row] = -1
        self._select_again(self._selection.drop(uid, before))

    def _label_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """Set the labels of a namespace; an unknown or removed namespace has none."""
        self._select_again(self._selection.set_namespace(name, labels))

    def _spread_again(self, uids: Collection[str]) -> None:
        """Determine the default spread constraints of these pods again."""
        for uid in sorted(uids):
            if (place := self.task(uid)) is not None:
                shape = self.shapes.shape(int(self._shape[self._row_of(uid)]))
                self.set_task(place.record, replace(shape, spread=()), place.status, place.node)

    def _select_again(self, uids: Iterable[str]) -> None:
        """Give tasks whose selectors have changed their new shape; nothing else about them changes."""
        for uid in sorted(uids):
            row = self._row_of(uid)
            old = int(self._shape[row])
            shape = replace(self.shapes.shape(old), selected_by=self._selection.of(uid))
            self._shape[row] = self.shapes.acquire(shape)
            self.shapes.release(old)

    def rows_of(self, uids: Iterable[str]) -> list[int]:
        """Return the rows of those tasks that are known."""
        return [row for uid in uids if (row := self._task_table.get(uid)) is not None]

    def task(self, uid: str) -> TaskPlace | None:
        """Return a task with its status and node, None if it is unknown."""
        row = self._task_table.get(uid)
        return None if row is None else self._places[row]

    @property
    def task_rows(self) -> range:
        """The rows of tasks."""
        return range(len(self._places))

    def waiting(self, row: int) -> TaskRecord | None:
        """Return the task in a row if it waits for this scheduler: it is pending, not gated and not foreign."""
        place = self._places[row]
        if place is None or place.record.foreign or place.status is not TaskStatus.PENDING:
            return None
        return None if self.shapes.shape(int(self._shape[row])).gated else place.record

    def _row_of(self, uid: str) -> int:
        if (row := self._task_table.get(uid)) is None:
            raise LookupError(f"no task has uid {uid}")
        return row

    def _add_task_row(self) -> None:
        self._places.append(None)
        if (height := self._task_table.height) <= len(self._status):
            return
        self._task_records = grown(self._task_records, height, fill=None)
        self._status = grown(self._status, height)
        self._node = grown(self._node, height)
        self._job = grown(self._job, height)
        self._shape = grown(self._shape, height)
        self._priority = grown(self._priority, height)
        self._creation = grown(self._creation, height)
        self._suffix = grown(self._suffix, height)
        self._traits = grown(self._traits, height)
        self._arrived = grown(self._arrived, height)
        self._role = grown(self._role, height, fill=-1)

    def _number(self, row: int) -> None:
        self._arrived[row] = self._arrivals = self._arrivals + 1

    def _set_record(self, row: int, record: TaskRecord) -> None:
        self._priority[row] = record.priority
        self._creation[row] = record.creation
        self._suffix[row] = name_suffix(record.name)
        self._traits[row] = record.traits
        self.shown.put_pod(row, record)
        before, self._role[row] = int(self._role[row]), self._roles.acquire(record.role)
        if before >= 0:
            self._roles.release(before)

    def _move(self, row: int, place: TaskPlace) -> None:
        """Change the status or node of a task without changing its shape.

        Most often the task stays on its node and adds the same amounts to it; then only its job's columns change.
        """
        before = self._places[row]
        if (
            before is None
            or before.node != place.node
            or before.record.key != place.record.key
            or not layout.counts_alike(before.status, place.status)
            or not place.node
        ):
            if self._withdraw(row).record.key != place.record.key:
                self._number(row)
            self._enter(row, place)
            return
        shape_id, job_row = int(self._shape[row]), int(self._job[row])
        self._places[row], self._task_records[row] = place, place.record
        self._status[row] = place.status
        if job_row >= 0:
            self.job_marks.changed(job_row)
            column = self._job_block[:, job_row]
            column -= self.shapes.deltas(shape_id, before.status)[1]
            column += self.shapes.deltas(shape_id, place.status)[1]

    def _enter(self, row: int, place: TaskPlace) -> None:
        node_delta, job_delta = self.shapes.deltas(int(self._shape[row]), place.status)
        self._places[row], self._task_records[row] = place, place.record
        self._status[row] = place.status
        if place.record.nominated and place.status is TaskStatus.PENDING:
            self._nominated[row] = place.record.nominated
        self._node[row] = self.nodes.add_task(place.node, node_delta) if place.node else -1
        if ports := self._ports_taken(row, place):
            self.nodes.take_ports(place.node, ports)
        if place.record.has_volumes and uses_claims(place.status, place.node):
            self.volumes.enter(row, place.record, place.node)
        key = place.record.key
        if key is None:
            self._job[row] = -1
        else:
            self._job[row] = job_row = self._job_row(key)
            self._job_tasks[job_row].add(place.record.uid)
            self.job_marks.changed(job_row)
            self._job_block[:, job_row] += job_delta

    def _withdraw(self, row: int) -> TaskPlace:
        if (place := self._places[row]) is None:
            raise LookupError(f"task row {row} is free")
        node_delta, job_delta = self.shapes.deltas(int(self._shape[row]), place.status)
        if ports := self._ports_taken(row, place):
            self.nodes.give_ports(place.node, ports)
        if place.record.has_volumes and uses_claims(place.status, place.node):
            self.volumes.leave(row)
        if place.node:
            self.nodes.remove_task(place.node, node_delta)
        key = place.record.key
        if key is not None:
            job_row = int(self._job[row])
            self._job_block[:, job_row] -= job_delta
            self._job_tasks[job_row].discard(place.record.uid)
            self.job_marks.changed(job_row)
            self._drop_job_if_unused(key, job_row)
        self._places[row] = self._task_records[row] = None
        self._nominated.pop(row, None)
        self._status[row] = TaskStatus.UNKNOWN
        self._node[row] = self._job[row] = -1
        return place

    def _ports_taken(self, row: int, place: TaskPlace) -> PortSet:
        """Return the host ports that a task uses on its node, () unless it occupies the node or is pipelined."""
        uses = place.node and (place.status in OCCUPYING_STATUSES or place.status is TaskStatus.PIPELINED)
        return self.shapes.shape(int(self._shape[row])).host_ports if uses else ()

    def _grow(self) -> None:
        """Add rows for resources that were registered since the last call."""
        new = len(self.resources)
        self.shapes.grow()
        self.nodes.grow()
        if new != self._n_resources:
            self._job_block = layout.widen_jobs(self._job_block, self._n_resources, new)
            self._min_resources = np.pad(self._min_resources, ((0, new - self._n_resources), (0, 0)))
            self._n_resources = new

    def _offered(self, names: Collection[str]) -> None:
        """Have tasks and jobs ask again for resources that had no row before a node or a queue offered them."""
        self._grow()
        if (together := self.resources.find(NOT_OFFERED)) is None:
            return
        if not self.shapes.left_out.keys().isdisjoint(names):
            for row in np.flatnonzero(self.shapes.leaving_out()[self._shape]).tolist():
                if (place := self._places[row]) is not None:
                    shape = undivided(self.shapes.shape(int(self._shape[row])))
                    self.set_task(place.record, shape, place.status, place.node)
        for record in self._job_records[np.flatnonzero(self._min_resources[together])]:
            if record is not None and not record.min_resources.keys().isdisjoint(names):
                self.set_job(record)

    # Snapshots

    def snapshot(self) -> Snapshot:
        """Return a private copy of everything; nodes and resources are in order of their names."""
        nodes = self.nodes.columns()
        shapes, requests, nonzero = self.shapes.freeze()
        facts = self.facts.frozen()
        return resource_order.by_name(
            Snapshot(
                resources=self.resources.frozen(),
                nodes=nodes,
                tasks=self._task_columns(),
                jobs=self._job_columns(),
                queues=dict(sorted(self.queues.items())),
                shapes=shapes,
                requests=requests,
                nonzero=nonzero,
                withheld=dict(self._withheld),
                facts=facts,
                domains=self._domains.of(facts.hyper_nodes, nodes.statics.records),
                nominated=nominated_tasks(self._nominated, self._task_records, nodes.statics),
                loads=self.loads.columns(nodes.statics),
                has_inter_pod_terms=self._selection.in_use,
                queue_gates=self.shapes.at_queue_gates > 0,
                volumes=self.volumes.freeze(self._task_table.height, nodes.statics),
            )
        )

    def _task_columns(self) -> TaskColumns:
        n = self._task_table.height
        return TaskColumns(
            records=cast(Sequence[TaskRecord | None], self._task_records[:n].copy()),
            status=self._status[:n].copy(),
            node=self.nodes.rank(self._node[:n]),
            job=self._job[:n].copy(),
            shape=self._shape[:n].copy(),
            priority=self._priority[:n].copy(),
            creation=self._creation[:n].copy(),
            suffix=self._suffix[:n].copy(),
            traits=self._traits[:n].copy(),
            arrived=self._arrived[:n].copy(),
            role=self._role[:n].copy(),
            role_names=self._roles.names(),
            shown=self.shown.pods.columns(n),
        )

    def _job_columns(self) -> JobColumns:
        n = self._job_table.height
        versions, places = self.job_marks.columns(n)
        return JobColumns(
            records=cast(Sequence[JobRecord | None], self._job_records[:n].copy()),
            block=self._job_block[:, :n].copy(),
            n_resources=self._n_resources,
            min_available=self._min_available[:n].copy(),
            priority=self._job_priority[:n].copy(),
            creation=self._job_creation[:n].copy(),
            phase=self._phase[:n].copy(),
            rules=JobRules(
                present=self._job_present[:n].copy(),
                min_resources=self._min_resources[:, :n].copy(),
                has_min_resources=self._has_min_resources[:n].copy(),
                queue=self._job_queue[:n].copy(),
                queue_names=tuple(self._queue_codes),
                role_minimums=self._roles.minimums(),
                with_sub_groups=np.array(sorted(self._with_sub_groups), dtype=np.intp),
                with_topology=np.array(sorted(self._with_topology), dtype=np.intp),
                versions=versions,
                places=places,
                shown=self.shown.groups.columns(n),
            ),
        )
