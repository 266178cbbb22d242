"""Overcommit: jobs are let in up to a multiple of what the cluster has.

idle      = factor * total - used,   used = what tasks on nodes hold, terminating and foreign ones included
reserved  = for PodGroups in phase Inqueue their minResources, for Running ones what they lack of them, both without
            gated tasks (`framework.state.reservations`); every job that is let in adds its minResources
let in    <=>  reserved + min <= idle in every resource of which min asks for any, pods left aside

compared exactly. A job without minResources is let in. ``overcommit-factor`` is 1.2; a factor below 1 counts as 1.2.
(Volcano: plugins/overcommit.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from volcano_py.conf.arguments import Warn, get_float
from volcano_py.framework.contract.extension_points import JobEnqueueable, JobEnqueued, Vote
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.state import reservations
from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.state import State
from volcano_py.model.rejections import Reason

DEFAULT_FACTOR: Final = 1.2


@dataclass(frozen=True, slots=True)
class OvercommitArgs:
    """How much more than there is may be let in."""

    factor: float = DEFAULT_FACTOR


class Overcommit(Plugin, JobEnqueueable, JobEnqueued):
    """A limit on what all jobs that have been let in may ask for."""

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
        """Add up what there is and what jobs that have been let in will still take."""
        self._ssn = ssn
        self._idle = ssn.total * self._args.factor - ssn.nodes.used.sum(axis=1)  # (n_resources,)
        self._reserved = reservations.reserved(ssn, whole=True).sum(axis=1)  # (n_resources,)
        self._gated = reservations.gated(ssn)  # (n_resources, n_jobs)

    def job_enqueueable(self, job: JobInfo) -> Vote | Reason:
        """Permit a job that fits into what is left, reject any other."""
        if job.record.min_resources is None:
            return Vote.PERMIT
        asked = self._ssn.jobs.min_resources[:, job.row]
        over = reservations.over_asked(self._reserved + asked, self._idle, asked)
        if not over.any():
            return Vote.PERMIT
        names = ", ".join(f"overused {self._ssn.resources.names[row]}" for row in np.flatnonzero(over))
        return Reason(self.name, "cluster-overused", f"resource in cluster is overused: {names}")

    def job_enqueued(self, job: JobInfo) -> None:
        """Count what the job will take."""
        if job.record.min_resources is None:
            return
        asked = self._ssn.jobs.min_resources[:, job.row]
        self._reserved = self._reserved + np.maximum(asked - self._gated[:, job.row], 0.0)
