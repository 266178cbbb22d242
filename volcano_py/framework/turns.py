"""Whose turn it is: queues in their order, and in each queue its jobs in theirs, asked anew after every turn."""

import heapq
from collections.abc import Iterator

import numpy as np

from volcano_py.framework.info import QueueInfo
from volcano_py.framework.ordering import JobSortKey, first_queue, job_sort_keys
from volcano_py.framework.session import Session
from volcano_py.model.rejections import Reason
from volcano_py.snapshot.columns import Rows


class QueueTurns:
    """Yields (queue, job row) until no queue has a job left. A job may be given back for another turn."""

    def __init__(self, ssn: Session, job_rows: Rows, *, skip_overused: bool) -> None:
        """Lay out the turns; a queue that has had enough is left out only where resources are given away."""
        self._ssn = ssn
        self._skip_overused = skip_overused
        self._heaps: dict[str, list[tuple[JobSortKey, int]]] = {}
        # A Python loop over the jobs: each gets its place in its queue.
        for key, row in zip(job_sort_keys(ssn, job_rows), job_rows.tolist(), strict=True):
            queue = ssn.jobs.record(row).queue
            if queue in ssn.queues:
                self._heaps.setdefault(queue, []).append((key, row))
        for heap in self._heaps.values():
            heapq.heapify(heap)
        self._live = [ssn.queues[name] for name in sorted(self._heaps)]

    def __iter__(self) -> Iterator[tuple[QueueInfo, int]]:
        while self._live:
            queue = first_queue(self._ssn, self._live)
            heap = self._heaps[queue.name]
            if not heap or (self._skip_overused and self._has_enough(queue)):
                self._live.remove(queue)
                continue
            yield queue, heapq.heappop(heap)[1]

    def _has_enough(self, queue: QueueInfo) -> bool:
        if not self._ssn.overused(queue):
            return False
        text = f'queue "{queue.name}" holds all that it deserves now: its other tasks wait until it deserves more'
        self._ssn.queue_limits[queue.name] = Reason("allocate", "queue-overused", text)
        return True

    def give_back(self, queue: QueueInfo, job_row: int) -> None:
        """Let a job have another turn, at its place in the order as it is now."""
        key = job_sort_keys(self._ssn, np.array([job_row]))[0]
        heapq.heappush(self._heaps[queue.name], (key, job_row))
