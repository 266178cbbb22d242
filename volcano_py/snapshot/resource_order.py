"""Resources of a snapshot in an order that is the same whatever was seen first: cpu, memory, pods, others by name.

The store gives a resource the next free row, so its rows tell its history. In a snapshot they must not: which of two
lacking resources a message names, and how a sum over resources rounds, would depend on it.
"""

from dataclasses import replace

import numpy as np

from volcano_py.model.arrays import Floats, Rows
from volcano_py.model.resources import PODS_ROW, ResourceRegistry
from volcano_py.snapshot import layout
from volcano_py.snapshot.columns import NodeColumns, Snapshot


def by_name(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with its resources in order; it is used up, and returned as it is if they are already."""
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
    """Reorder every section of a block: a head, sections of one row per resource, a rest shorter than a section."""
    n, height = len(order), len(block)
    sections = (height - head) // n
    rows = (head + np.arange(sections)[:, None] * n + order).ravel()
    return block[np.concatenate((np.arange(head), rows, np.arange(head + sections * n, height)))]
