"""Which jobs users may have to be told something new about when a cycle ends; see `framework.state.told`."""

from copy import copy
from hashlib import blake2b
from typing import Final

import numpy as np

from volcano_py.framework.session import Session
from volcano_py.framework.state.outcome import Partial
from volcano_py.framework.state.report import JobReport
from volcano_py.framework.state.state import State
from volcano_py.framework.state.texts import Texts
from volcano_py.framework.state.told import Told
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.decisions import SetPodGroupStatus
from volcano_py.model.objects import JobKey, JobRecord, TaskTrait
from volcano_py.model.rejections import Reason
from volcano_py.model.statuses import TaskStatus, members
from volcano_py.model.wording import without_numbers
from volcano_py.scheduler.on_the_way import OnTheWay, padded
from volcano_py.snapshot.shown import shown_after, shown_condition

RENEWED_S: Final = 60.0
"""A text in which only numbers have changed is written again after this long at the earliest."""
TURNS: Final = 3
"""After so many changes of its kind, the reason of a job is written again only when the texts of the job are due."""
_RENEWED_AT_ONCE: Final = 200  # jobs whose texts are made again in one cycle, those told first come first
_WAITS: Final = [TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED]
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
        self._before = before if before is not None and known else Told()
        self._texts = state.memory.texts
        waits = members(tuple(_WAITS))[state.tasks.status]  # a pod that has a node is not told any more why it waits
        self._pods = OnTheWay(state.tasks.shown, self._texts.pods, waits)
        self._groups = OnTheWay(state.jobs.rules.shown, self._texts.groups, state.jobs.rules.present)
        self._codes = self._before.codes
        self._waiting: Bools = state.jobs.counts[_WAITS].sum(axis=0) > 0
        self._unsettled = self._find_unsettled()
        self._reasons = self._of_jobs()
        self._leaving = leaving(state)
        self._of_tasks = self._of_pending_tasks()
        self._since = self._renewed_before()
        self._turns: Ints = np.where(np.isinf(self._since), 0, padded(self._texts.turns, n, 0))
        self.renewed: Bools = self._due() | self._in_edited_queues()
        """Jobs whose texts are made again, (n_jobs,)."""
        self._restless: Bools = self._waiting & (self._turns >= TURNS)
        self._turned: set[int] = set()  # rows of the jobs of which a text of another kind is written
        self._outdated: set[int] = set()  # rows of the jobs of which a text keeps its old numbers for now
        self.changed: Bools = self._find_changed() if known else np.ones(n, dtype=bool)
        """Jobs about which something may be told, (n_jobs,)."""
        self.told: set[int] = set()
        """Rows of the jobs about which something is written."""

        self._numbers: dict[str, tuple[int, int]] = {}  # text of pods -> its number, and that of its kind
        self.jobless = True
        """Whether something may be told about pods of no job."""

    def about(self, jobs: Bools) -> "Telling":
        """Return the same about these jobs (n_jobs,) only; what is done to it changes nothing here."""
        other = copy(self)
        other.changed, other.jobless, other.told, other._turned, other._outdated = jobs, False, set(), set(), set()
        other._pods, other._groups = self._pods.apart(), self._groups.apart()
        return other

    def alike(self, job_row: int, written: str, text: str) -> bool:
        """Say whether a text of a job need not be written in place of another one, or not yet."""
        if written == text:
            return True
        turns = without_numbers(written) != without_numbers(text)
        if not self._renews(job_row) and (not turns or self.delays(job_row)):
            self._outdated.add(job_row)
            return True
        if turns:
            self._turned.add(job_row)
        return False

    def _renews(self, job_row: int) -> bool:
        return job_row >= 0 and bool(self.renewed[job_row])

    def delays(self, job_row: int) -> bool:
        """Say whether a reason of another kind is not told yet, because this has changed so often."""
        return job_row >= 0 and bool(self._restless[job_row]) and not self.renewed[job_row]

    def write_condition(self, job_row: int, task_row: int, shown: str, text: str) -> bool:
        """Note that a pod that shows a condition must say this; return whether it must be written."""
        pods, numbers = self._pods, self._numbers.get(text)
        if numbers is None:
            numbers = self._numbers[text] = shown_condition(text), shown_condition(without_numbers(text))
        if pods.any_awaited and pods.awaited[task_row]:
            if pods.expects(task_row, numbers[0]):
                return False
            if not self._renews(job_row) and pods.expects_kind(task_row, numbers[1]):
                self._outdated.add(job_row)
                return False
            if self.delays(job_row):
                return False
        if shown and self.alike(job_row, shown, text):
            pods.give_up(task_row)
            return False
        self.told.add(job_row)
        pods.written[task_row] = numbers
        return True

    def write_status(self, job_row: int, record: JobRecord, status: SetPodGroupStatus, *, new: bool) -> bool:
        """Note that a PodGroup must have this status; return whether it must be written.

        The status has only those conditions that the PodGroup does not show. It is ``new`` if anything differs.
        """
        groups, awaited = self._groups, self._groups.awaited[job_row]
        if not (new or awaited):
            return False
        what, kind = shown_after(record, status, without_numbers)
        if awaited:
            if groups.expects(job_row, what):
                return False
            if not self.renewed[job_row] and groups.expects_kind(job_row, kind):
                self._outdated.add(job_row)
                return False
            if not new:
                if not self.delays(job_row):
                    groups.give_up(job_row)
                return False
        self.told.add(job_row)
        groups.written[job_row] = what, kind
        return True

    def awaits_group(self, job_row: int) -> bool:
        """Say whether the PodGroup of a job does not show yet what was decided."""
        return bool(self._groups.awaited[job_row])

    def texts(self) -> Texts:
        """Return what the next cycle must remember."""
        state = self._ssn.state
        fresh = self.renewed | (self._waiting & np.isinf(self._since))
        # Other news about a job put off neither a reason that is delayed nor the new numbers of its other pods.
        fresh[[row for row in self.told - self._outdated if row >= 0 and not self.delays(row)]] = True
        renewed = np.where(fresh, state.clock.stamp, self._since)
        renewed[~self._waiting] = np.inf
        keys = self._texts.keys
        keys = np.append(keys, np.full(max(0, self._n - len(keys)), None))
        # A Python loop over the jobs that differ from the last cycle.
        for row in np.flatnonzero(self.changed).tolist():
            keys[row] = self._key(row)
        turns = np.maximum(self._turns - self.renewed, 0)
        turned = [row for row in self._turned & self.told if row >= 0]
        turns[turned] = np.minimum(self._turns[turned] + 1, TURNS)
        turns[~self._waiting] = 0
        queues = {name: queue.record for name, queue in state.queues.items()}
        return Texts(keys, renewed, turns, self._pods.expected(), self._groups.expected(), queues)

    def _key(self, row: int) -> JobKey | None:
        record = self._ssn.state.jobs.records[row]
        return None if record is None else record.key

    def remember(self) -> Told:
        """Return what the next cycle compares with."""
        state = self._ssn.state
        return Told(
            policy=self._policy,
            versions=state.jobs.rules.versions,
            counts=state.jobs.counts.copy(),
            phases=state.jobs.phase,
            leaving=self._leaving,
            reasons=self._reasons,
            of_tasks=self._of_tasks,
            unsettled=self._unsettled,
            reports=state.report.jobs,
            codes=self._codes,
        )

    def reports(self) -> dict[JobKey, JobReport]:
        """Return what the last report said of the jobs that do not differ."""
        found = dict(self._before.reports)
        for key in self.former():
            found.pop(key, None)
        return found

    def announced(self, before: dict[JobKey, str]) -> dict[JobKey, str]:
        """Return those texts of events that belong to statuses that are still on their way."""
        if not before:
            return {}
        found, keys, groups = dict(before), self._texts.keys, self._groups
        looked_at = padded(self.changed | groups.moved, len(keys), fill=True)
        # A Python loop over the jobs that differ, or whose PodGroups show something new.
        for row in np.flatnonzero(looked_at).tolist():
            key = keys[row]
            if key is not None and (row >= self._n or not groups.awaited[row] or row in groups.written):
                found.pop(key, None)
        return found

    def former(self) -> list[JobKey]:
        """Return the jobs of the last cycle in the rows of the jobs that differ now."""
        keys = self._texts.keys
        rows = np.flatnonzero(padded(self.changed, len(keys), fill=True)).tolist()  # a Python loop over these jobs
        return [key for row in rows if (key := keys[row]) is not None]

    def _renewed_before(self) -> Floats:
        """Return when the texts of each job were made last, infinity if never, (n_jobs,)."""
        keys = self._texts.keys
        found = padded(self._texts.renewed, self._n, np.inf).copy()
        other = self._ssn.state.jobs.rules.versions != padded(self._before.versions, self._n, -1)
        # A Python loop over the jobs whose rows may have been those of other jobs.
        for row in np.flatnonzero(other & np.isfinite(found)).tolist():
            if keys[row] != self._key(row):
                found[row] = np.inf
        return found

    # What differs

    def _find_changed(self) -> Bools:
        state, before, n = self._ssn.state, self._before, self._n
        rules = state.jobs.rules
        changed = rules.versions != padded(before.versions, n, -1)
        changed |= (state.jobs.counts != padded(before.counts, n, -1.0)).any(axis=0)
        changed |= state.jobs.phase != padded(before.phases, n, -1)
        changed |= self._leaving != padded(before.leaving, n, -1)
        quiet = self._restless & ~self.renewed  # of another reason of these, nothing is told yet
        changed |= (self._reasons != padded(before.reasons, n, -1)) & ~quiet
        changed |= self._unsettled | padded(before.unsettled, n, fill=True) | self.renewed
        changed |= self._waiting & ~rules.present
        changed |= self._groups.unexpected | (self._restless & self._groups.awaited)
        job = state.tasks.job
        differs = (self._of_tasks != padded(before.of_tasks, len(self._of_tasks), 0)) & ~np.append(quiet, False)[job]
        differs |= self._pods.unexpected
        jobs = job[np.flatnonzero(differs)]
        changed[jobs[jobs >= 0]] = True
        return np.asarray(changed)

    def _find_unsettled(self) -> Bools:
        """Return the jobs whose reasons or texts no code stands for, (n_jobs,)."""
        state = self._ssn.state
        found: Bools = np.zeros(self._n, dtype=bool)
        found[[row for row, rejections in state.outcome.rejections.items() if rejections]] = True
        found[state.outcome.reasons.settled()] = False
        found |= state.outcome.reasons.with_room_since()
        # Texts of tasks that have a node name it. Preempt and reclaim give nodes to jobs that allocate has left out.
        found |= state.jobs.counts[[TaskStatus.ALLOCATED, TaskStatus.PIPELINED]].any(axis=0)
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
            limits[state.queues[name].row] = code("queue", reason.plugin, _without_amounts(reason))
        found: Ints = limits[state.queue_of_job]
        # A Python loop over the jobs that were not tried. Their pods may show the reason of the queue.
        for row, reason in state.outcome.blocked.items():
            found[row] = code("job", reason.text, int(found[row]))
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
        in_part = np.zeros(self._n, dtype=np.int64)
        for rows, partial in state.outcome.reasons.partial():  # a Python loop over groups of jobs alike
            in_part[rows] = self._of_partial(partial)
        codes = np.where(in_part[pending.jobs], in_part[pending.jobs], codes)
        found[pending.rows] = codes
        return found

    def _of_partial(self, partial: Partial) -> int:
        """Return the code of what holds for jobs that fit in part, below 0: tasks that would have nodes name them.

        It is a hash: hardly any of these codes is ever needed again, so they are not kept.
        """
        names = self._ssn.state.nodes.names
        where = [names[node] for node in partial.nodes.tolist()]
        why = [
            (_without_amounts(rejection.blocked), *sorted({refusal.reason for refusal in rejection.refusals}))
            for rejection in partial.rejections.values()
        ]
        tasks = partial.places.tolist(), partial.statuses.tolist()
        found = blake2b(repr((where, tasks, why)).encode(), digest_size=8).digest()
        return -1 - (int.from_bytes(found, "big") >> 1)

    def _due(self) -> Bools:
        """Return the jobs whose numbers may be written again, (n_jobs,)."""
        state = self._ssn.state
        found = np.zeros(self._n, dtype=bool)
        moments = np.where(self._waiting, self._since, np.inf) + RENEWED_S
        rows: Rows = np.flatnonzero(state.clock.have_come(moments))
        if len(rows) > _RENEWED_AT_ONCE:
            calm = self._turns[rows] < TURNS  # of the others, another kind may be overdue
            rows = rows[np.lexsort((state.jobs.rules.places[rows], moments[rows], calm))[:_RENEWED_AT_ONCE]]
            state.clock.expire()  # the others are due now: the next cycle continues
        found[rows] = True
        return found

    def _in_edited_queues(self) -> Bools:
        """Return the waiting jobs whose queue, or perhaps a queue above, was edited: users look for the new limits."""
        state, before = self._ssn.state, self._texts.queues
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


def _without_amounts(reason: Reason | None) -> str:
    """Return the code of a reason whose text contains amounts, else its text."""
    if reason is None:
        return ""
    return reason.code if reason.code in _OF_NUMBERS else reason.text


def leaving(state: State) -> Ints:
    """Return how many tasks of each job are on a node that they leave, (n_jobs,); they still count as scheduled."""
    tasks = state.tasks
    rows = np.flatnonzero((tasks.status == TaskStatus.RELEASING) & (tasks.node >= 0) & (tasks.job >= 0))
    return np.bincount(tasks.job[rows], minlength=len(state.jobs))
