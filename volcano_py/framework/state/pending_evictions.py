"""What earlier evictions bind a session to: plans that come true only when victims are gone, and truces between jobs.

While a victim of a plan is on its way out, the job that it makes room for has nobody else evicted: its room is coming,
and `nominated_room` keeps it. The plan is at an end when no victim is left that terminates, when the eviction of one
has
failed, or after `PLAN_S` seconds: if the job starves even so, it may plan again, and whatever is being released by then
counts as room.

For `COOLDOWN_S` seconds after a job has taken from another one, the other takes nothing from it, and neither does
anybody
from whom the other has taken in that time, and so on. Two jobs that some plugin finds equal would otherwise evict each
other in turn; so would three, of which one preempts the second, the second reclaims from the third and the third from
the first. As takings never close a circle, some job is never taken from, and evictions come to an end.
"""

from typing import Final

import numpy as np

from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.memory import Cooldown, PlannedEviction
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Rows
from volcano_py.model.objects import JobKey
from volcano_py.model.statuses import TaskStatus

PLAN_S: Final = 300.0
COOLDOWN_S: Final = 300.0

_STANDING: Final = (TaskStatus.RUNNING, TaskStatus.BOUND)


class PendingEvictions:
    """Plans and truces of a session: those of earlier cycles, and what is added to them."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._plans = _under_way(state) if state.memory.plans else []
        self._waiting = {plan.job for plan in self._plans}
        self._cooldowns = {
            (cooldown.preemptor, cooldown.victim): cooldown.until
            for cooldown in state.memory.cooldowns
            if cooldown.until > state.now
        }
        self._preemptors_of: dict[JobKey, set[JobKey]] = {}  # by loser
        for preemptor, victim in self._cooldowns:
            self._preemptors_of.setdefault(victim, set()).add(preemptor)

    def waits(self, job: JobInfo) -> bool:
        """Say whether victims of an earlier plan for this job are still on their way out."""
        return job.key in self._waiting

    def preemptors(self, job: JobInfo) -> Rows:
        """Return the rows of the jobs that have taken from this one lately, or from one that has, shape (n,)."""
        found: set[JobKey] = set()
        ahead = [*self._preemptors_of.get(job.key, ())]
        while ahead:
            preemptor = ahead.pop()
            if preemptor not in found:
                found.add(preemptor)
                ahead += self._preemptors_of.get(preemptor, ())
        if not found:
            return np.zeros(0, dtype=np.intp)
        rows = [row for row in self._state.jobs.present().tolist() if self._state.jobs.record(row).key in found]
        return np.array(rows, dtype=np.intp)

    def victims_of(self, preemptors: set[int]) -> frozenset[int]:
        """Return the rows of the jobs from which jobs of the same queue among these (rows) have taken lately."""
        if not self._cooldowns or not preemptors:
            return frozenset()
        jobs, queues = self._state.jobs, self._state.queue_of_job
        lost = {(victim, queues[row]) for row in preemptors for victim in self._victims(jobs.record(row).key)}
        present = jobs.present().tolist() if lost else []
        return frozenset(row for row in present if (jobs.record(row).key, queues[row]) in lost)

    def _victims(self, job: JobKey) -> list[JobKey]:
        return [victim for preemptor, victim in self._cooldowns if preemptor == job]

    def add(self, job: JobInfo, victims: list[int]) -> None:
        """Note that these tasks (rows) go for a job."""
        state = self._state
        records = [state.tasks.record(task) for task in victims]
        self._plans.append(PlannedEviction(job.key, tuple(record.uid for record in records), state.now + PLAN_S))
        jobs: set[JobKey] = {key for record in records if (key := record.key) is not None and key != job.key}
        for victim in jobs:
            self._cooldowns[job.key, victim] = state.now + COOLDOWN_S
            self._preemptors_of.setdefault(victim, set()).add(job.key)

    @property
    def plans(self) -> tuple[PlannedEviction, ...]:
        """The plans that the next cycle is bound to."""
        return tuple(self._plans)

    @property
    def cooldowns(self) -> tuple[Cooldown, ...]:
        """The truces that the next cycle must keep, in order."""
        return tuple(
            Cooldown(preemptor, victim, until) for (preemptor, victim), until in sorted(self._cooldowns.items())
        )


def _under_way(state: State) -> list[PlannedEviction]:
    """Return the plans of which some victim terminates, none stands where it stood, and time is not up."""
    # A Python loop over all tasks, only while there are plans.
    rows = {record.uid: row for row, record in enumerate(state.tasks.records) if record is not None}
    found = []
    for plan in state.memory.plans:
        statuses = [state.tasks.status[rows[uid]] for uid in plan.victims if uid in rows]
        failed = any(status in _STANDING for status in statuses)
        if TaskStatus.RELEASING in statuses and not failed and plan.until > state.now:
            found.append(plan)
    return found
