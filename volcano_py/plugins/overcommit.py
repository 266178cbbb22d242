"""Overcommit: jobs are enqueued until their minResources reach a multiple of the cluster's resources.

idle      = factor * total - used,   used = what tasks on nodes hold, including terminating and foreign ones
reserved  = minResources of PodGroups in phase Inqueue, plus the missing part of minResources of Running ones, both
            without gated tasks (`framework.state.reservations`); every job that is enqueued adds its minResources
enqueued  <=>  reserved + min <= idle in every resource that min requests, except pods

The comparison is exact. A job without minResources is enqueued. ``overcommit-factor`` is 1.2 by default; a factor below
1 counts as 1.2. (Volcano: plugins/overcommit.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from volcano_py.conf.arguments import Warn, get_float
from volcano_py.framework.contract.extension_points import JobEnqueueable, JobEnqueued, Vote, Votes
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.state import reservations
from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Rows
from volcano_py.model.rejections import Reason

DEFAULT_FACTOR: Final = 1.2


@dataclass(frozen=True, slots=True)
class OvercommitArgs:
    """The multiple of the cluster's resources up to which jobs are enqueued."""

    factor: float = DEFAULT_FACTOR


class Overcommit(Plugin, JobEnqueueable, JobEnqueued):
    """A limit on the total minResources of all enqueued jobs."""

    name = "overcommit"
    arguments = frozenset({"overcommit-factor"})

    def __init__(self, arguments: OvercommitArgs | None = None) -> None:
        self._args = arguments or OvercommitArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> OvercommitArgs:
        """Read ``overcommit-factor`` (1.2)."""
        factor = get_float(arguments, "overcommit-factor", DEFAULT_FACTOR, warn)
        if not factor >= 1:
            warn(f"argument overcommit-factor is {factor:g}, which is below 1; the default {DEFAULT_FACTOR:g} is used")
            factor = DEFAULT_FACTOR
        return OvercommitArgs(factor)

    def on_session_open(self, ssn: State) -> None:
        """Sum up the idle resources and the reservations of enqueued jobs."""
        self._ssn = ssn
        self._idle = ssn.total * self._args.factor - ssn.nodes.used.sum(axis=1)  # (n_resources,)
        self._reserved = reservations.reserved(ssn, whole=True).sum(axis=1)  # (n_resources,)
        self._gated = reservations.gated(ssn)  # (n_resources, n_jobs)

    def job_enqueueable(self, job: JobInfo) -> Vote | Reason:
        """Permit a job that fits into the remaining idle resources, reject any other."""
        if job.record.min_resources is None:
            return Vote.PERMIT
        asked = self._ssn.jobs.min_resources[:, job.row]
        return self._answer(reservations.over_asked(self._reserved + asked, self._idle, asked))

    def enqueueable_jobs(self, jobs: Rows) -> Votes:
        """Compare the minResources of all these jobs with the remaining idle resources."""
        asked = self._ssn.jobs.min_resources[:, jobs]
        places, over = reservations.all_over_asked(self._reserved[:, None] + asked, self._idle[:, None], asked)
        return Votes(places, [self._answer(rows) for rows in over])

    def _answer(self, over: list[int]) -> Vote | Reason:
        if not over:
            return Vote.PERMIT
        names = ", ".join(f"overused {self._ssn.resources.names[row]}" for row in over)
        return Reason(self.name, "cluster-overused", f"resource in cluster is overused: {names}")

    def job_enqueued(self, job: JobInfo) -> None:
        """Reserve the job's minResources."""
        if job.record.min_resources is None:
            return
        asked = self._ssn.jobs.min_resources[:, job.row]
        self._reserved = self._reserved + np.maximum(asked - self._gated[:, job.row], 0.0)
