"""Verifies what is kept from cycle to cycle: for a few jobs everything is found anew, without caches, and compared.

    turns   a job that was left out gets nothing in a turn of its own, and for the reasons that are recorded; if it
            fits in part, the same tasks find the same nodes
    texts   a job that does not differ from the last cycle would be told nothing new

Each cycle goes on where the last one ended, so that with n rows of jobs each job has its turn within n cycles, and its
texts within n / 8 (100 if there are fewer). A turn is undone, and nothing is written, so no decision changes. A
difference is a fault of ours: it is reported, and until the job changes users may read something wrong, or a job waits
for nothing.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.placing.node_sets import NodeSets
from volcano_py.framework.placing.placement import Placement
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.report import Difference
from volcano_py.framework.state.state import without_kept_answers
from volcano_py.model.arrays import Bools, Rows
from volcano_py.model.decisions import Decision, SetPodCondition, SetPodGroupStatus
from volcano_py.model.rejections import Rejection
from volcano_py.model.wording import without_numbers
from volcano_py.scheduler.status import job_report, write_statuses
from volcano_py.scheduler.telling import Telling

_MOST_TURNS: Final = 1
"""Turns in one cycle: without caches each costs as much as ten others."""
_MOST_TEXTS: Final = 8
"""Jobs in one cycle whose texts are made again: a cycle over a deep queue makes hardly any."""


class Verifying:
    """Verifies some of the jobs of one session."""

    def __init__(self, ssn: Session, every: int) -> None:
        """Take one job in ``every``, at most a few; all if it is 1, and none if it is 0."""
        self._ssn = ssn
        self._n = n = len(ssn.state.jobs)
        sample = -(-n // every) if every else 0
        self._turns, self._texts = (n, n) if every == 1 else (min(sample, _MOST_TURNS), min(sample, _MOST_TEXTS))
        self._unchanged: Bools = np.zeros(n, dtype=bool)

    def _due(self, jobs: Bools, most: int) -> Rows:
        """Return up to ``most`` of these jobs (n_jobs,): among them those of the next ``most`` rows in each cycle."""
        rows = np.flatnonzero(jobs)
        if not most or not len(rows):
            return rows[:0]
        first = self._ssn.state.memory.cycle * most % self._n
        return np.roll(rows, -int(np.searchsorted(rows, first)))[:most]

    # Turns

    def turns(self) -> None:
        """Give jobs that allocate has left out a turn of their own at its end, and undo it."""
        ssn, state = self._ssn, self._ssn.state
        rows = self._due(state.outcome.reasons.settled(), self._turns)
        if not len(rows):
            return
        holds_until, rankings = state.clock.holds_until, len(state.report.rankings)
        with without_kept_answers(state):
            node_sets = NodeSets.of_shard(state.facts.shard, state.nodes, state.static_row)
            placement = Placement(state, ssn.hooks, node_sets, ssn.placement.tie_order)
            # A Python loop over a few jobs.
            for row in rows.tolist():
                if row not in ssn.topology.concerned:
                    self._turn(state.job(row), placement)
        state.clock.holds_until = holds_until
        del state.report.rankings[rankings:]

    def _turn(self, job: JobInfo, placement: Placement) -> None:
        state, outcome = self._ssn.state, self._ssn.state.outcome
        recorded = outcome.rejections.pop(job.row, None)
        try:
            placed, found = self._try(job, placement)
            mask = np.zeros(self._n, dtype=bool)
            mask[job.row] = True
            outcome.reasons.explain(mask)
            kept, expected = outcome.rejections.get(job.row, {}), self._attempted(job)
        except PluginFailed:  # where it matters, the failure is reported
            return
        finally:
            outcome.forget_attempt(outcome.reasons.tasks_of(job.row))
            outcome.rejections.pop(job.row, None)
            if recorded is not None:
                outcome.rejections[job.row] = recorded
        if placed != expected:
            self._differs(job, "turn", expected or "no task finds a node", placed or "no task finds a node")
        elif job.record.queue not in outcome.queue_limits and _texts(kept) != _texts(found):
            self._differs(job, "reasons", _texts(kept), _texts(found))
        state.report.jobs_verified += 1

    def _try(self, job: JobInfo, placement: Placement) -> tuple[str, Mapping[int, Rejection]]:
        """Return where tasks of a job are placed in a turn, "" for nowhere, and why others are not."""
        tasks = self._ssn.state.outcome.reasons.tasks_of(job.row)
        found, ready = self._ssn.task_loop.try_out(job, tasks, placement)
        placed = self._named(zip(tasks[found.places].tolist(), found.nodes.tolist(), strict=True))
        return placed + (" and all that it needs" if ready and placed else ""), found.rejections

    def _attempted(self, job: JobInfo) -> str:
        """Return where tasks of a job would have been placed, as it is recorded."""
        outcome = self._ssn.state.outcome
        found = ((task, outcome.attempt(task)) for task in outcome.reasons.tasks_of(job.row).tolist())
        return self._named((task, attempt[1]) for task, attempt in found if attempt is not None)

    def _named(self, placed: Iterable[tuple[int, int]]) -> str:
        state = self._ssn.state
        return ", ".join(f"{state.tasks.record(task).name} on {state.nodes.names[node]}" for task, node in placed)

    # Texts

    def unchanged(self, telling: Telling) -> Bools:
        """Return the jobs (n_jobs,) that do not differ from the last cycle and whose texts are made all the same."""
        rows = self._due(self._ssn.state.jobs.rules.present & ~telling.changed, self._texts)
        self._unchanged[rows] = True
        return self._unchanged

    def texts(self, telling: Telling) -> None:
        """Compare the texts, statuses and reports of these jobs."""
        state = self._ssn.state
        rows = np.flatnonzero(self._unchanged).tolist()
        if not rows:
            return
        holds_until = state.clock.holds_until
        jobs = {state.jobs.record(row).key: state.job(row) for row in rows}
        for decision in self._decided(telling.about(self._unchanged)):
            match decision:
                case SetPodGroupStatus() if decision.job in jobs:
                    job = jobs[decision.job]
                    self._differs(job, "status", repr(job.record.conditions or job.record.phase), repr(decision))
                case SetPodCondition():
                    record = state.tasks.record(self._row_of(decision))
                    if record.key in jobs:
                        about = f"condition of pod {record.name}"
                        self._differs(jobs[record.key], about, record.condition, decision.message)
        # A Python loop over a few jobs.
        for key, job in jobs.items():
            kept = state.report.jobs.get(key)
            if kept is None or telling.delays(job.row):  # then the report says what users were told
                continue
            found = job_report(state, job)
            sizes = (kept.tasks, kept.ready, kept.min_available), (found.tasks, found.ready, found.min_available)
            if sizes[0] != sizes[1] or without_numbers(kept.message) != without_numbers(found.message):
                self._differs(job, "report", kept.message, found.message)
        state.report.jobs_verified += len(rows)
        state.clock.holds_until = holds_until

    def _decided(self, telling: Telling) -> list[Decision]:
        """Return what would be written about these jobs."""
        state, found = self._ssn.state, list[Decision]()
        emit, announced = state.emit, state.outcome.announced
        state.emit = found.extend
        try:
            write_statuses(self._ssn, telling)
        finally:
            state.emit, state.outcome.announced = emit, announced
        return found

    def _row_of(self, decision: SetPodCondition) -> int:
        records = self._ssn.state.tasks.records
        return next(row for row, record in enumerate(records) if record is not None and record.ref == decision.task)

    def _differs(self, job: JobInfo, about: str, kept: str, anew: str) -> None:
        self._ssn.state.report.differences.append(Difference(job.key, about, kept, anew))


def _texts(rejections: Mapping[int, Rejection]) -> str:
    return "; ".join(rejection.message for _, rejection in sorted(rejections.items()))
