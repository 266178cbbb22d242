"""The store's nodes: their records and accounting, updated with every change."""

from dataclasses import replace
from typing import Final

import numpy as np

from volcano_py.model.arrays import Codes, Floats, fixed
from volcano_py.model.objects import NodeRecord, TaintRecord
from volcano_py.model.resources import ResourceRegistry
from volcano_py.snapshot import layout
from volcano_py.snapshot.columns import LabelColumn, NodeColumns, NodeStatics
from volcano_py.snapshot.ports import NodePorts, PortSet
from volcano_py.snapshot.rows import RowTable, grown

_TIMES_NODES: Final = 4
_SPARE_VALUES: Final = 1000
"""How many values of a label are kept: this many, and so many for each node."""


class _Values:
    """The values of one node label, each with a code; codes start at 1."""

    __slots__ = ("codes", "values")

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self.values = [""]

    def code(self, value: str) -> int:
        found = self.codes.get(value)
        if found is None:
            found = self.codes[value] = len(self.values)
            self.values.append(value)
        return found


class NodeStore:
    """Nodes by name, each with its row in the block.

    If a task names a node that has not arrived, the node gets a row without a record. It appears in no snapshot, and
    its accounting is right as soon as the node arrives.
    """

    def __init__(self, resources: ResourceRegistry) -> None:
        self._resources = resources
        self._n_resources = len(resources)
        self._table: RowTable[str] = RowTable()
        self._records: list[NodeRecord | None] = []
        self._tasks: list[int] = []  # number of tasks on the node, by row
        self._ports: dict[int, PortSet] = {}  # by row, only for nodes with used host ports
        self._port_sets: tuple[Codes, list[PortSet]] | None = None  # as of the last snapshot
        self.block = np.zeros((layout.node_rows(self._n_resources), 0))
        self._versions = np.zeros(0, dtype=np.int64)
        self._version = 0
        self._lineage = object()
        self._layout = 0
        self._values: dict[str, _Values] = {}
        self._taint_sets: dict[tuple[TaintRecord, ...], int] = {(): 0}
        self._statics: NodeStatics | None = None
        self._other_images: list[int] = []  # rows whose records differ from those in the statics only in images
        self._order = np.zeros(0, dtype=np.intp)
        self._rank = np.zeros(0, dtype=np.int32)

    def __len__(self) -> int:
        return sum(record is not None for record in self._records)

    def names(self) -> list[str]:
        """Return the names of all nodes, in no particular order."""
        return [record.name for record in self._records if record is not None]

    def record(self, name: str) -> NodeRecord | None:
        """Return the record of a node, None if the node has not arrived or was removed."""
        row = self._table.get(name)
        return None if row is None else self._records[row]

    def set(self, record: NodeRecord) -> None:
        """Add or replace a node."""
        for name in record.allocatable:
            self._resources.row(name)
        self.grow()
        row = self.row(record.name)
        previous = self._records[row]
        if previous == record:
            return
        if previous is None:
            self._layout += 1
        self._set_allocatable(row, self._resources.vector(record.allocatable))
        self._records[row] = record
        self._version += 1
        self._versions[row] = self._version
        if previous is not None and replace(previous, images=record.images) == record:
            self._other_images.append(row)  # a frequent change: nodes pull images all the time
        else:
            self._statics = None

    def remove(self, name: str) -> None:
        """Forget a node; while tasks are on it, its row keeps their accounting in case it returns."""
        row = self._table.get(name)
        if row is None or self._records[row] is None:
            return
        self._set_allocatable(row, np.zeros(self._n_resources))
        self._records[row] = None
        self._layout += 1
        self._statics = None
        self._drop_if_unused(name, row)

    def _set_allocatable(self, row: int, allocatable: Floats) -> None:
        idle, used, has = (
            layout.section(self.block, which, self._n_resources)
            for which in (layout.IDLE, layout.USED, layout.ALLOCATABLE)
        )
        idle[:, row] = allocatable - used[:, row]  # a sum of differences would keep the rounding of an absurd amount
        has[:, row] = allocatable

    def row(self, name: str) -> int:
        """Return the row of a node; an unknown node gets a row."""
        row = self._table.get(name)
        if row is not None:
            return row
        row = self._table.add(name)
        self._statics = None  # ranks must include the new row
        if row == len(self._records):
            self._records.append(None)
            self._tasks.append(0)
            self.block = grown(self.block, self._table.height)
            self._versions = grown(self._versions, self._table.height)
        return row

    def add_task(self, name: str, delta: Floats) -> int:
        """Add a task's amounts to a node and return the node's row."""
        row = self.row(name)
        self._tasks[row] += 1
        self.block[:, row] += delta
        return row

    def remove_task(self, name: str, delta: Floats) -> None:
        """Subtract a task's amounts from a node."""
        row = self.row(name)
        self._tasks[row] -= 1
        self.block[:, row] -= delta
        self._drop_if_unused(name, row)

    def take_ports(self, name: str, ports: PortSet) -> None:
        """Record that a task on a node uses these host ports."""
        row = self.row(name)
        self._ports[row] = tuple(sorted((*self._ports.get(row, ()), *ports)))
        self._port_sets = None

    def give_ports(self, name: str, ports: PortSet) -> None:
        """Record that a task on a node no longer uses these host ports."""
        row = self.row(name)
        left = list(self._ports.pop(row))
        for port in ports:
            left.remove(port)
        if left:
            self._ports[row] = tuple(left)
        self._port_sets = None

    def _drop_if_unused(self, name: str, row: int) -> None:
        if self._tasks[row] == 0 and self._records[row] is None:
            self._table.remove(name)
            self.block[:, row] = 0

    def grow(self) -> None:
        """Add rows for resources that were registered since the last call."""
        new = len(self._resources)
        if new != self._n_resources:
            self.block = layout.widen_nodes(self.block, self._n_resources, new)
            self._n_resources = new

    def columns(self) -> NodeColumns:
        """Return a private copy of all nodes in order of their names."""
        statics = self._statics
        if statics is None:
            statics = self._statics = self._arrange()
            self._port_sets = None
        elif self._other_images:
            statics = self._statics = self._with_other_images(statics)
        self._other_images.clear()
        block = self.block.take(self._order, axis=1)  # unlike indexing, take makes each row contiguous
        return NodeColumns(statics, block, self._n_resources, ports=self._taken_ports())

    def _with_other_images(self, statics: NodeStatics) -> NodeStatics:
        records, versions = list(statics.records), statics.versions.copy()
        for row in self._other_images:
            record, rank = self._records[row], int(self._rank[row])
            if record is not None:
                records[rank], versions[rank] = record, self._versions[row]
        return replace(statics, records=tuple(records), versions=fixed(versions))

    def _taken_ports(self) -> NodePorts:
        if self._port_sets is None:
            known: dict[PortSet, int] = {(): 0}
            codes = np.zeros(max(len(self._records), 1), dtype=np.int32)
            # A Python loop over nodes with used host ports, only after one of these has changed.
            for row, ports in self._ports.items():
                codes[row] = known.setdefault(ports, len(known))
            self._port_sets = codes[self._order], list(known)
        codes, sets = self._port_sets
        return NodePorts(codes.copy(), sets)

    def rank(self, rows: Codes) -> Codes:
        """Return the rows in the last `columns` of rows of the store; -1 for -1 and for nodes that have not arrived."""
        ranks: Codes = self._rank[rows]
        return ranks

    def _arrange(self) -> NodeStatics:
        found = sorted((record.name, row, record) for row, record in enumerate(self._records) if record is not None)
        self._order = np.array([row for _, row, _ in found], dtype=np.intp)
        self._rank = np.full(self._table.height + 1, -1, dtype=np.int32)  # the last element answers for row -1
        self._rank[self._order] = np.arange(len(found), dtype=np.int32)
        records = tuple(record for _, _, record in found)
        self._forget_values(len(records))
        return NodeStatics(
            layout=(self._lineage, self._layout),
            names=tuple(record.name for record in records),
            records=records,
            versions=fixed(self._versions[self._order]),
            labels=self._label_columns(records),
            taint_ids=fixed(np.array([self._taint_id(record.taints) for record in records], dtype=np.int32)),
            taint_sets=tuple(self._taint_sets),
            unschedulable=fixed(np.array([record.unschedulable for record in records], dtype=bool)),
            closed=fixed(np.array([bool(record.closed) for record in records], dtype=bool)),
        )

    def _forget_values(self, n_nodes: int) -> None:
        """Number the values of labels and the sets of taints anew if most of them belong to nodes that are gone.

        Where nodes come and go, each brings a host name, and questions about labels look at all values.
        """
        most = _TIMES_NODES * n_nodes + _SPARE_VALUES
        if len(self._taint_sets) > most or any(len(label.values) > most for label in self._values.values()):
            self._values, self._taint_sets = {}, {(): 0}
            self._lineage = object()  # a code means something else from now on

    def _label_columns(self, records: tuple[NodeRecord, ...]) -> dict[str, LabelColumn]:
        columns: dict[str, np.ndarray[tuple[int], np.dtype[np.int32]]] = {}
        for row, record in enumerate(records):
            for key, value in record.labels.items():
                codes = columns.get(key)
                if codes is None:
                    codes = columns[key] = np.zeros(len(records), dtype=np.int32)
                codes[row] = self._values.setdefault(key, _Values()).code(value)
        return {key: LabelColumn(fixed(codes), tuple(self._values[key].values)) for key, codes in columns.items()}

    def _taint_id(self, taints: tuple[TaintRecord, ...]) -> int:
        return self._taint_sets.setdefault(taints, len(self._taint_sets))
