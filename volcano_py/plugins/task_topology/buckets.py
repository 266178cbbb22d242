"""Buckets: the tasks of a job, divided into groups that should each be placed on one node."""

import numpy as np

from volcano_py.model.arrays import Floats, Ints, Rows
from volcano_py.model.resources import CPU_ROW, MEMORY_ROW

_MIB = 1024.0 * 1024.0


def form(roles: Rows, nodes: Rows, sizes: Floats, attraction: Ints) -> Rows:
    """Return the bucket of each task, shape (n_tasks,); tasks are given in the order in which they join.

    ``roles`` are rows of ``attraction`` (n_roles, n_roles), ``nodes`` rows of nodes or -1, ``sizes`` what tasks add to
    the load of a bucket, each (n_tasks,). A task on a node joins the bucket of that node and adds no load. Any other
    task joins the bucket with the greatest attraction, summed over the tasks in it; of several, the bucket with the
    least load, then the oldest. If there is no bucket, or all repel the task, it opens a new one. (Volcano:
    task-topology, buildBucket.)
    """
    pull = np.zeros((len(attraction), len(roles)), dtype=np.int64)  # (n_roles, n_buckets)
    load = np.zeros(len(roles))
    of_node: dict[int, int] = {}
    joined: list[int] = []
    n = 0
    # A Python loop over the tasks of a job with topology: each task's choice depends on those before it.
    for role, node, size in zip(roles.tolist(), nodes.tolist(), sizes.tolist(), strict=True):
        if node >= 0:
            bucket = of_node.setdefault(node, n)
        else:
            bucket = _most_attractive(pull[role, :n], load[:n])
            load[bucket] += size
        n = max(n, bucket + 1)
        pull[:, bucket] += attraction[:, role]
        joined.append(bucket)
    return np.array(joined, dtype=np.intp)


def _most_attractive(pull: Ints, load: Floats) -> int:
    """Return the bucket to join, out of (n_buckets,); n_buckets for a new one."""
    best = pull.max(initial=-1)
    if best < 0:
        return len(pull)
    equal = np.flatnonzero(pull == best)
    return int(equal[load[equal].argmin()])


def size_of(request: Floats) -> float:
    """Return what a request (n_resources,) adds to a load: millicores + MiB of memory + amounts of all others."""
    others = request.sum() - request[CPU_ROW] - request[MEMORY_ROW]
    return float(request[CPU_ROW] + request[MEMORY_ROW] / _MIB + others)
