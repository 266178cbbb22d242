"""The scheduling order: the next job is the first job of the first queue; both orders are asked again for every job.

If a plugin orders the namespaces of a queue, the next job is the first job of the first namespace.
"""

import heapq
from collections.abc import Iterator

import numpy as np

from volcano_py.framework.hooks.hooks import Hooks
from volcano_py.framework.hooks.ordering import JobSortKey, Orders, QueueLine
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Rows
from volcano_py.model.rejections import Reason

_Entry = tuple[JobSortKey, int]


class _Waiting:
    """The jobs of one queue in order: most are sorted once, and those given back are in a separate heap."""

    __slots__ = ("_first", "_returned")

    def __init__(self) -> None:
        self._first: list[_Entry] = []  # the next job is at the end; sorting once is cheaper than the steps of a heap
        self._returned: list[_Entry] = []

    def __bool__(self) -> bool:
        return bool(self._first or self._returned)

    def add(self, entry: _Entry) -> None:
        """Add a job before the iteration begins."""
        self._first.append(entry)

    def arrange(self) -> None:
        """Sort what has been added."""
        self._first.sort(reverse=True)

    def give_back(self, entry: _Entry) -> None:
        """Put a job back at its present place."""
        heapq.heappush(self._returned, entry)

    def pop(self) -> int:
        """Return the row of the first job and drop it."""
        if self._returned and (not self._first or self._returned[0] < self._first[-1]):
            return heapq.heappop(self._returned)[1]
        return self._first.pop()[1]

    def drop(self) -> list[int]:
        """Drop all jobs and return their rows, in no particular order."""
        rows = [row for _, row in (*self._first, *self._returned)]
        self._first.clear()
        self._returned.clear()
        return rows


class _ByNamespace:
    """The jobs of one queue by namespace, each in order; which namespace goes first is asked before every job."""

    __slots__ = ("_orders", "_queue", "_state", "_waiting")

    def __init__(self, state: State, orders: Orders, queue: QueueInfo) -> None:
        self._state = state
        self._orders = orders
        self._queue = queue
        self._waiting: dict[str, _Waiting] = {}

    def __bool__(self) -> bool:
        return any(self._waiting.values())

    def add(self, entry: _Entry) -> None:
        """Add a job before the iteration begins."""
        self._waiting.setdefault(self._namespace(entry), _Waiting()).add(entry)

    def arrange(self) -> None:
        """Sort what has been added."""
        for waiting in self._waiting.values():
            waiting.arrange()

    def give_back(self, entry: _Entry) -> None:
        """Put a job back at its present place."""
        self._waiting[self._namespace(entry)].give_back(entry)

    def pop(self) -> int:
        """Return the row of the first job of the first namespace and drop it."""
        names = sorted(name for name, waiting in self._waiting.items() if waiting)
        if len(names) == 1:
            return self._waiting[names[0]].pop()
        keys = self._orders.namespace_keys(self._queue, names)
        first = int(np.lexsort(keys[::-1])[0])  # stable, so the name decides at last
        return self._waiting[names[first]].pop()

    def drop(self) -> list[int]:
        """Drop all jobs and return their rows, in no particular order."""
        return [row for waiting in self._waiting.values() for row in waiting.drop()]

    def _namespace(self, entry: _Entry) -> str:
        return self._state.jobs.record(entry[1]).key.namespace


class SchedulingOrder:
    """Yields (queue, job row) until no queue has a job left. A job may be given back, to be yielded again."""

    def __init__(
        self,
        state: State,
        hooks: Hooks,
        job_rows: Rows,
        *,
        skip_overused: bool,
        behind: frozenset[int] = frozenset(),
    ) -> None:
        """Sort the jobs. ``skip_overused`` leaves out overused queues; actions that give out resources set it.

        Jobs ``behind`` (rows) come after all others of their queue.
        """
        self._state = state
        self._hooks = hooks
        self._skip_overused = skip_overused
        self._behind = behind
        self._jobs: dict[str, _Waiting | _ByNamespace] = {}
        # A Python loop over the jobs: each is added to its queue.
        for key, row in zip(self._keys(job_rows), job_rows.tolist(), strict=True):
            queue = state.jobs.record(row).queue
            if queue in state.queues:
                waiting = self._jobs.get(queue)
                if waiting is None:
                    by_namespace = hooks.orders.by_namespace
                    waiting = self._jobs[queue] = (
                        _ByNamespace(state, hooks.orders, state.queues[queue]) if by_namespace else _Waiting()
                    )
                waiting.add((key, row))
        for waiting in self._jobs.values():
            waiting.arrange()
        self._live = QueueLine(hooks.orders, [state.queues[name] for name in sorted(self._jobs)])

    def _keys(self, job_rows: Rows) -> list[JobSortKey]:
        keys = self._hooks.orders.job_sort_keys(job_rows)
        if self._behind:
            keys = [(row in self._behind, *key) for key, row in zip(keys, job_rows.tolist(), strict=True)]
        return keys

    def __iter__(self) -> Iterator[tuple[QueueInfo, int]]:
        while self._live:
            queue = self._live.first()
            waiting = self._jobs[queue.name]
            if not waiting or (self._skip_overused and self._is_overused(queue)):
                self._live.remove(queue)
                continue
            yield queue, waiting.pop()

    def _is_overused(self, queue: QueueInfo) -> bool:
        if not self._hooks.overused(queue):
            return False
        self._state.outcome.queue_limits[queue.name] = self._hooks.why_overused(queue)
        return True

    def give_back(self, queue: QueueInfo, job_row: int) -> None:
        """Put a job back at its present place in the order, to be yielded again."""
        key = self._keys(np.array([job_row]))[0]
        self._jobs[queue.name].give_back((key, job_row))

    def stop_behind(self, queue: QueueInfo, head: JobInfo, action: str) -> tuple[list[int], Reason] | None:
        """Stop a queue that serves strictly in order (dequeueStrategy fifo) because its first job got nothing.

        Return the rows of the jobs that are not yielded any more, and the reason; None for any other queue.
        """
        if not queue.record.fifo:
            return None
        text = f'queue "{queue.name}" serves in order (dequeueStrategy fifo), and PodGroup {head.key} is first'
        return self._jobs[queue.name].drop(), Reason(action, "behind-head", text)
