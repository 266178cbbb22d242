"""Kinds of tasks: shapes, split further where a plugin tells tasks of one shape apart.

Whatever is asked about a task is asked once per shape. Some policies know more of a task than its pod's spec says: the
queue of its job, the bucket that it belongs to. They mark tasks when the session opens (`Plugin.equivalence_keys`),
and tasks of
one shape with different marks get ids of their own from then on. To all other parts of a session a kind is a shape.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from volcano_py.model.arrays import Ints
from volcano_py.snapshot.columns import Snapshot

_SMALL = 2**22

EquivalenceKeys = dict[int, dict[str, int]]
"""By the id of a kind: the mark that each plugin set, those of 0 left out."""


def split(snapshot: Snapshot, equivalence_keys: Mapping[str, Ints]) -> tuple[Snapshot, EquivalenceKeys]:
    """Return the snapshot with ids for every kind, and the marks of those that have any.

    ``equivalence_keys`` are, by plugin, one number per task row, 0 for nothing worth knowing, each of shape
    (n_tasks,). Unmarked tasks keep the id of their shape.
    """
    tasks, n_shapes = snapshot.tasks, len(snapshot.shapes)
    names = sorted(equivalence_keys)
    table = np.array([equivalence_keys[name] for name in names], dtype=np.int64).reshape(len(names), len(tasks.shape))
    rows = np.flatnonzero(table.any(axis=0) & (tasks.shape >= 0))
    if not rows.size:
        return snapshot, {}
    which = np.zeros(len(rows), dtype=np.int64)
    for column in (tasks.shape[rows], *table[:, rows]):
        codes, n_codes = _codes(column.astype(np.int64))
        which, n_kinds = _codes(which * n_codes + codes)
    first = np.empty(n_kinds, dtype=np.intp)
    first[which] = rows  # some task of each kind: all are alike
    base, marked = tasks.shape[first], table[:, first]
    tasks.shape[rows] = n_shapes + which
    wider = replace(
        snapshot,
        shapes=[*snapshot.shapes, *(snapshot.shapes[shape] for shape in base.tolist())],
        requests=np.concatenate((snapshot.requests, snapshot.requests[:, base]), axis=1),
        nonzero=np.concatenate((snapshot.nonzero, snapshot.nonzero[:, base]), axis=1),
    )
    found = {
        n_shapes + number: {name: mark for name, mark in zip(names, column, strict=True) if mark}
        for number, column in enumerate(marked.T.tolist())
    }
    return wider, found


def _codes(values: Ints) -> tuple[Ints, int]:
    """Return values as numbers from 0 on, in their order, shape (n,), and how many different ones there are."""
    if values.min() < 0 or values.max() >= _SMALL:
        distinct, codes = np.unique(values, return_inverse=True)
        return codes.reshape(-1), len(distinct)
    present = np.zeros(int(values.max()) + 1, dtype=bool)  # many times faster than sorting a hundred thousand tasks
    present[values] = True
    numbers = np.cumsum(present) - 1
    return numbers[values], int(numbers[-1]) + 1
