"""Victim candidates: tasks that might be evicted, as columns in groups. Plugins vote on them.

A group is usually a node. Volcano asks plugins once for each node, and what they count on the way (how many tasks of a
job may still be evicted, what a queue still holds) starts again with each node. Here plugins are asked once for many
nodes, and whatever they count they count within a group.

Inside a group the first candidate is evicted first. Candidates are in victim order as it was when they were collected:
by queue, then by job, then in reverse task order. So the tasks of a job are adjacent in a group, and so are those of a
queue.
"""

from functools import cached_property

import numpy as np

from volcano_py.framework.retired import add_old_names
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Codes, Floats, Ints, Rows
from volcano_py.model.statuses import TaskStatus


class VictimCandidates:
    """Victim candidates; row i of every column is candidate i."""

    def __init__(
        self, state: State, rows: Rows, groups: Rows, placed_before: Rows | None = None, units: Rows | None = None
    ) -> None:
        """Take task rows (n,), each of a task with a job, and the ascending numbers of their groups (n,).

        ``placed_before`` is how many tasks of the preemptor are placed before each candidate is evicted (n,); None:
        none at all. ``units`` are numbers (n,), equal for candidates that are evicted only together; None: each alone.
        """
        self._state = state
        self.rows = rows
        self.groups = groups
        self.placed_before = placed_before
        self._units = units

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, kept: Bools) -> "VictimCandidates":
        """Return the candidates of a mask (n,), in the same groups."""
        return self.at(kept)

    def at(self, places: "Bools | Rows") -> "VictimCandidates":
        """Return the candidates at some places, in that order; groups must stay ascending."""
        placed_before = None if self.placed_before is None else self.placed_before[places]
        units = None if self._units is None else self._units[places]
        return VictimCandidates(self._state, self.rows[places], self.groups[places], placed_before, units)

    def of(self, state: State) -> "VictimCandidates":
        """Return the same candidates with the columns of another view of the session, for a plugin to read."""
        placed_before = None if self.placed_before is None else self.placed_before.copy()
        return VictimCandidates(state, self.rows.copy(), self.groups.copy(), placed_before, self._units)

    def running_or_bound(self) -> "VictimCandidates":
        """Return the candidates that are running or bound now."""
        status = self._state.tasks.status[self.rows]
        return self.only((status == TaskStatus.RUNNING) | (status == TaskStatus.BOUND))

    def without_jobs(self, rows: Rows) -> "VictimCandidates":
        """Return the candidates that do not belong to these jobs (n_jobs,)."""
        return self.only(~np.isin(self.jobs, rows)) if len(rows) else self

    def together(self) -> "VictimCandidates":
        """Return all candidates as one group, in the order given."""
        return VictimCandidates(self._state, self.rows, np.zeros(len(self.rows), dtype=np.intp))

    @cached_property
    def jobs(self) -> Codes:
        """The rows of their jobs, shape (n,)."""
        return self._state.tasks.job[self.rows]

    @cached_property
    def queues(self) -> Rows:
        """The rows of their queues among the session's queues, -1 for a queue that does not exist, shape (n,)."""
        return self._state.queue_of_job[self.jobs]

    @cached_property
    def first_of_unit(self) -> Rows:
        """For each candidate the place of the first member of its unit, shape (n,)."""
        if self._units is None:
            return np.arange(len(self.rows))
        _, first, which = np.unique(self._units, return_index=True, return_inverse=True)
        return np.asarray(first[which])

    def of_units(self, amounts: Floats) -> Floats:
        """Return for each candidate the sum of amounts (n_rows, n) over its unit, shape (n_rows, n)."""
        if self._units is None:
            return amounts
        sums = [np.bincount(self.first_of_unit, weights=row, minlength=len(self.rows)) for row in amounts]
        return np.array(sums, dtype=float).reshape(amounts.shape)[:, self.first_of_unit]

    @cached_property
    def nodes(self) -> Codes:
        """The rows of their nodes, shape (n,)."""
        return self._state.tasks.node[self.rows]

    @cached_property
    def priorities(self) -> Ints:
        """The priorities of the tasks, shape (n,)."""
        return self._state.tasks.priority[self.rows]

    @cached_property
    def traits(self) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
        """Their traits, as `TaskTrait`, shape (n,)."""
        return self._state.tasks.traits[self.rows]

    @cached_property
    def requests(self) -> Floats:
        """What each candidate requests, shape (n_resources, n)."""
        return self._state.classes.requests[:, self._state.tasks.shape[self.rows]]

    @cached_property
    def by_job(self) -> "Earlier":
        """For each candidate the earlier candidates of its group and job."""
        return Earlier(self.groups, self.jobs)

    @cached_property
    def by_queue(self) -> "Earlier":
        """For each candidate the earlier candidates of its group and queue."""
        return Earlier(self.groups, self.queues)

    def by(self, keys: Rows) -> "Earlier":
        """Return for each candidate the earlier ones of its group with the same key (n,), in any order of keys."""
        return Earlier(self.groups, keys)


add_old_names(VictimCandidates, {"claimed": "placed_before", "standing": "running_or_bound"})


class Earlier:
    """Sums over the earlier candidates of the same group and key: one array operation instead of a walk in order."""

    __slots__ = ("_back", "_order", "_start")

    def __init__(self, groups: Rows, keys: Rows | Codes) -> None:
        n = len(groups)
        order = np.lexsort((keys, groups))  # stable, so the order given stays within a key
        ordered_groups, ordered_keys = groups[order], keys[order]
        begins = np.ones(n, dtype=bool)
        begins[1:] = (ordered_groups[1:] != ordered_groups[:-1]) | (ordered_keys[1:] != ordered_keys[:-1])
        starts = np.flatnonzero(begins)
        self._order = order
        self._start = starts[np.cumsum(begins) - 1] if n else starts  # by place in `order`: where its run begins
        self._back = np.empty(n, dtype=np.intp)
        self._back[order] = np.arange(n)

    def count(self) -> Rows:
        """Return how many are earlier than each, shape (n,)."""
        return (np.arange(len(self._order)) - self._start)[self._back]

    def total(self, amounts: Floats) -> Floats:
        """Return for each the sum of amounts (n_rows, n) over the earlier ones, shape (n_rows, n)."""
        if not len(self._order):
            return np.zeros(amounts.shape)
        ordered = amounts[:, self._order]
        before = np.cumsum(ordered, axis=1) - ordered
        return np.asarray((before - before[:, self._start])[:, self._back])

    def any(self, holds: Bools) -> Bools:
        """Return for each whether a mask (n,) is true for any earlier one, shape (n,)."""
        return np.asarray(self.total(holds.astype(float)[None])[0] > 0)
