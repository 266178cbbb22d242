"""Hierarchical dominant resource fairness: queues are ways through a tree, jobs its leaves.

demanding r        what jobs of the tree hold together of r < total of r
leaf: share        max over r of held_r / total_r
leaf: saturated    there is an r of which it holds some and asks for some, and either it holds all that it asks for or r
                   is not demanding: it cannot grow
inner node:        M = min(1, least share of those of its children that hold something and are not saturated)
  allocated        sum of what its children hold that hold something; those that are not saturated count M / share of it
  share            max over r of allocated_r / total_r
  saturated        all its children are

Two queues are compared from the root down, as far as the shorter way goes: what is not saturated goes first, then the
lower share / weight, then the next step of both ways. (Volcano: plugins/drf with enableHierarchy; docs/design/hdrf.)

Where queues disagree on the weight of a node the first by name counts; in Volcano any one of them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.objects import QueueRecord
from volcano_py.model.resources import EPSILON


class ShareTree:
    """The tree with what its leaves hold; only what a change touches is worked out anew."""

    def __init__(
        self, queues: Sequence[QueueRecord], queue_of_job: Rows, total: Floats, request: Floats, held: Floats
    ) -> None:
        """Take queues and the rows of the jobs' queues (-1: not in the tree), ``total`` (n_shared,), and by job
        (n_shared, n_jobs) what it asks for in all and holds."""
        self._total = total
        self._request = request
        self.problems: dict[str, str] = {}  # what is wrong with the ways of queues
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
        self._standing = [(False, 0.0)] * n_nodes  # whether it is saturated, share / weight: plain numbers to compare
        self._work_out_all()

    def _build(self, queues: Sequence[QueueRecord]) -> list[list[int]]:
        nodes: dict[tuple[str, ...], int] = {}
        named_by: dict[int, str] = {}
        ways = []
        # A Python loop over queues: each has its way.
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
                        f'it gives "{name}" weight {weight:g} in {"/".join(("root", *path))}, queue "{named_by[node]}" '
                        f"gives it {self._weights[node]:g}, which counts: make them agree"
                    )
                way.append(node)
            ways.append(way)
        return ways

    def update(self, jobs: Rows, held: Floats) -> None:
        """Take what some jobs (n,) hold now (n_shared, n)."""
        known = self._node_of_job[jobs] >= 0
        self._change(jobs[known], held[:, known])

    def add(self, job_row: int, amount: Floats) -> None:
        """Let a job hold more (n_shared,), or less where it is negative."""
        if self._node_of_job[job_row] >= 0:
            self._change(np.array([job_row]), (self.held[:, job_row] + amount)[:, None])

    def compare_without(self, job_row: int, amount: Floats, left: int, right: int) -> float:
        """Compare as if a job held so much less (n_shared,); afterwards it holds what it held."""
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
        """What a change of one job may touch, besides what the job itself holds."""
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
        """Work nodes out anew; a node stands behind its parent, so the last ones come first.

        A Python loop over nodes, each of which is a sum over its children.
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
    """Return what children hold together, those that could grow scaled down to the least of them, shape (n_shared,)."""
    growing = (shares != 0) & ~saturated
    least = min(1.0, float(shares[growing].min(initial=1.0)))
    factors = np.where(saturated, 1.0, 0.0)
    factors[growing] = least / shares[growing]
    return np.asarray((held * factors).sum(axis=1))


def dominant_share(taken: Floats, total: Floats) -> Floats:
    """Return the largest part of a resource that somebody holds, from (n_shared, n) of (n_shared,); shape (n,)."""
    share: Floats = (taken / total[:, None]).max(axis=0, initial=0.0)
    return share
