"""Sla: a job that has waited longer than its waiting time gets precedence.

    deadline = creation of the PodGroup + waiting time

The waiting time is a duration such as 1h30m. It comes from the PodGroup's annotation ``volcano.sh/sla-waiting-time`` or
the older ``sla-waiting-time``, else from the argument ``sla-waiting-time``.

order      jobs with an earlier deadline first, jobs without a deadline last
enqueue    after the deadline: permit
pipelined  after the deadline: permit, so an incomplete gang keeps the resources promised to it

A permit only wins over a rejection of a later tier. A rejection in the same or an earlier tier wins over the permit.
(Volcano: plugins/sla.)
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from volcano_py.api.duration import DurationError, parse_go_duration
from volcano_py.conf.arguments import Warn, get_string
from volcano_py.framework.contract.extension_points import JobEnqueueable, JobOrder, JobPipelined, Vote, Votes
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Floats, Rows
from volcano_py.model.objects import JobRecord
from volcano_py.snapshot.columns import JobColumns

_WAITING_TIME: Final = "sla-waiting-time"
_NEVER: Final = sys.float_info.max


@dataclass(frozen=True, slots=True)
class SlaArgs:
    """The waiting time of jobs without the annotation; None for no limit."""

    waiting_time: float | None = None  # seconds


class Sla(Plugin, JobOrder, JobEnqueueable, JobPipelined):
    """Waiting times of jobs."""

    name = "sla"
    arguments = frozenset({_WAITING_TIME})

    def __init__(self, arguments: SlaArgs | None = None) -> None:
        self._args = arguments or SlaArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> SlaArgs:
        """Read ``sla-waiting-time`` (none); a value that is not a duration above 0 is ignored."""
        text = get_string(arguments, _WAITING_TIME, "", warn)
        if not text:
            return SlaArgs()
        try:
            seconds = parse_go_duration(text)
        except DurationError as error:
            warn(f"argument {_WAITING_TIME}: {error}; the waiting time is not limited")
            return SlaArgs()
        if seconds <= 0:
            warn(f"argument {_WAITING_TIME} is {text}, which is not above 0; the waiting time is not limited")
            return SlaArgs()
        return SlaArgs(seconds)

    def on_session_open(self, ssn: State) -> None:
        """Keep the session and its time."""
        self._ssn, self._now = ssn, ssn.now

    def job_order(self, jobs: JobColumns) -> Floats:
        """Return the deadline of each job, shape (n_jobs,)."""
        # A Python loop over jobs: waiting times are in their records.
        return np.array([_NEVER if record is None else self._deadline(record) for record in jobs.records])

    def job_enqueueable(self, job: JobInfo) -> Vote:
        """Permit a job whose deadline has passed."""
        return self._vote(job)

    def enqueueable_jobs(self, jobs: Rows) -> Votes:
        """Permit those of these jobs whose deadline has passed."""
        records = self._ssn.jobs.records
        # A Python loop over jobs: waiting times are in their records.
        passed = [(record := records[row]) is not None and self._now >= self._deadline(record) for row in jobs.tolist()]
        return Votes(np.array(passed, dtype=np.int64), [Vote.ABSTAIN, Vote.PERMIT])

    def job_pipelined(self, job: JobInfo) -> Vote:
        """Permit a job whose deadline has passed."""
        return self._vote(job)

    def _vote(self, job: JobInfo) -> Vote:
        return Vote.PERMIT if self._now >= self._deadline(job.record) else Vote.ABSTAIN

    def _deadline(self, record: JobRecord) -> float:
        waiting_time = self._args.waiting_time if record.waiting_time is None else record.waiting_time
        return _NEVER if waiting_time is None else record.creation + waiting_time
