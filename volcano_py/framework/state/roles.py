"""The tasks of one job by role. In a session the tasks of a job stay the same; only their status changes."""

from collections.abc import Sequence

import numpy as np

from volcano_py.model.arrays import Bools, Rows
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus, members
from volcano_py.snapshot.columns import TaskColumns


class Roles:
    """Counts a job's tasks by role; made once per job and session, for jobs with a rule per role."""

    __slots__ = ("_best_effort", "_codes", "_names", "_rows", "_status")

    def __init__(self, tasks: TaskColumns, rows: Rows, shapes: Sequence[Shape | None]) -> None:
        """Take the columns of tasks, the rows of the job's tasks, and the shapes by id."""
        self._rows = rows
        # A Python loop over the job's tasks.
        roles = [tasks.record(row).role for row in rows.tolist()]
        codes = {role: code for code, role in enumerate(dict.fromkeys(roles))}
        self._names = tuple(codes)
        self._codes = np.array([codes[role] for role in roles], dtype=np.intp)
        ids, which = np.unique(tasks.shape[rows], return_inverse=True)
        found = [(shape := shapes[shape_id]) is not None and shape.best_effort for shape_id in ids.tolist()]
        self._best_effort: Bools = np.array(found, dtype=bool)[which]
        self._status = tasks.status  # the live column

    def counts(self, statuses: tuple[TaskStatus, ...], best_effort: bool) -> dict[str, int]:
        """Return the number of tasks of each role in these statuses; ``best_effort`` adds pending best-effort ones."""
        status = self._status[self._rows]
        counted = members(statuses)[status]
        if best_effort:
            counted |= self._best_effort & (status == TaskStatus.PENDING)
        found = np.bincount(self._codes[counted], minlength=len(self._names)).tolist()
        return {role: count for role, count in zip(self._names, found, strict=True) if count}
