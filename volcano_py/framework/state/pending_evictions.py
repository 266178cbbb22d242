"""Pending evictions: plans whose victims still terminate, and cool-downs between jobs.

While a victim of a plan terminates, nobody else is evicted for the preemptor of the plan: its room will be free soon,
and `nominated_room` reserves it. A plan ends when none of its victims terminates any more, when the eviction of one has
failed, or after `PLAN_S` seconds. If the job still starves then, it may plan again. Whatever is being released by then
counts as room.

For `COOLDOWN_S` seconds a victim cannot preempt its preemptor, directly or through a chain. Otherwise two jobs that
some plugin finds equal would evict each other again and again. So would three jobs: the first preempts the second, the
second reclaims from the third, and the third reclaims from the first. As evictions never form a circle, some job is
never a victim, and preemption always terminates.
"""

from collections.abc import Collection
from typing import Final

import numpy as np

from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.memory import Cooldown, PlannedEviction
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Rows
from volcano_py.model.objects import JobKey
from volcano_py.model.statuses import TaskStatus

PLAN_S: Final = 300.0
COOLDOWN_S: Final = 300.0

_RUNNING_OR_BOUND: Final = (TaskStatus.RUNNING, TaskStatus.BOUND)


class PendingEvictions:
    """Plans and cool-downs of a session: those of earlier cycles, and those that are added."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._plans = _under_way(state) if state.memory.plans else []
        self._waiting = {plan.job for plan in self._plans}
        self._cooldowns = {
            (cooldown.preemptor, cooldown.victim): cooldown.until
            for cooldown in state.memory.cooldowns
            if state.clock.is_before(cooldown.until)
        }
        self._preemptors_of: dict[JobKey, set[JobKey]] = {}  # by victim
        for preemptor, victim in self._cooldowns:
            self._preemptors_of.setdefault(victim, set()).add(preemptor)

    def waits(self, job: JobInfo) -> bool:
        """Say whether victims of an earlier plan for this job still terminate."""
        return job.key in self._waiting

    def waiting(self) -> Bools:
        """Return the jobs of which `waits` is true, (n_jobs,)."""
        return self._named(self._waiting)

    def with_preemptors(self) -> Bools:
        """Return the jobs that have `preemptors`, (n_jobs,)."""
        return self._named(self._preemptors_of.keys())

    def _named(self, keys: Collection[JobKey]) -> Bools:
        jobs = self._state.jobs
        found = np.zeros(len(jobs), dtype=bool)
        if keys:  # a Python loop over all jobs, only while there are plans
            found[[row for row in jobs.present().tolist() if jobs.record(row).key in keys]] = True
        return found

    def preemptors(self, job: JobInfo) -> Rows:
        """Return the rows of the jobs that this job cannot preempt now: its preemptors, theirs, and so on, (n,)."""
        found: set[JobKey] = set()
        unseen = [*self._preemptors_of.get(job.key, ())]
        while unseen:
            preemptor = unseen.pop()
            if preemptor not in found:
                found.add(preemptor)
                unseen += self._preemptors_of.get(preemptor, ())
        if not found:
            return np.zeros(0, dtype=np.intp)
        rows = [row for row in self._state.jobs.present().tolist() if self._state.jobs.record(row).key in found]
        return np.array(rows, dtype=np.intp)

    def add(self, job: JobInfo, victims: list[int]) -> None:
        """Note that these tasks (rows) are evicted for a job."""
        state = self._state
        records = [state.tasks.record(task) for task in victims]
        self._plans.append(PlannedEviction(job.key, tuple(record.uid for record in records), state.now + PLAN_S))
        jobs: set[JobKey] = {key for record in records if (key := record.key) is not None and key != job.key}
        for victim in jobs:
            self._cooldowns[job.key, victim] = state.now + COOLDOWN_S
            self._preemptors_of.setdefault(victim, set()).add(job.key)

    @property
    def plans(self) -> tuple[PlannedEviction, ...]:
        """The plans for the memory of the next cycle."""
        return tuple(self._plans)

    @property
    def cooldowns(self) -> tuple[Cooldown, ...]:
        """The cool-downs for the memory of the next cycle, in order."""
        return tuple(
            Cooldown(preemptor, victim, until) for (preemptor, victim), until in sorted(self._cooldowns.items())
        )


def _under_way(state: State) -> list[PlannedEviction]:
    """Return the plans of which some victim terminates and none is running or bound, and that have not expired."""
    # A Python loop over all tasks, only while there are plans.
    rows = {record.uid: row for row, record in enumerate(state.tasks.records) if record is not None}
    found = []
    for plan in state.memory.plans:
        statuses = [state.tasks.status[rows[uid]] for uid in plan.victims if uid in rows]
        failed = any(status in _RUNNING_OR_BOUND for status in statuses)
        if TaskStatus.RELEASING in statuses and not failed and state.clock.is_before(plan.until):
            found.append(plan)
    return found
