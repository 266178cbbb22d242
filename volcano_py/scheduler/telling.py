"""Which jobs users may have to be told something new about when a cycle ends; see `framework.state.told`."""

import re
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from volcano_py.framework.session import Session
from volcano_py.framework.state.report import JobReport
from volcano_py.framework.state.told import ReasonCodes, Told
from volcano_py.model.arrays import Bools, Ints, Rows
from volcano_py.model.decisions import SetPodGroupStatus
from volcano_py.model.objects import JobKey, JobRecord, TaskTrait
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.shown import Shown, shown_after, shown_condition

RENEWED_S: Final = 60.0
"""A text in which only numbers have changed is written again after this long at the earliest."""
_RENEWED_AT_ONCE: Final = 200  # jobs whose numbers are looked at again in one cycle, those told first come first
_WAITS: Final = [TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED]
_NUMBER: Final = re.compile(r"(?<![\w.-])\d[\d./]*[A-Za-z]{0,2}(?![\w-])")
_AMOUNTS: Final = re.compile(r'^(queue "[^"]*" (?:may not hold more|holds all that it deserves now)).*')
_OF_NUMBERS: Final = frozenset({"queue-limit", "queue-overused"})  # reasons whose texts are amounts


class Telling:
    """The jobs of a session that ends about which something may be told."""

    def __init__(self, ssn: Session, policy: object, *, built_in: bool) -> None:
        """Compare the jobs with those of the last cycle. Without ``built_in`` all are told about: plugins of others may
        have reasons that no column shows."""
        state = ssn.state
        before = state.memory.told
        self._ssn = ssn
        self._policy = policy
        self._n = n = len(state.jobs)
        known = before is not None and before.policy is policy and built_in and not before.codes.full
        self._before = before if before is not None else Told()
        self._codes = self._before.codes if known else ReasonCodes()
        self._waiting: Bools = state.jobs.counts[_WAITS].sum(axis=0) > 0
        self._unsettled = self._find_unsettled()
        self._reasons = self._of_jobs()
        self._of_tasks = self._of_pending_tasks()
        self.renewed: Bools = self._due() | self._in_edited_queues()
        """Jobs whose numbers may be written again, (n_jobs,)."""
        self.changed: Bools = self._find_changed() if known else np.ones(n, dtype=bool)
        """Jobs about which something may be told, (n_jobs,)."""
        self.told: set[int] = set()
        """Rows of the jobs about which something is written."""
        self._conditions: dict[int, int] = {}  # task row -> the number of the condition that is written
        self._statuses: dict[int, int] = {}  # job row -> the number of the status that is written

    def alike(self, job_row: int, written: str, text: str) -> bool:
        """Say whether a text of a job need not be written in place of another one."""
        return written == text or (
            not (job_row >= 0 and self.renewed[job_row]) and without_numbers(written) == without_numbers(text)
        )

    def write_condition(self, job_row: int, task_row: int, text: str) -> None:
        """Note that a condition is written to the pod of a task."""
        self.told.add(job_row)
        self._conditions[task_row] = shown_condition(text)

    def write_status(self, job_row: int, record: JobRecord, status: SetPodGroupStatus) -> None:
        """Note that a status is written to a PodGroup."""
        self.told.add(job_row)
        self._statuses[job_row] = shown_after(record, status)

    def remember(self) -> Told:
        """Return what the next cycle compares with."""
        state, before = self._ssn.state, self._before
        fresh = self.renewed | (self._waiting & np.isinf(_padded(before.since, self._n, np.inf)))
        fresh[[row for row in self.told if row >= 0]] = True
        since = np.where(fresh, state.clock.stamp, _padded(before.since, self._n, np.inf))
        since[~self._waiting] = np.inf
        keys = [*before.keys, *[None] * (self._n - len(before.keys))]
        # A Python loop over the jobs that differ from the last cycle.
        for row in np.flatnonzero(self.changed).tolist():
            record = state.jobs.records[row]
            keys[row] = None if record is None else record.key
        return Told(
            policy=self._policy,
            versions=state.jobs.rules.versions,
            counts=state.jobs.counts.copy(),
            phases=state.jobs.phase,
            reasons=self._reasons,
            of_tasks=self._of_tasks,
            unsettled=self._unsettled,
            since=since,
            pods=_expected(state.tasks.shown, before.pods, self._looked_at_tasks(), self._conditions),
            groups=_expected(state.jobs.rules.shown, before.groups, self.changed, self._statuses),
            keys=tuple(keys),
            reports=state.report.jobs,
            codes=self._codes,
            queues={name: queue.record for name, queue in state.queues.items()},
        )

    def reports(self) -> dict[JobKey, JobReport]:
        """Return what the last report said of the jobs that do not differ."""
        found = dict(self._before.reports)
        for key in self.former():
            found.pop(key, None)
        return found

    def arrived(self) -> list[JobKey]:
        """Return the jobs whose PodGroups show only since this cycle what an earlier one decided."""
        jobs, before = self._ssn.state.jobs, self._before.groups
        new = _moved(jobs.rules.shown, before) & (jobs.rules.shown.what == _padded(before.what, self._n, 0))
        # A Python loop over these jobs.
        return [jobs.record(row).key for row in np.flatnonzero(new & jobs.rules.present).tolist()]

    def former(self) -> list[JobKey]:
        """Return the jobs of the last cycle in the rows of the jobs that differ now."""
        keys = self._before.keys
        rows = np.flatnonzero(_padded(self.changed, len(keys), fill=True)).tolist()  # a Python loop over these jobs
        return [key for row in rows if (key := keys[row]) is not None]

    # What differs

    def _find_changed(self) -> Bools:
        state, before, n = self._ssn.state, self._before, self._n
        rules = state.jobs.rules
        changed = rules.versions != _padded(before.versions, n, -1)
        changed |= (state.jobs.counts != _padded(before.counts, n, -1.0)).any(axis=0)
        changed |= state.jobs.phase != _padded(before.phases, n, -1)
        changed |= self._reasons != _padded(before.reasons, n, -1)
        changed |= self._unsettled | _padded(before.unsettled, n, fill=True) | self.renewed
        changed |= self._waiting & ~rules.present
        changed |= _unexpected(rules.shown, before.groups)
        differs = self._of_tasks != _padded(before.of_tasks, len(self._of_tasks), 0)
        differs |= _unexpected(state.tasks.shown, before.pods)
        tasks = np.flatnonzero(differs)
        jobs = state.tasks.job[tasks]
        changed[jobs[jobs >= 0]] = True
        return np.asarray(changed)

    def _looked_at_tasks(self) -> Bools:
        """Return the tasks of jobs that differ, and those of no job, (n_tasks,)."""
        return np.asarray(np.append(self.changed, True)[self._ssn.state.tasks.job])

    def _find_unsettled(self) -> Bools:
        """Return the jobs whose reasons or texts no code stands for, (n_jobs,)."""
        state = self._ssn.state
        found: Bools = np.asarray(state.jobs.counts[[TaskStatus.ALLOCATED, TaskStatus.PIPELINED]].any(axis=0))
        refused = [row for row, rejections in state.outcome.rejections.items() if rejections]
        found[refused] = True
        found[state.outcome.reasons.settled()] = False
        found[list(state.outcome.skipped)] = True
        tasks = state.tasks
        backing_off = tasks.traits & TaskTrait.BACKING_OFF.value > 0
        rows = np.concatenate(
            (state.outcome.attempted_rows(), self._ssn.arrivals.rows(), np.flatnonzero(backing_off))
        ).astype(np.intp)
        jobs = tasks.job[rows]
        found[jobs[jobs >= 0]] = True
        return found

    def _of_jobs(self) -> Ints:
        """Return the code of what holds for each job as a whole, 0 for nothing, (n_jobs,)."""
        state, code = self._ssn.state, self._codes.of
        limits = np.zeros(len(state.queues) + 1, dtype=np.int64)  # the last is for jobs of no queue
        for name, reason in state.outcome.queue_limits.items():  # a Python loop over queues that are full
            text = reason.code if reason.code in _OF_NUMBERS else reason.text
            limits[state.queues[name].row] = code("queue", reason.plugin, text)
        found: Ints = limits[state.queue_of_job]
        # A Python loop over the jobs that were not tried.
        for row, reason in state.outcome.blocked.items():
            found[row] = code("job", reason.text)
        return found

    def _of_pending_tasks(self) -> Ints:
        """Return the code of what holds for each pending task, 0 for nothing, (n_tasks,)."""
        state, pending = self._ssn.state, self._ssn.hooks.pending
        found = np.zeros(len(state.tasks.records), dtype=np.int64)
        by_shape = np.zeros(len(state.classes.shapes) + 1, dtype=np.int64)
        if state.volumes is not None:
            # A Python loop over the shapes of pending tasks, only if some tasks use claims.
            for shape_id in np.flatnonzero(pending.shapes(lambda _: True)).tolist():
                refusal = state.volumes.refusal(state.task_of(shape_id))
                by_shape[shape_id] = 0 if refusal is None else self._codes.of("claims", refusal.text)
        # A Python loop over the shapes that no node takes.
        for shape_id, rejection in state.outcome.reasons.of_shapes().items():
            by_shape[shape_id] = self._codes.of("nodes", *sorted({refusal.reason for refusal in rejection.refusals}))
        shapes = state.tasks.shape[pending.rows]
        codes = by_shape[shapes]
        full = state.outcome.reasons.full(pending.jobs, shapes)
        if full is not None:
            codes = np.where(full, self._codes.of("queue-limit"), codes)
        found[pending.rows] = codes
        return found

    def _due(self) -> Bools:
        """Return the jobs whose numbers may be written again, (n_jobs,)."""
        state = self._ssn.state
        found = np.zeros(self._n, dtype=bool)
        since = _padded(self._before.since, self._n, np.inf)
        moments = np.where(self._waiting, since, np.inf) + RENEWED_S
        rows: Rows = np.flatnonzero(state.clock.have_come(moments))
        if len(rows) > _RENEWED_AT_ONCE:
            rows = rows[np.lexsort((state.jobs.rules.places[rows], moments[rows]))[:_RENEWED_AT_ONCE]]
            state.clock.expire()  # the others are due now: the next cycle continues
        found[rows] = True
        return found

    def _in_edited_queues(self) -> Bools:
        """Return the waiting jobs whose queue, or perhaps a queue above, was edited: users look for the new limits."""
        state, before = self._ssn.state, self._before.queues
        edited = {
            name
            for name, queue in state.queues.items()
            if (old := before.get(name)) is not queue.record and old != queue.record
        }
        if not edited:
            return np.zeros(self._n, dtype=bool)
        above = any(queue.record.parent for queue in state.queues.values())
        queues = [above or name in edited for name in state.queues]
        return np.asarray(np.append(queues, False)[state.queue_of_job] & self._waiting).astype(bool)


@lru_cache(maxsize=4096)
def without_numbers(text: str) -> str:
    """Return a text without its numbers, for comparisons; the reasons of nodes are sorted, as they are by number."""
    text = _AMOUNTS.sub(r"\1", text)
    masked = _NUMBER.sub("#", text)
    head, colon, reasons = masked.rpartition("nodes are unavailable: ")
    return masked if not colon else head + colon + ", ".join(sorted(reasons.rstrip(".").split(", ")))


def _moved(shown: Shown, before: Shown) -> Bools:
    return np.asarray(shown.times != _padded(before.times, len(shown.times), -1))


def _unexpected(shown: Shown, before: Shown) -> Bools:
    """Return where something new is shown that we did not write."""
    return np.asarray(_moved(shown, before) & (shown.what != _padded(before.what, len(shown.what), 0)))


def _expected(shown: Shown, before: Shown, looked_at: Bools, written: dict[int, int]) -> Shown:
    """Return what will be shown: what is written now or was expected before, else what is shown now."""
    what = np.where(looked_at, shown.what, _padded(before.what, len(shown.what), 0))
    what[list(written)] = list(written.values())
    return Shown(what, shown.times)


def _padded(column: NDArray[Any], n: int, fill: float) -> NDArray[Any]:
    """Return a column of the last cycle with ``n`` rows; new rows have a value that differs from all."""
    missing = n - column.shape[-1]
    if missing <= 0:
        return column[..., :n]
    return np.concatenate((column, np.full((*column.shape[:-1], missing), fill, dtype=column.dtype)), axis=-1)
