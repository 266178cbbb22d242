"""The queues that change at present; for all others, the watch is known to be true, and no read is needed.

    replica A: a queue is to be closed ──▶ writes a note ──▶ waits for 0.5 s ──▶ admits the change
    replica B: a job names the queue   ──▶ has read the notes within the last 0.5 s?  no: reads them
                                       └─▶ no note names the queue: the watch is right
                                       └─▶ a note names it: reads the queue itself

When A admits the change, every replica has read the note, or has notes that are too old for it. Each replica measures
time with its own clock, from the end of its write or from the start of its read, so the clocks need not agree. Nobody
has to know how many replicas there are.

A queue counts as changing for three minutes after a replica has found its note: an API server gives up a write after
one minute at most, and a watch that has died is opened again within another one.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from volcano_py.admission.contract import CREATE, DELETE, UPDATE, Obj, Request
from volcano_py.admission.queue_notes import QueueNotes, read_note
from volcano_py.admission.reading import name_of, text
from volcano_py.admission.shared_reads import SharedReads
from volcano_py.api import keys
from volcano_py.runtime.clock import Clock

_VALID_S: Final = 0.5
"""For how long the notes that were read are believed, from the start of the read."""
_RENEWED_S: Final = 0.2  # of this age, they are read again before they are needed
_MARGIN_S: Final = 0.05
_CHANGING_S: Final = 180.0


def new_parent(request: Request) -> str:
    """Return the parent that a queue gets by this request, "" if it gets none that could be a leaf until now."""
    after, before = _parent(request.object), _parent(request.old)
    changed = request.operation == CREATE or after != before
    return after if changed and request.operation != DELETE and after != keys.ROOT_QUEUE else ""


def closes(request: Request) -> bool:
    """Say whether this request deletes a queue, or takes it out of the state Open."""
    if request.operation == DELETE:
        return True
    after = text(request.object, "status", "state")
    return request.operation == UPDATE and after != keys.QUEUE_OPEN and after != text(request.old, "status", "state")


class ChangingQueues:
    """What this replica knows of the queues that change.

    ``guarded`` says whether API servers ask the webhooks about every change of a queue; without that, no watch is
    believed.
    """

    def __init__(
        self, notes: QueueNotes, clock: Clock, guarded: Callable[[], bool], on_read: Callable[[], None] = lambda: None
    ) -> None:
        self._notes, self._clock, self._guarded, self._on_read = notes, clock, guarded, on_read
        self._reads = SharedReads(self._read)
        self._read_at = float("-inf")  # when the last read began
        self._texts: Mapping[str, str] = {}
        self._until: dict[str, float] = {}  # for how long a queue counts as changing
        self._told: dict[str, float] = {}  # when this replica ended to write a note that concerns a queue

    async def prepare(self) -> bool:
        """Make sure that there is a place for notes; return whether there is."""
        return await self._notes.prepare()

    async def children(self, parent: str) -> set[str]:
        """Return the queues that got this parent lately; every note that was written before is there."""
        notes = {queue: read_note(one) for queue, one in (await self._reads.get("")).items()}
        return {queue for queue, note in notes.items() if note is not None and parent in note.parents}

    def stable_at_once(self, queues: Iterable[str]) -> bool:
        """Say whether the watch is known to be right about the existence, the state and the children of these queues.

        False also means that the notes are too old to say: see :meth:`stable`.
        """
        if not self._guarded():
            return False
        now = self._clock.monotonic()
        age = now - self._read_at
        if _RENEWED_S < age <= _VALID_S:
            self._reads.begin("")
        return age <= _VALID_S and all(self._until.get(queue, now) <= now for queue in queues)

    async def stable(self, queues: Iterable[str]) -> bool:
        """Read the notes if they are too old, and say the same; raise ApiError if they cannot be read."""
        if self._guarded() and self._clock.monotonic() - self._read_at > _VALID_S:
            await self._reads.get("")
        return self.stable_at_once(queues)

    async def announce(self, request: Request) -> None:
        """Note the change of a queue that is about to be admitted; return when no replica believes its watch of it."""
        queue, parent, closing = request.name or name_of(request.object), new_parent(request), closes(request)
        concerned = [name for name, concerns in ((parent, bool(parent)), (queue, closing)) if name and concerns]
        if not queue or not concerned:
            return
        self._mark(concerned)
        await self._notes.add(queue, parent, closes=closing)
        now = self._clock.monotonic()
        self._mark(concerned)
        known = all(_VALID_S < now - self._told.get(name, now) < _CHANGING_S / 2 for name in concerned)
        self._told = {name: at for name, at in self._told.items() if now - at < _CHANGING_S}
        self._told.update(dict.fromkeys(concerned, now))
        if not known:
            await self._clock.sleep(_VALID_S + _MARGIN_S)

    def _mark(self, queues: Iterable[str]) -> None:
        self._until.update(dict.fromkeys(queues, self._clock.monotonic() + _CHANGING_S))

    async def _read(self, _: str) -> Mapping[str, str]:
        began = self._clock.monotonic()
        self._on_read()
        texts = await self._notes.read()
        for queue, one in texts.items():
            if one != self._texts.get(queue):
                note = read_note(one)
                self._mark([*(note.parents if note else ()), *([queue] if note is None or note.closes else ())])
        now = self._clock.monotonic()
        self._until = {queue: until for queue, until in self._until.items() if until > now}
        self._texts, self._read_at = texts, began
        return texts


def _parent(queue: Obj) -> str:
    return text(queue, "spec", "parent")
