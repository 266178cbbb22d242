"""Which nodes reach which volumes.

The affinity of nearly every volume names one value of one label: a host name or a zone. Such volumes are looked up by
the codes of the label, all at once. Any other affinity is evaluated over all nodes, once per distinct affinity.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from volcano_py.model.arrays import Bools, Codes, Ints, Rows
from volcano_py.model.pod_needs import Affinity
from volcano_py.snapshot import node_terms
from volcano_py.snapshot.columns import LabelColumn, NodeColumns, NodeStatics
from volcano_py.snapshot.volume_columns import NO_VOLUMES, VolumeColumns

_EVERYWHERE: Final = -1
_EVALUATED: Final = -2
_UNKNOWN: Final = -1

StaticRow = Callable[[Hashable, Callable[[NodeColumns], NDArray[Any]]], NDArray[Any]]
"""Returns answers about all nodes, kept under a key; see `State.static_row`."""


def _affinity_row(static_row: StaticRow, affinity: Affinity) -> Bools:
    """Return which nodes match any term of an affinity, shape (n_nodes,)."""

    def ask(view: NodeColumns) -> Bools:
        matched = np.zeros(len(view), dtype=bool)
        for term in affinity or ():
            matched |= node_terms.term_matches(term, view)
        return matched if affinity is not None else ~matched

    row: Bools = static_row(("volume affinity", affinity), ask)
    return row


class _Simple(NamedTuple):
    """An affinity to one value of one label."""

    key: str
    value: str


def _simple(affinity: Affinity) -> _Simple | None:
    if affinity is None or len(affinity) != 1 or affinity[0].fields or len(affinity[0].expressions) != 1:
        return None
    requirement = affinity[0].expressions[0]
    if requirement.operator != "In" or len(requirement.values) != 1 or not node_terms.valid_expression(requirement):
        return None
    return _Simple(requirement.key, requirement.values[0])


class ReachCache:
    """Affinities of volumes as codes of node labels; kept over cycles, and refreshed for those that changed."""

    def __init__(self) -> None:
        self._columns = NO_VOLUMES
        self._statics: NodeStatics | None = None
        self._stamps: Ints = np.zeros(0, dtype=np.int64)
        self.keys: list[str] = []
        self.key: Codes = np.zeros(0, dtype=np.int32)  # (n_affinities,), index into keys, or one of the above
        self.code: Codes = np.zeros(0, dtype=np.int32)  # (n_affinities,), code of the value, _UNKNOWN for no node

    def refresh(self, columns: VolumeColumns, statics: NodeStatics) -> None:
        """Bring the codes up to date with the volumes and nodes of a snapshot."""
        if columns is self._columns and statics is self._statics:
            return
        n = len(columns.stamps)
        if self._statics is None or statics.layout[0] is not self._statics.layout[0]:
            self._stamps = np.full(n, -1, dtype=np.int64)
        elif statics is not self._statics:
            self._stamps[self.code == _UNKNOWN] = -1  # the value may be in use now
        if len(self._stamps) < n:
            self._stamps = np.concatenate((self._stamps, np.full(n - len(self._stamps), -1, dtype=np.int64)))
        self.key, self.code = (np.resize(array, n) if n else array[:0] for array in (self.key, self.code))
        changed = np.flatnonzero(self._stamps[:n] != columns.stamps)
        codes: dict[str, dict[str, int]] = {}
        # A Python loop over the distinct affinities that are new since the last cycle.
        for row in changed.tolist():
            self._set(row, columns.affinities[row], statics.labels, codes)
        self._stamps = columns.stamps.copy()
        self._columns, self._statics = columns, statics

    def _set(
        self, row: int, affinity: Affinity, labels: Mapping[str, LabelColumn], codes: dict[str, dict[str, int]]
    ) -> None:
        simple = _simple(affinity)
        if simple is None:
            self.key[row], self.code[row] = (_EVERYWHERE if affinity is None else _EVALUATED), 0
            return
        if simple.key not in codes:
            column = labels.get(simple.key)
            values = () if column is None else column.values
            codes[simple.key] = {value: code for code, value in enumerate(values) if code}
        if simple.key not in self.keys:
            self.keys.append(simple.key)
        self.key[row] = self.keys.index(simple.key)
        self.code[row] = codes[simple.key].get(simple.value, _UNKNOWN)


class VolumeReach:
    """Which nodes reach which volumes, in one session."""

    def __init__(self, cache: ReachCache, columns: VolumeColumns, nodes: NodeColumns, static_row: StaticRow) -> None:
        cache.refresh(columns, nodes.statics)
        self._columns = columns
        self._nodes = nodes
        self._static_row = static_row
        self._keys = cache.keys
        self._key = cache.key
        self._code = cache.code
        self._codes_of: dict[str, dict[str, int]] = {}  # label -> value -> code

    def nodes_matching(self, affinity: Affinity) -> Bools:
        """Return which nodes match any term of an affinity, shape (n_nodes,).

        One value of one label is looked up at once: there may be as many such affinities as there are nodes.
        """
        simple = _simple(affinity)
        if simple is None:
            return _affinity_row(self._static_row, affinity)
        column = self._nodes.label(simple.key)
        code = self._value_codes(simple.key).get(simple.value)
        if column is None or code is None:
            return np.zeros(len(self._nodes), dtype=bool)
        return np.asarray(column.codes == code)

    def nodes_with_any(self, key: str, values: Iterable[str]) -> Bools:
        """Return which nodes have one of these values of a label, shape (n_nodes,)."""
        column, codes = self._nodes.label(key), self._value_codes(key)
        if column is None:
            return np.zeros(len(self._nodes), dtype=bool)
        table = column.table()
        table[[codes[value] for value in values if value in codes]] = True
        found: Bools = table[column.codes]
        return found

    def _value_codes(self, key: str) -> dict[str, int]:
        found = self._codes_of.get(key)
        if found is None:
            column = self._nodes.label(key)
            values = () if column is None else column.values
            found = self._codes_of[key] = {value: code for code, value in enumerate(values) if code}
        return found

    def nodes_of(self, volumes: Rows) -> Bools:
        """Return the nodes that reach any of these volumes, shape (n_nodes,)."""
        found = np.zeros(len(self._nodes), dtype=bool)
        affinities = self._columns.affinity[volumes]
        keys = self._key[affinities]
        # A Python loop over the distinct labels that volumes name, or distinct other affinities.
        for key in np.unique(keys).tolist():
            there = affinities[keys == key]
            if key == _EVERYWHERE:
                found[:] = True
            elif key == _EVALUATED:
                for affinity in np.unique(there).tolist():
                    found |= _affinity_row(self._static_row, self._columns.affinities[affinity])
            else:
                column = self._nodes.label(self._keys[key])
                if column is not None:
                    table = column.table()
                    codes = self._code[there]
                    table[codes[codes != _UNKNOWN]] = True
                    found |= table[column.codes]
        return found

    def from_node(self, node: int, volumes: Rows) -> Bools:
        """Return which of these volumes a node reaches, shape (n_volumes,)."""
        affinities = self._columns.affinity[volumes]
        keys = self._key[affinities]
        found: Bools = keys == _EVERYWHERE
        for key in np.unique(keys).tolist():
            if key == _EVALUATED:
                for affinity in np.unique(affinities[keys == key]).tolist():
                    row = _affinity_row(self._static_row, self._columns.affinities[affinity])
                    if row[node]:
                        found |= affinities == affinity
            elif key != _EVERYWHERE:
                column = self._nodes.label(self._keys[key])
                if column is not None and column.codes[node]:
                    found |= (keys == key) & (self._code[affinities] == column.codes[node])
        return found

    def only_nodes(self, volumes: Rows) -> Rows | None:
        """Return the one node that reaches each volume, -1 for none, shape (n_volumes,).

        None: some are reached by several nodes, or their affinity names more than one value of a label.
        """
        found = np.full(len(volumes), -1, dtype=np.intp)
        affinities = self._columns.affinity[volumes]
        keys = self._key[affinities]
        for key in np.unique(keys).tolist():
            if key in (_EVERYWHERE, _EVALUATED):
                return None
            column = self._nodes.label(self._keys[key])
            if column is None:
                continue
            there = np.flatnonzero((keys == key) & (self._code[affinities] != _UNKNOWN))
            codes = self._code[affinities[there]]
            if (np.bincount(column.codes, minlength=len(column.values))[codes] > 1).any():
                return None
            node_of = np.full(len(column.values), -1, dtype=np.intp)
            node_of[column.codes] = np.arange(len(column.codes))
            found[there] = node_of[codes]
        return found

    def domains(self, volumes: Rows) -> Codes:
        """Return which of these volumes each node reaches, as rows of codes; nodes with equal columns reach the same.

        Shape (n_rows, n_nodes): one row per label that they name, and one per other affinity.
        """
        affinities = self._columns.affinity[volumes]
        keys = self._key[affinities]
        rows: list[Codes] = []
        for key in np.unique(keys[keys != _EVERYWHERE]).tolist():
            if key == _EVALUATED:
                for affinity in np.unique(affinities[keys == key]).tolist():
                    row = _affinity_row(self._static_row, self._columns.affinities[affinity])
                    rows.append(row.astype(np.int32))
            else:
                column = self._nodes.label(self._keys[key])
                if column is not None:
                    named = column.table()
                    codes = self._code[affinities[keys == key]]
                    named[codes[codes != _UNKNOWN]] = True
                    rows.append(np.where(named[column.codes], column.codes, 0).astype(np.int32))
        return np.array(rows, dtype=np.int32).reshape(len(rows), len(self._nodes))
