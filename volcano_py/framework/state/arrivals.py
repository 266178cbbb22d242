"""Jobs whose tasks keep coming: their users are told why they wait when the tasks have stopped, or after a while.

What is still arriving is no verdict: "1/1 tasks in gang unschedulable" is wrong a moment later. Only conditions and
events wait; placement, phases and counts never do.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from volcano_py.framework.state.memory import Arrival
from volcano_py.framework.state.state import State
from volcano_py.model.objects import JobKey
from volcano_py.model.statuses import TaskStatus, members

QUIET_S: Final = 0.5
"""When no task has come for so long, the job's users are told."""
LIMIT_S: Final = 2.0
"""They are told after so long even if tasks still come."""

_MARGIN_S: Final = 0.01  # the clock that wakes a cycle is not the one that the cycle reads
_WAITS: Final = members((TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED))


class Arrivals:
    """What has come for the jobs that wait, since the last cycle and before; made when the session opens.

    Pods of a namespace that name no PodGroup count as one job without a name.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        memory = state.memory
        self.seen = int(state.tasks.arrived.max(initial=memory.seen or 0))
        """How many tasks have come so far, as the store counts them."""
        found = self._still_waiting(memory.arrivals)
        came = {} if memory.seen is None else self._waiting_since(memory.seen + 1)
        for key, first in came.items():
            before = found.get(key)
            found[key] = Arrival(first, state.now, state.now) if before is None else before._replace(last=state.now)
        self._coming = {key: arrival for key, arrival in found.items() if self._tells_in(arrival) > 0}

    def holds(self, namespace: str, group: str | None) -> bool:
        """Say whether users are not told yet why the tasks of a group wait."""
        return bool(self._coming) and (namespace, group or "") in self._coming

    def at_close(self) -> tuple[dict[JobKey, Arrival], float | None]:
        """Return what the next cycle must know of those that still wait, and in how many seconds it must be.

        That is when the first of them is to be told; None if there is none.
        """
        if not self._coming:
            return {}, None
        known = self._still_waiting(self._coming)
        return known, min(map(self._tells_in, known.values())) + _MARGIN_S if known else None

    def _still_waiting(self, arrivals: Mapping[JobKey, Arrival]) -> dict[JobKey, Arrival]:
        """Return those that have waiting tasks, in order; of the others there is nothing to tell."""
        if not arrivals:
            return {}
        waiting = self._waiting_since(min(arrival.first for arrival in arrivals.values()))
        return {key: arrival for key, arrival in sorted(arrivals.items()) if key in waiting}

    def _tells_in(self, arrival: Arrival) -> float:
        """Return how many seconds are left; none if the clock has been set back."""
        now = self._state.now
        return min(arrival.last + QUIET_S, arrival.since + LIMIT_S) - now if arrival.last <= now else 0.0

    def _waiting_since(self, number: int) -> dict[JobKey, int]:
        """Return the jobs of the waiting tasks that came as this one or later, each with the first of its tasks."""
        tasks = self._state.tasks
        rows = np.flatnonzero(_WAITS[tasks.status] & (tasks.arrived >= number))
        rows = rows[np.argsort(tasks.arrived[rows])]
        jobs, first = np.unique(tasks.job[rows], return_index=True)
        firsts = rows[first[jobs >= 0]].tolist()
        # Python loops over the jobs of which tasks have come a moment ago, and over pods that name no PodGroup.
        found: dict[JobKey, int] = {}
        for row in (*firsts, *rows[tasks.job[rows] < 0].tolist()):
            record = tasks.record(row)
            if not record.foreign:
                found.setdefault(JobKey(record.namespace, record.job or ""), int(tasks.arrived[row]))
        return found
