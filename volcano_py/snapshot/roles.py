"""Roles of tasks as numbers, and the minimums that PodGroups set for them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from volcano_py.model.arrays import Bools, Codes, Ints, Rows
from volcano_py.snapshot.rows import RowTable


@dataclass(frozen=True, slots=True)
class RoleMinimums:
    """All minimums of roles of all jobs, one per entry; a job may have several."""

    jobs: Rows  # (n_minimums,), rows of jobs
    roles: Ints  # (n_minimums,), codes of roles
    tasks: Ints  # (n_minimums,), how many tasks of the role the job needs

    def surplus(self, jobs: Codes, roles: Codes, of_jobs: Codes, of_roles: Codes) -> Ints:
        """Return by how many each role of a job exceeds its minimum, shape (n,); a role without one needs no task.

        ``jobs`` and ``roles`` are those of the tasks that count, shape (n_tasks,); ``of_jobs`` and ``of_roles`` are
        those that are asked about, shape (n,).
        """
        width = 1 + max(int(codes.max(initial=0)) for codes in (self.roles, roles, of_roles))

        def keys(rows: Rows | Codes, codes: Ints | Codes) -> Ints:
            return rows.astype(np.int64) * width + codes

        asked = keys(of_jobs, of_roles)
        have = np.sort(keys(jobs, roles))
        found = np.searchsorted(have, asked, "right") - np.searchsorted(have, asked, "left")
        rules = keys(self.jobs, self.roles)
        order = np.argsort(rules)
        entry = order[np.minimum(np.searchsorted(rules, asked, sorter=order), len(order) - 1)]
        return np.asarray(found - np.where(rules[entry] == asked, self.tasks[entry], 0))

    def unmet(self, jobs: Codes, roles: Codes, n_jobs: int) -> Bools:
        """Return which jobs have a role below its minimum, shape (n_jobs,).

        ``jobs`` and ``roles`` are the rows and codes of the tasks that count, shape (n_tasks,) each.
        """
        short = np.zeros(n_jobs, dtype=bool)
        if not len(self.jobs):
            return short
        width = max(int(self.roles.max()), int(roles.max(initial=0))) + 1
        asked = self.jobs * width + self.roles
        order = np.argsort(asked)
        have = jobs.astype(np.int64) * width + roles
        place = np.searchsorted(asked, have, sorter=order)
        place[place == len(order)] = 0
        entry = order[place]
        counted = np.bincount(entry[asked[entry] == have], minlength=len(asked))
        short[self.jobs[counted < self.tasks]] = True
        return short


class RoleTable:
    """Gives roles codes and keeps the minimums of jobs; the code of a role that nobody uses is given away again."""

    def __init__(self) -> None:
        self._codes: RowTable[str] = RowTable()
        self._names: list[str] = []
        self._uses: list[int] = []
        self._minimums: dict[int, dict[int, int]] = {}  # row of a job -> code of a role -> minimum
        self._frozen: RoleMinimums | None = None

    def __len__(self) -> int:
        return len(self._codes)

    def acquire(self, role: str) -> int:
        """Return the code of a role and count one more user."""
        code = self._codes.get(role)
        if code is None:
            code = self._codes.add(role)
            if code == len(self._names):
                self._names.append("")
                self._uses.append(0)
            self._names[code] = role
        self._uses[code] += 1
        return code

    def release(self, code: int) -> None:
        """Count one user less."""
        self._uses[code] -= 1
        if not self._uses[code]:
            self._codes.remove(self._names[code])

    def set_minimums(self, job: int, minimums: Mapping[str, int]) -> None:
        """Set the minimums of a job's roles; none for a job that has no rule per role."""
        before = self._minimums.get(job, {})
        if {self._names[code]: minimum for code, minimum in before.items()} == minimums:
            return
        self._frozen = None
        now = {self.acquire(role): minimum for role, minimum in minimums.items()}
        for code in before:
            self.release(code)
        if now:
            self._minimums[job] = now
        else:
            del self._minimums[job]

    def names(self) -> tuple[str, ...]:
        """Return the roles by code; the name of a code that is not in use means nothing."""
        return tuple(self._names)

    def minimums(self) -> RoleMinimums:
        """Return the minimums of all jobs."""
        if self._frozen is None:
            rows = [(job, code, least) for job, roles in self._minimums.items() for code, least in roles.items()]
            table = np.array(rows, dtype=np.int64).reshape(-1, 3)
            self._frozen = RoleMinimums(table[:, 0].astype(np.intp), table[:, 1].copy(), table[:, 2].copy())
        return self._frozen
