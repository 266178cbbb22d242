"""The sub-groups of one job in a session: which task belongs where, and how far each sub-group has come.

A job without policies has none: see `State.sub_groups`. Tasks that no policy takes form one more group, the job's own.
It needs one task (Volcano: the default sub-job), and no number of such groups is demanded.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.objects import JobRecord
from volcano_py.model.statuses import READY_STATUSES, TaskStatus, members
from volcano_py.model.sub_groups import PolicyIndex, SubGroup, SubGroupId, own_sub_group, sub_group, sub_group_of
from volcano_py.snapshot.columns import TaskColumns

_READY: Final = members(READY_STATUSES)
_PENDING: Final = TaskStatus.PENDING.value
_PIPELINED: Final = TaskStatus.PIPELINED.value
OWN: Final = -1
"""Stands for the policy of the tasks that no policy takes."""


class JobSubGroups:
    """The sub-groups of a job that has policies; numbers of groups are in a fixed order, that of policy and values."""

    def __init__(self, record: JobRecord, tasks: TaskColumns, rows: Rows, best_effort: Callable[[Rows], Bools]) -> None:
        """Take the job, its task rows (n,) of any status, and what says which tasks request nothing."""
        self.record = record
        self.rows = rows
        self._tasks = tasks
        self._best_effort = best_effort(rows)
        self._index = PolicyIndex(record.sub_group_policies)
        found = [self._belongs(row) for row in rows.tolist()]  # a Python loop over the tasks of a job with policies
        ids = sorted({which for which in found if which is not None}, key=self._sort_key)
        self.ids: tuple[SubGroupId | None, ...] = (*ids, *([None] if None in found else []))
        """The groups; None is the job's own."""
        number = {which: index for index, which in enumerate(self.ids)}
        self.group: Rows = np.array([number[which] for which in found], dtype=np.intp)
        """The number of each task's group, shape (n,)."""
        self.policy: Rows = np.array([OWN if which is None else which.policy for which in self.ids], dtype=np.intp)
        """The policy of each group, `OWN` for the job's own, shape (n_groups,)."""

    def _belongs(self, row: int) -> SubGroupId | None:
        labels = self._tasks.record(row).label_map
        return sub_group_of(self.record.sub_group_policies, labels, self._index.candidates(labels))

    def _sort_key(self, which: SubGroupId) -> tuple[int, int, tuple[str, ...]]:
        return which.policy, self._described(which).match_index, which.values

    def _described(self, which: SubGroupId | None) -> SubGroup:
        record = self.record
        if which is None:
            return own_sub_group(
                str(record.key), record.min_available, record.network_topology, record.sub_group_policies
            )
        return sub_group(str(record.key), record.sub_group_policies, which)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def groups(self) -> tuple[SubGroup, ...]:
        """Names and needs of all groups."""
        return tuple(map(self._described, self.ids))

    @cached_property
    def sizes(self) -> Ints:
        """How many tasks each group needs, shape (n_groups,)."""
        return np.array([group.min_available for group in self.groups], dtype=np.int64)

    @cached_property
    def number_of(self) -> Mapping[int, int]:
        """The number of the group of each task row."""
        return dict(zip(self.rows.tolist(), self.group.tolist(), strict=True))

    def numbers(self, tasks: Rows) -> Rows:
        """Return the groups of tasks of the job, shape (n,)."""
        return self.group[np.searchsorted(self.rows, tasks)]

    def split(self, tasks: Rows) -> dict[int, Rows]:
        """Return tasks of the job by group, each in the order given."""
        numbers = self.numbers(tasks)
        order = np.argsort(numbers, kind="stable")
        present, starts = np.unique(numbers[order], return_index=True)
        return dict(zip(present.tolist(), np.split(tasks[order], starts[1:]), strict=True))

    @cached_property
    def _members(self) -> dict[int, Rows]:
        return self.split(self.rows)

    def members(self, group: int) -> Rows:
        """Return the task rows of a group, whatever their status."""
        return self._members[group]

    def _count(self, chosen: Bools) -> Ints:
        return np.bincount(self.group[chosen], minlength=len(self)).astype(np.int64)

    def ready_counts(self, *, best_effort: bool) -> Ints:
        """Return how many tasks of each group have a node or have succeeded, shape (n_groups,).

        With ``best_effort``, pending tasks that request nothing count, too.
        """
        status = self._status
        chosen = _READY[status]
        return self._count(chosen | (self._best_effort & (status == _PENDING)) if best_effort else chosen)

    @property
    def _status(self) -> NDArray[np.int8]:
        return self._tasks.status[self.rows]

    def missing(self, *, promised: bool = False, best_effort: bool = True) -> Ints:
        """Return how many tasks each group lacks, shape (n_groups,); with ``promised``, pipelined tasks count."""
        held = self.ready_counts(best_effort=best_effort)
        if promised:
            held = held + self._count(self._status == _PIPELINED)
        return np.asarray(np.maximum(self.sizes - held, 0))

    def lacking(self, *, promised: bool = False, best_effort: bool = True) -> int:
        """Return how many tasks the policies' numbers of sub-groups need at least; 0 if each policy has its number."""
        missing, lacking = self.missing(promised=promised, best_effort=best_effort), 0
        # A Python loop over the policies of one job.
        for index, policy in enumerate(self.record.sub_group_policies):
            mine = missing[self.policy == index]
            wanted = policy.minimum - int(np.count_nonzero(mine == 0))
            if wanted > 0:
                cheapest = np.sort(mine[mine > 0])[:wanted]
                # Groups that do not exist yet need at least one task each.
                lacking += int(cheapest.sum()) + (wanted - len(cheapest))
        return lacking

    def invalid(self) -> list[tuple[str, int, int]]:
        """Return (policy, sub-groups that exist, minimum) of each policy that has too few."""
        exist = np.bincount(self.policy[self.policy != OWN], minlength=len(self.record.sub_group_policies))
        return [
            (policy.name, int(exist[index]), policy.minimum)
            for index, policy in enumerate(self.record.sub_group_policies)
            if exist[index] < policy.minimum
        ]

    @cached_property
    def _priorities(self) -> Floats:
        """The highest priority of a task of each group, shape (n_groups,)."""
        highest = np.full(len(self), -np.inf)
        np.maximum.at(highest, self.group, self._tasks.priority[self.rows].astype(float))
        return highest

    def order(self, waiting: Rows) -> list[int]:
        """Return the groups of waiting tasks in the order in which they are placed.

        The groups that the policies' numbers still need come first. Then groups that are not complete come before the
        others, groups with tasks of higher priority before those of lower priority, and then the order of the numbers.
        """
        with_work = np.unique(self.numbers(waiting))
        missing = self.missing()
        highest = self._priorities
        order: list[int] = with_work[np.lexsort((with_work, -highest[with_work], missing[with_work] == 0))].tolist()
        needed: set[int] = set()
        for index, policy in enumerate(self.record.sub_group_policies):
            wanted = policy.minimum - int(np.count_nonzero((self.policy == index) & (missing == 0)))
            if wanted > 0:
                mine = [group for group in order if self.policy[group] == index and missing[group]]
                needed.update(mine[:wanted])
        return sorted(order, key=lambda group: group not in needed) if needed else order

    def safe(self, rows: Rows, surplus: int) -> Bools:
        """Return which tasks of the job (n,), in order, it can lose without breaking what it needs, shape (n,).

        ``surplus`` is how many tasks it has above its minimum. A group that is broken for one task is broken for all.
        """
        held = self.ready_counts(best_effort=True)
        complete = held >= self.sizes
        spare = {
            index: int(np.count_nonzero(complete & (self.policy == index))) - policy.minimum
            for index, policy in enumerate(self.record.sub_group_policies)
        }
        spare[OWN] = len(self)
        safe = np.zeros(len(rows), dtype=bool)
        # A Python loop over the tasks of a job with policies: each one lost changes what the next may be.
        for place, row in enumerate(rows.tolist()):
            group = self.number_of[row]
            breaks = bool(complete[group]) and held[group] == self.sizes[group]
            policy = int(self.policy[group])
            if surplus <= 0 or (breaks and spare[policy] <= 0):
                continue
            safe[place] = True
            surplus -= 1
            held[group] -= 1
            if breaks:
                complete[group] = False
                spare[policy] -= 1
        return safe
