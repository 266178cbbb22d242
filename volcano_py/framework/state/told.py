"""A cache of what users were told about waiting jobs: the next cycle looks only at jobs about which more may be said.

A deep queue waits for hours, and nearly nothing that users can read about it changes from cycle to cycle. So the end of
a cycle compares columns with those of the last cycle: the state of each job, its counts, and a code for the kind of its
reason. Only a job that differs gets new texts. (`cache.write_lost` makes all jobs differ: what was decided about them
may not have been written.)

What we wrote comes back through the watch. A pod or PodGroup that now shows what we decided does not differ for it
(`framework.state.texts`).

A code stands for a reason without its numbers. When only numbers change ("0/5 nodes" becomes "0/6 nodes"), the texts of
a job are made again once a minute. Otherwise one node more would rewrite the texts of a hundred thousand pods.

A new kind of reason is told at once. But where a queue is always at its limit and the nodes are always full, the jobs
behind wait for the one and for the other in turn, and each change would be written to all of their pods. So a job whose
reason has changed its kind three times within a few minutes is told the next one when its texts are due. Until then
another reason is no difference.

A cycle without this cache looks at all jobs. It decides and remembers the same.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from volcano_py.framework.state.report import JobReport
from volcano_py.model.arrays import Bools, Floats, Ints
from volcano_py.model.objects import JobKey
from volcano_py.model.statuses import N_STATUSES

_MOST_CODES = 100_000


class ReasonCodes:
    """Numbers for reasons, the same in all cycles."""

    def __init__(self) -> None:
        self._codes: dict[Hashable, int] = {}

    def of(self, *reason: Hashable) -> int:
        """Return the number of a reason, 1 or higher."""
        return self._codes.setdefault(reason, len(self._codes) + 1)

    @property
    def full(self) -> bool:
        """Whether there are so many that the next cycle must start with none."""
        return len(self._codes) > _MOST_CODES


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """The state of every job row when a cycle ended."""

    policy: object = None
    """The policy of that cycle; another one may have other reasons."""
    versions: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    counts: Floats = field(default_factory=lambda: np.zeros((N_STATUSES, 0)))
    phases: NDArray[np.int8] = field(default_factory=lambda: np.zeros(0, dtype=np.int8))
    leaving: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """How many tasks of each job were on a node that they were leaving, (n_jobs,)."""
    reasons: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Codes of what holds for whole jobs, (n_jobs,)."""
    of_tasks: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Codes of what holds for pending tasks, (n_tasks,)."""
    unsettled: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))
    """Jobs whose reasons no code stands for; the next cycle must look at them again."""
    reports: dict[JobKey, JobReport] = field(default_factory=dict)
    """What the report of the cycle said of waiting jobs."""
    codes: ReasonCodes = field(default_factory=ReasonCodes)
