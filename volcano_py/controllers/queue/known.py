"""What the controller knows of each queue: its newest state, from the watch or as the answer to its own write.

Of two states of a queue, the one with the higher resourceVersion counts. So no decision rests on a state that is older
than the controller's own last write, and what others write later still counts.
"""

from dataclasses import dataclass

from volcano_py.controllers.answers import read_answer
from volcano_py.controllers.queue.decision import CountedQueue
from volcano_py.controllers.versions import is_older


@dataclass(slots=True)
class _Known:
    newest: CountedQueue
    decided: str | None = None
    """The state that was decided and stored last; None for a new queue."""
    sent: str | None = None
    """The state that is being stored; it may be there although no answer has come."""


class KnownQueues:
    """All queues that the watch shows, in the newest state that is known."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}

    def get(self, name: str) -> CountedQueue | None:
        """Return the newest state of a queue."""
        known = self._known.get(name)
        return None if known is None else known.newest

    def show(self, name: str, queue: CountedQueue) -> None:
        """Take what the watch shows."""
        known = self._known.get(name)
        if known is None or known.newest.metadata.uid != queue.metadata.uid:
            self._known[name] = _Known(queue)
        else:
            _take(known, queue)

    def gone(self, name: str) -> bool:
        """Forget a queue that is gone; return whether its state was ever stored."""
        known = self._known.pop(name, None)
        return known is not None and known.decided is not None

    def answered(self, name: str, answer: bytes | None) -> None:
        """Take the answer to a write of our own, unless the watch has shown meanwhile that the queue is gone."""
        known = self._known.get(name)
        if known is None or not answer:
            return

        def take(queue: CountedQueue) -> None:
            if queue.metadata.uid == known.newest.metadata.uid:
                _take(known, queue)

        read_answer(answer, CountedQueue, take)

    def last_state(self, name: str) -> str | None:
        """Return the last known state of a queue, None for a new one.

        A stored state that is what was sent last is our own, also if the answer was lost.
        """
        known = self._known.get(name)
        if known is None:
            return None
        return known.sent if known.sent == known.newest.status.state else known.decided

    def sending(self, name: str, state: str) -> None:
        """Note that a state is about to be stored."""
        if name in self._known:
            self._known[name].sent = state

    def stored(self, name: str, state: str) -> None:
        """Note that a state is stored."""
        if name in self._known:
            self._known[name].decided = state


def _take(known: _Known, queue: CountedQueue) -> None:
    if not is_older(queue.metadata.resource_version, known.newest.metadata.resource_version):
        known.newest = queue
