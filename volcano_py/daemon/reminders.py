"""Repeats the event ``FailedScheduling`` of pods that wait for long, because the API server keeps events for one hour.

``kubectl describe pod`` shows events, and no messages of conditions. Without this, it would not say why a pod waits
that has waited all night for the same reason. Each waiting pod is looked at once in 45 minutes, some every ten seconds.
If more pods wait than may be told about in that time, a round takes longer, and some pods show no event for a while.
"""

from collections.abc import Callable
from typing import Final

from volcano_py.daemon import announcements
from volcano_py.model.decisions import RecordEvent
from volcano_py.runtime.clock import Clock
from volcano_py.snapshot.store import ClusterStore

ROUND_S: Final = 2700.0
_EVERY_S: Final = 10.0
_AT_ONCE: Final = 100
"""The most events of one look: a tenth of what may be written in that time."""
_ROWS_AT_ONCE: Final = 10_000
"""The most pods of one look, so that it does not hold up the event loop."""


class Reminders:
    """Says again why pods wait, while this scheduler leads."""

    def __init__(self, store: ClusterStore, record: Callable[[RecordEvent], None], *, clock: Clock) -> None:
        self._store = store
        self._record = record
        self._clock = clock
        self._begun = clock.monotonic()
        self._next = 0  # the row of the store at which the next look begins

    async def run(self) -> None:
        """Look at some of the waiting pods every ten seconds, until cancelled."""
        while True:
            await self._clock.sleep(_EVERY_S)
            for event in self.due():
                self._record(event)

    def due(self) -> list[RecordEvent]:
        """Return the events of the pods whose turn has come, among those that have waited for a whole round."""
        height, now = len(self._store.task_rows), self._clock.monotonic()
        if self._next >= height and now - self._begun >= ROUND_S:
            self._next, self._begun = 0, now
        turn = min(1.0, (now - self._begun) / ROUND_S)
        before = self._clock.now().timestamp() - ROUND_S
        end = min(int(height * turn), self._next + _ROWS_AT_ONCE)
        found: list[RecordEvent] = []
        while self._next < end and len(found) < _AT_ONCE:
            record = self._store.waiting(self._next)
            self._next += 1
            if record is not None and record.condition and record.creation <= before:
                found.append(announcements.waiting(record.ref, record.condition))
        return found
