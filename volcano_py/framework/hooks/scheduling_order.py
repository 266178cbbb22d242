"""The scheduling order: the next job is the first job of the first queue; both orders are asked again for every job.

If a plugin orders the namespaces of a queue, the next job is the first job of the first namespace.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np

from volcano_py.framework.hooks.hooks import Hooks
from volcano_py.framework.hooks.ordering import JobSortKey, Orders, QueueLine
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.rejections import Reason

_Entry = tuple[JobSortKey, int]
_Keys = Sequence[Floats | Ints | Bools]


class Futile(Protocol):
    """Jobs that would get nothing if it was their turn now."""

    def known(self) -> Bools:
        """Return the jobs of which it is known by now that they are futile, (n_jobs,)."""

    def includes(self, row: int) -> bool:
        """Say whether a job is futile; if it is, this is known from then on."""


class _Waiting:
    """The jobs of one queue in order. Those given back are in a heap of their own."""

    __slots__ = ("_keys", "_next", "_returned", "_rows")

    def __init__(self, rows: Rows, keys: _Keys) -> None:
        """Take the rows of the jobs in order (n,), and their keys, (n,) each."""
        self._rows = rows
        self._keys = keys
        self._next = 0
        self._returned: list[_Entry] = []

    def __bool__(self) -> bool:
        return self._next < len(self._rows) or bool(self._returned)

    def give_back(self, entry: _Entry) -> None:
        """Put a job back at its present place."""
        heapq.heappush(self._returned, entry)

    def pop(self) -> int:
        """Return the row of the first job and drop it."""
        if self.goes_on():
            return heapq.heappop(self._returned)[1]
        self._next += 1
        return int(self._rows[self._next - 1])

    def goes_on(self) -> bool:
        """Say whether the first job is one that has been given back."""
        if not self._returned:
            return False
        place = self._next
        return place >= len(self._rows) or self._returned[0][0] < tuple([key.item(place) for key in self._keys])

    def following(self, most: int) -> Rows:
        """Return the rows of the next jobs that have had no turn yet, in order."""
        return self._rows[self._next : self._next + most]

    def keep(self, jobs: Bools) -> None:
        """Drop the jobs that have had no turn yet, except these, mask (n_jobs,)."""
        kept = jobs[self._rows]
        kept[: self._next] = False
        self._rows = self._rows[kept]
        self._keys = [key[kept] for key in self._keys]
        self._next = 0

    def skip(self, jobs: Bools) -> None:
        """Drop the first jobs as long as they are among these, mask (n_jobs,), and have had no turn yet."""
        if not self._returned:
            if self._next < len(self._rows) and not jobs[self._rows[self._next]]:
                return
            wanted = np.flatnonzero(~jobs[self._rows[self._next :]])
            self._next = self._next + int(wanted[0]) if len(wanted) else len(self._rows)
        # A Python loop up to the job that was given back.
        while self._next < len(self._rows) and not self.goes_on() and jobs[self._rows[self._next]]:
            self._next += 1

    def first(self) -> int:
        """Return the row of the first job."""
        return self._returned[0][1] if self.goes_on() else int(self._rows[self._next])

    def rest(self) -> Rows:
        """Return the rows of the jobs that have had no turn yet, in order."""
        return self._rows[self._next :]

    def drop(self) -> list[int]:
        """Drop all jobs and return their rows, in no particular order."""
        rows = [*self._rows[self._next :].tolist(), *(row for _, row in self._returned)]
        self._next = len(self._rows)
        self._returned.clear()
        return rows


class _ByNamespace:
    """The jobs of one queue by namespace, each in order; which namespace goes first is asked before every job."""

    __slots__ = ("_orders", "_queue", "_state", "_waiting")

    def __init__(self, state: State, orders: Orders, queue: QueueInfo, rows: Rows, keys: _Keys) -> None:
        self._state = state
        self._orders = orders
        self._queue = queue
        places: dict[str, list[int]] = {}
        for place, row in enumerate(rows.tolist()):  # a Python loop over the jobs of the queue
            places.setdefault(self._namespace(row), []).append(place)
        self._waiting = {name: _Waiting(rows[mine], [key[mine] for key in keys]) for name, mine in places.items()}

    def __bool__(self) -> bool:
        return any(self._waiting.values())

    def give_back(self, entry: _Entry) -> None:
        """Put a job back at its present place."""
        self._waiting[self._namespace(entry[1])].give_back(entry)

    def pop(self) -> int:
        """Return the row of the first job of the first namespace and drop it."""
        return self._waiting[self._first_namespace()].pop()

    def goes_on(self) -> bool:
        """Say whether the first job of the first namespace is one that has been given back."""
        return self._waiting[self._first_namespace()].goes_on()

    def first(self) -> int:
        """Return the row of the first job of the first namespace."""
        return self._waiting[self._first_namespace()].first()

    def _first_namespace(self) -> str:
        names = sorted(name for name, waiting in self._waiting.items() if waiting)
        if len(names) == 1:
            return names[0]
        keys = self._orders.namespace_keys(self._queue, names)
        return names[int(np.lexsort(keys[::-1])[0])]  # stable, so the name decides at last

    def following(self, most: int) -> Rows:
        """Return the rows of jobs that have had no turn yet, of each namespace the first ones."""
        return np.concatenate([waiting.following(most) for waiting in self._waiting.values()])

    def keep(self, jobs: Bools) -> None:
        """Drop the jobs that have had no turn yet, except these, mask (n_jobs,)."""
        for waiting in self._waiting.values():
            waiting.keep(jobs)

    def skip(self, jobs: Bools) -> None:
        """Drop the first jobs as long as they are among these, mask (n_jobs,), and have had no turn yet."""
        while self:
            waiting = self._waiting[self._first_namespace()]
            waiting.skip(jobs)
            if waiting:
                return

    def rest(self) -> Rows:
        """Return the rows of all jobs, in order, and drop them."""
        rows = []
        while self:
            rows.append(self.pop())
        return np.array(rows, dtype=np.intp)

    def drop(self) -> list[int]:
        """Drop all jobs and return their rows, in no particular order."""
        return [row for waiting in self._waiting.values() for row in waiting.drop()]

    def _namespace(self, row: int) -> str:
        return self._state.jobs.record(row).key.namespace


class SchedulingOrder:
    """Yields (queue, job row) until no queue has a job left. A job may be given back, to be yielded again."""

    def __init__(
        self,
        state: State,
        hooks: Hooks,
        job_rows: Rows,
        *,
        skip_overused: bool,
        futile: Futile | None = None,
    ) -> None:
        """Sort the jobs. ``skip_overused`` leaves out overused queues; actions that give out resources set it.

        Jobs that are ``futile`` when it is their turn are left out.
        """
        self._state = state
        self._futile = futile
        self._hooks = hooks
        self._skip_overused = skip_overused
        queue_of_job = state.queue_of_job
        job_rows = job_rows[queue_of_job[job_rows] >= 0]
        keys, queue_rows = hooks.orders.job_keys(job_rows), queue_of_job[job_rows]
        order = np.lexsort((*reversed(keys), queue_rows))
        rows, keys, queue_rows = job_rows[order], [key[order] for key in keys], queue_rows[order]
        infos = list(state.queues.values())
        firsts = np.flatnonzero(np.diff(queue_rows, prepend=-1)).tolist()
        self._jobs: dict[str, _Waiting | _ByNamespace] = {}
        # A Python loop over the queues that have jobs.
        for first, end in zip(firsts, [*firsts, len(rows)][1:], strict=True):
            queue, mine, of_mine = infos[int(queue_rows[first])], rows[first:end], [key[first:end] for key in keys]
            self._jobs[queue.name] = (
                _ByNamespace(state, hooks.orders, queue, mine, of_mine)
                if hooks.orders.by_namespace
                else _Waiting(mine, of_mine)
            )
        self._live = QueueLine(hooks.orders, [state.queues[name] for name in self._jobs])

    def __iter__(self) -> Iterator[tuple[QueueInfo, int]]:
        while self._live:
            queue = self._live.first()
            waiting = self._jobs[queue.name]
            if not waiting or (self._skip_overused and _is_overused(self._state, self._hooks, queue)):
                self._live.remove(queue)
                continue
            if self._futile is not None:
                _skip(waiting, self._futile)
            if waiting:
                yield queue, waiting.pop()
            else:
                self._live.remove(queue)

    def by_queue(self) -> Iterator[tuple[QueueInfo, Rows]]:
        """Yield the queues in their present order, each with the rows of its jobs, in order."""
        while self._live:
            queue = self._live.first()
            self._live.remove(queue)
            yield queue, self._jobs[queue.name].rest()

    def give_back(self, queue: QueueInfo, job_row: int) -> None:
        """Put a job back at its present place in the order, to be yielded again."""
        key = tuple([key.item(0) for key in self._hooks.orders.job_keys(np.array([job_row]))])
        self._jobs[queue.name].give_back((key, job_row))

    def following(self, queue: QueueInfo, most: int) -> Rows:
        """Return the rows of the jobs of a queue that come next, if nothing changes."""
        return self._jobs[queue.name].following(most)

    def keep(self, jobs: Bools) -> None:
        """Drop all jobs that have had no turn yet, except these, mask (n_jobs,)."""
        live = np.zeros(len(self._state.queues), dtype=bool)
        for name, waiting in self._jobs.items():
            waiting.keep(jobs)
            live[self._state.queues[name].row] = bool(waiting)
        self._live.keep(live)

    def stop_behind(self, queue: QueueInfo, head: JobInfo, action: str) -> tuple[list[int], Reason] | None:
        """Stop a queue that serves strictly in order (dequeueStrategy fifo) because its first job got nothing.

        Return the rows of the jobs that are not yielded any more, and the reason; None for any other queue.
        """
        if not queue.record.fifo:
            return None
        text = f'queue "{queue.name}" serves in order (dequeueStrategy fifo), and PodGroup {head.key} is first'
        return self._jobs[queue.name].drop(), Reason(action, "behind-head", text)


def _skip(waiting: _Waiting | _ByNamespace, futile: Futile) -> None:
    """Drop the first jobs as long as they are futile now."""
    while waiting:
        waiting.skip(futile.known())
        if not waiting or waiting.goes_on() or not futile.includes(waiting.first()):
            return


def note_overused(state: State, hooks: Hooks, job_rows: Rows) -> None:
    """Record which queues of these jobs are overused: what is left of a scheduling order if all jobs are futile."""
    infos = list(state.queues.values())
    queues = state.queue_of_job[job_rows]
    # A Python loop over the queues of these jobs.
    for row in np.flatnonzero(np.bincount(queues[queues >= 0], minlength=1)).tolist():
        _is_overused(state, hooks, infos[row])


def _is_overused(state: State, hooks: Hooks, queue: QueueInfo) -> bool:
    """Say whether a queue is overused; if it is, that is the reason of its jobs."""
    if not hooks.overused(queue):
        return False
    state.outcome.queue_limits[queue.name] = hooks.why_overused(queue)
    return True
