"""Excuses for refused writes: a queue or priority class has appeared or changed, so the next attempt may succeed.

The API server and the webhooks refuse objects that name a queue or priority class that does not exist, or a queue that
is not open. The controllers back off after that. A user who then creates the queue should not wait for the back-off.
"""

from collections.abc import Callable

from volcano_py.api.scheduling import PriorityClass, Queue
from volcano_py.controllers.view import View


class Excuses:
    """Tells controllers when writes that were refused may succeed now."""

    def __init__(self, queues: View[Queue], classes: View[PriorityClass]) -> None:
        self._queues = queues
        self._classes = classes
        self._callbacks: list[Callable[[], None]] = []

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call ``callback``, such as `WorkQueue.excuse`, for every excuse."""
        if not self._callbacks:
            self._queues.subscribe(self._queue_changed)
            self._classes.subscribe(self._class_changed)
        self._callbacks.append(callback)

    def _queue_changed(self, _: str, before: Queue | None, after: Queue | None) -> None:
        """Excuse, unless only numbers in the status of a queue have changed, which happens all the time."""
        if after is not None and (before is None or _rules(before) != _rules(after)):
            self._excuse()

    def _class_changed(self, _: str, before: PriorityClass | None, after: PriorityClass | None) -> None:
        if after is not None and (before is None or before.value != after.value):
            self._excuse()

    def _excuse(self) -> None:
        for callback in self._callbacks:
            callback()


def _rules(queue: Queue) -> tuple[object, ...]:
    """Return what decides whether a queue takes jobs."""
    return queue.metadata.uid, queue.metadata.deletion_timestamp, queue.spec, queue.status.state
