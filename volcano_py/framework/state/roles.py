"""The tasks of one job by role: who they are does not change while a session lasts, only where they stand."""

from typing import TYPE_CHECKING

import numpy as np

from volcano_py.model.statuses import TaskStatus, members

if TYPE_CHECKING:
    from volcano_py.framework.session import Session


class Roles:
    """Counts a job's tasks by role; made once per job and session, for jobs with a rule per role."""

    __slots__ = ("_best_effort", "_codes", "_names", "_rows", "_status")

    def __init__(self, ssn: "Session", job_row: int) -> None:
        self._rows = ssn.rows_of_job(job_row)
        # A Python loop over the job's tasks.
        roles = [ssn.tasks.record(row).role for row in self._rows.tolist()]
        codes = {role: code for code, role in enumerate(dict.fromkeys(roles))}
        self._names = tuple(codes)
        self._codes = np.array([codes[role] for role in roles], dtype=np.intp)
        shapes, which = np.unique(ssn.tasks.shape[self._rows], return_inverse=True)
        self._best_effort = np.array([ssn.shape_of(shape).best_effort for shape in shapes.tolist()], dtype=bool)[which]
        self._status = ssn.tasks.status  # the live column

    def counts(self, statuses: tuple[TaskStatus, ...], best_effort: bool) -> dict[str, int]:
        """Return the number of tasks of each role in these statuses, and pending best-effort ones if asked for."""
        status = self._status[self._rows]
        counted = members(statuses)[status]
        if best_effort:
            counted |= self._best_effort & (status == TaskStatus.PENDING)
        found = np.bincount(self._codes[counted], minlength=len(self._names)).tolist()
        return {role: count for role, count in zip(self._names, found, strict=True) if count}
