"""The fixed order of resources in a snapshot: cpu, memory, pods, then others by name.

The store gives each new resource the next free row, so its row order depends on history. A snapshot's order must not:
it decides which of two lacking resources a message names, and how a sum over resources rounds.
"""

from dataclasses import replace

import numpy as np

from volcano_py.model.arrays import Floats, Rows
from volcano_py.model.resources import PODS_ROW, ResourceRegistry
from volcano_py.snapshot import layout
from volcano_py.snapshot.columns import NodeColumns, Snapshot


def by_name(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its resources in order; do not use the given snapshot afterwards.

    A snapshot that is already in order is returned unchanged.
    """
    names = snapshot.resources.names
    first = PODS_ROW + 1
    rows = [*range(first), *sorted(range(first, len(names)), key=names.__getitem__)]
    if rows == list(range(len(names))):
        return snapshot
    order = np.array(rows, dtype=np.intp)
    nodes, jobs = snapshot.nodes, snapshot.jobs
    block = _ordered(nodes.block, order, 0)
    ordered = NodeColumns(nodes.statics, block, len(names), nodes.ports, nodes.rows)
    jobs.block = _ordered(jobs.block, order, layout.JOB_HEAD)
    jobs.rules = replace(jobs.rules, min_resources=jobs.rules.min_resources[order])
    return replace(
        snapshot,
        nodes=ordered,
        resources=ResourceRegistry(names[row] for row in rows),
        requests=snapshot.requests[order],
    )


def _ordered(block: Floats, order: Rows, head: int) -> Floats:
    """Reorder every section of a block. Its parts: a head, sections of one row per resource, and a shorter rest."""
    n, height = len(order), len(block)
    sections = (height - head) // n
    rows = (head + np.arange(sections)[:, None] * n + order).ravel()
    return block[np.concatenate((np.arange(head), rows, np.arange(head + sections * n, height)))]
