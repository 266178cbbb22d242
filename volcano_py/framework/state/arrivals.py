"""Jobs whose tasks keep arriving: users are told why such a job waits once no more tasks arrive, or after a while.

A text about a job that is still arriving is soon wrong: "1/1 tasks in gang unschedulable" does not hold a moment later.
Only conditions and events are delayed; placement, phases and counts never are.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from volcano_py.framework.state.memory import Arrival
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Rows
from volcano_py.model.objects import JobKey
from volcano_py.model.statuses import TaskStatus, members

QUIET_S: Final = 0.5
"""Users are told once no task of the job has arrived for this long."""
LIMIT_S: Final = 2.0
"""Users are told after this long even if tasks still arrive."""

_MARGIN_S: Final = 0.01  # the clock that wakes a cycle differs from the one that the cycle reads
_WAITS: Final = members((TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED))


class Arrivals:
    """The waiting jobs whose tasks are still arriving; made when the session opens.

    Pods of a namespace that name no PodGroup count as one job without a name.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        memory = state.memory
        self.seen = int(state.tasks.arrived.max(initial=memory.seen or 0))
        """How many tasks have arrived so far, as the store counts them."""
        found = self._still_waiting(memory.arrivals)
        arrived = {} if memory.seen is None else self._waiting_since(memory.seen + 1)
        for key, first in arrived.items():
            before = found.get(key)
            found[key] = Arrival(first, state.now, state.now) if before is None else before._replace(last=state.now)
        self._arriving = {key: arrival for key, arrival in found.items() if self._remaining(arrival) > 0}

    def holds(self, namespace: str, group: str | None) -> bool:
        """Say whether users are not told yet why the tasks of a group wait."""
        return bool(self._arriving) and (namespace, group or "") in self._arriving

    def rows(self) -> Rows:
        """Return the rows of waiting tasks of jobs that are still arriving, and perhaps of a few others."""
        if not self._arriving:
            return np.zeros(0, dtype=np.intp)
        tasks, first = self._state.tasks, min(arrival.first for arrival in self._arriving.values())
        return np.flatnonzero(_WAITS[tasks.status] & (tasks.arrived >= first))

    def at_close(self) -> tuple[dict[JobKey, Arrival], float | None]:
        """Return the arrivals that the next cycle must know, and the seconds until users of the first job are told.

        The next cycle must run by then; None if no job is arriving.
        """
        if not self._arriving:
            return {}, None
        known = self._still_waiting(self._arriving)
        return known, min(map(self._remaining, known.values())) + _MARGIN_S if known else None

    def _still_waiting(self, arrivals: Mapping[JobKey, Arrival]) -> dict[JobKey, Arrival]:
        """Return the arrivals of jobs that have waiting tasks, in order; about others there is nothing to tell."""
        if not arrivals:
            return {}
        waiting = self._waiting_since(min(arrival.first for arrival in arrivals.values()))
        return {key: arrival for key, arrival in sorted(arrivals.items()) if key in waiting}

    def _remaining(self, arrival: Arrival) -> float:
        """Return the seconds until users are told."""
        return min(arrival.last + QUIET_S, arrival.since + LIMIT_S) - self._state.now

    def _waiting_since(self, number: int) -> dict[JobKey, int]:
        """Return the jobs with waiting tasks that arrived with this number or later, each with its first number."""
        tasks = self._state.tasks
        rows = np.flatnonzero(_WAITS[tasks.status] & (tasks.arrived >= number))
        rows = rows[np.argsort(tasks.arrived[rows])]
        jobs, first = np.unique(tasks.job[rows], return_index=True)
        firsts = rows[first[jobs >= 0]].tolist()
        # Python loops over the jobs whose tasks have just arrived, and over pods that name no PodGroup.
        found: dict[JobKey, int] = {}
        for row in (*firsts, *rows[tasks.job[rows] < 0].tolist()):
            record = tasks.record(row)
            if not record.foreign:
                found.setdefault(JobKey(record.namespace, record.job or ""), int(tasks.arrived[row]))
        return found
