"""Hierarchical dominant resource fairness: queues are paths in a tree, jobs are its leaves.

demanding r        all jobs of the tree together hold less of r than the total of r
leaf: share        max over r of held_r / total_r
leaf: saturated    there is an r of which the job holds and requests some, and either it holds all that it requests or
                   r is not demanding. Then the job cannot grow.
inner node:        M = min(1, lowest share of the unsaturated children that hold something)
  allocated        sum of what its children hold; an unsaturated child counts M / share of it
  share            max over r of allocated_r / total_r
  saturated        all its children are saturated

Two queues are compared step by step from the root, up to the length of the shorter path. At each step the unsaturated
node goes first, then the node of lower share / weight. (Volcano: plugins/drf with enableHierarchy; docs/design/hdrf.)

If queues give a node different weights, the weight of the first queue by name counts; in Volcano that of any of them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.objects import QueueRecord
from volcano_py.model.resources import EPSILON


class ShareTree:
    """The tree with what its leaves hold. A change recomputes only the nodes that it affects."""

    def __init__(
        self, queues: Sequence[QueueRecord], queue_of_job: Rows, total: Floats, request: Floats, held: Floats
    ) -> None:
        """Take the queues, the queue row of each job (-1: not in the tree), ``total`` (n_shared,), and by job its
        whole request and what it holds, both (n_shared, n_jobs)."""
        self._total = total
        self._request = request
        self.problems: dict[str, str] = {}  # by queue: what is wrong with its path
        self._parents: list[int] = [-1]
        self._weights: list[float] = [1.0]
        self.ways = self._build(queues)  # by queue row: the nodes from the root down
        ends = np.array([way[-1] for way in self.ways], dtype=np.intp)
        self._node_of_job = np.full(len(queue_of_job), -1, dtype=np.intp)
        known = queue_of_job >= 0
        self._node_of_job[known] = ends[queue_of_job[known]]
        n_nodes = len(self._parents)
        self._leaves = [np.flatnonzero(self._node_of_job == node) for node in range(n_nodes)]
        parents = np.array(self._parents, dtype=np.intp)
        self._below = [np.flatnonzero(parents == node) for node in range(n_nodes)]
        self.held = np.where(known, held, 0.0)
        self._allocated = self.held.sum(axis=1)
        self._demanding = self._allocated < total
        self._leaf_share = np.zeros(len(queue_of_job))
        self._leaf_saturated = np.zeros(len(queue_of_job), dtype=bool)
        self._node_held = np.zeros((len(total), n_nodes))
        self._node_share = np.zeros(n_nodes)
        self._node_saturated = np.zeros(n_nodes, dtype=bool)
        self._standing = [(False, 0.0)] * n_nodes  # (saturated, share / weight) of each node, plain values to compare
        self._work_out_all()

    def _build(self, queues: Sequence[QueueRecord]) -> list[list[int]]:
        nodes: dict[tuple[str, ...], int] = {}
        named_by: dict[int, str] = {}
        ways = []
        # A Python loop over queues, each with its path.
        for queue in queues:
            way, path = [0], tuple[str, ...]()
            for name, weight in queue.hierarchy:
                path = (*path, name)
                node = nodes.setdefault(path, len(self._parents))
                if node == len(self._parents):
                    self._parents.append(way[-1])
                    self._weights.append(weight)
                    named_by[node] = queue.name
                elif weight != self._weights[node]:
                    self.problems[queue.name] = (
                        f"it gives {'/'.join(('root', *path))} weight {weight:g}, but weight {self._weights[node]:g} "
                        f'of queue "{named_by[node]}" is used: write the same weight in both queues'
                    )
                way.append(node)
            ways.append(way)
        return ways

    def update(self, jobs: Rows, held: Floats) -> None:
        """Set what some jobs (n,) hold now (n_shared, n)."""
        known = self._node_of_job[jobs] >= 0
        self._change(jobs[known], held[:, known])

    def add(self, job_row: int, amount: Floats) -> None:
        """Add an amount (n_shared,), which may be negative, to what a job holds."""
        if self._node_of_job[job_row] >= 0:
            self._change(np.array([job_row]), (self.held[:, job_row] + amount)[:, None])

    def compare_without(self, job_row: int, amount: Floats, left: int, right: int) -> float:
        """Compare two queues as if a job held ``amount`` (n_shared,) less; the tree is unchanged afterwards."""
        if self._node_of_job[job_row] < 0:
            return self.compare(left, right)
        before = [array.copy() for array in self._state()]
        demanding, standing = self._demanding, self._standing.copy()
        self.add(job_row, -amount)
        answer = self.compare(left, right)
        for array, copy in zip(self._state(), before, strict=True):
            array[...] = copy
        self.held[:, job_row] += amount
        self._demanding, self._standing = demanding, standing
        return answer

    def _state(self) -> tuple[NDArray[Any], ...]:
        """The arrays that a change of one job may affect, besides what the job itself holds."""
        leaves, nodes = (self._leaf_share, self._leaf_saturated), (self._node_share, self._node_saturated)
        return (self._allocated, self._node_held, *leaves, *nodes)

    def compare(self, left: int, right: int) -> float:
        """Return a negative number if the queue of row ``left`` goes first, a positive one if ``right`` does, or 0."""
        for one, other in zip(self.ways[left], self.ways[right], strict=False):
            (full, share), (other_full, other_share) = self._standing[one], self._standing[other]
            if full != other_full:
                return 1.0 if full else -1.0
            if share != other_share:
                return share - other_share
        return 0.0

    def _change(self, jobs: Rows, held: Floats) -> None:
        if not len(jobs):
            return
        self._allocated += (held - self.held[:, jobs]).sum(axis=1)
        self.held[:, jobs] = held
        demanding = self._allocated < self._total
        if (demanding != self._demanding).any():
            self._demanding = demanding
            self._work_out_all()
            return
        self._work_out_leaves(jobs)
        touched: set[int] = set()
        for node in np.unique(self._node_of_job[jobs]).tolist():
            while node >= 0 and node not in touched:
                touched.add(node)
                node = self._parents[node]
        self._work_out_nodes(sorted(touched, reverse=True))

    def _work_out_all(self) -> None:
        self._work_out_leaves(np.flatnonzero(self._node_of_job >= 0))
        self._work_out_nodes(range(len(self._parents) - 1, -1, -1))

    def _work_out_leaves(self, jobs: Rows) -> None:
        held, asked = self.held[:, jobs], self._request[:, jobs]
        self._leaf_share[jobs] = dominant_share(held, self._total)
        met = (held >= asked) | ~self._demanding[:, None]
        self._leaf_saturated[jobs] = ((held >= EPSILON) & (asked != 0) & met).any(axis=0)

    def _work_out_nodes(self, nodes: Iterable[int]) -> None:
        """Recompute nodes in the given order, which must put children before their parents.

        This is a Python loop over nodes; each node is a sum over its children.
        """
        for node in nodes:
            leaves, below = self._leaves[node], self._below[node]
            shares = np.concatenate((self._leaf_share[leaves], self._node_share[below]))
            saturated = np.concatenate((self._leaf_saturated[leaves], self._node_saturated[below]))
            held = np.concatenate((self.held[:, leaves], self._node_held[:, below]), axis=1)
            self._node_held[:, node] = _together(shares, saturated, held)
            self._node_share[node] = dominant_share(self._node_held[:, [node]], self._total)[0]
            self._node_saturated[node] = saturated.all()
            share = float(self._node_share[node]) / self._weights[node]
            self._standing[node] = (bool(self._node_saturated[node]), share)


def _together(shares: Floats, saturated: Bools, held: Floats) -> Floats:
    """Return the sum of what children hold, unsaturated ones scaled down to their lowest share, shape (n_shared,)."""
    growing = (shares != 0) & ~saturated
    least = min(1.0, float(shares[growing].min(initial=1.0)))
    factors = np.where(saturated, 1.0, 0.0)
    factors[growing] = least / shares[growing]
    return np.asarray((held * factors).sum(axis=1))


def dominant_share(taken: Floats, total: Floats) -> Floats:
    """Return the largest ratio of ``taken`` (n_shared, n) to ``total`` (n_shared,) over resources, shape (n,)."""
    share: Floats = (taken / total[:, None]).max(axis=0, initial=0.0)
    return share
