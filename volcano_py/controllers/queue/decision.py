"""Decides about a queue: objects in, state and writes out.

A queue without a parent gets ``root``. A queue is closed together with its parent and opened together with it; an
annotation records that it was closed by its parent. ``root`` is always open. A queue is closed when none of its
PodGroups is left, except completed ones (in Volcano, these keep it Closing).
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from volcano_py.api import keys
from volcano_py.api.scheduling import Queue, QueueStatus
from volcano_py.controllers.queue import commands, states
from volcano_py.controllers.writes import ApplyStatus, Create, Patch, Write
from volcano_py.kube.resource import QUEUES
from volcano_py.model.decisions import RecordEvent

CLOSED_BY_PARENT: Final = "volcano.sh/closed-by-parent"  # annotation: "true" while a queue is closed with its parent
STATE_MANAGER: Final = "queue-controller"
"""The field manager as which Volcano applies the state, too; another owner would keep it from changing the state."""
_TRUE, _FALSE = "true", "false"

PHASES: Final = (
    keys.PHASE_PENDING,
    keys.PHASE_INQUEUE,
    keys.PHASE_RUNNING,
    keys.PHASE_UNKNOWN,
    keys.PHASE_COMPLETED,
)
"""The phases that are counted; each is a field of the status, in lower case."""


class CountedStatus(QueueStatus, frozen=True):
    """The status of a queue with the numbers of its PodGroups."""

    pending: int = 0
    inqueue: int = 0
    running: int = 0
    unknown: int = 0
    completed: int = 0


class CountedQueue(Queue, frozen=True):
    """A queue with the numbers of its PodGroups."""

    status: CountedStatus = CountedStatus()


class Verdict(NamedTuple):
    """The state of a queue, the writes that bring the object up to date, and what to tell about them."""

    state: str
    writes: tuple[Write, ...]
    events: tuple[RecordEvent, ...] = ()


def missing(name: str) -> Create:
    """Return the write that creates a required queue."""
    spec = {"weight": 1, "reclaimable": name != keys.ROOT_QUEUE}
    body = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": name}, "spec": spec}
    return Create(QUEUES, "", body)


def judge(
    queue: CountedQueue,
    was: str | None,
    parent: CountedQueue | None,
    counts: Mapping[str, int],
    action: str = "",
) -> Verdict:
    """Return the state of a queue, and the writes and events.

    ``was`` is its last known state, None for a new queue; ``action`` is that of a command that is not refused.
    """
    left = sum(count for phase, count in counts.items() if phase != keys.PHASE_COMPLETED)
    stored = queue.status.state
    by_parent = queue.metadata.annotations.get(CLOSED_BY_PARENT)
    mark, told = by_parent, action
    if queue.metadata.name == keys.ROOT_QUEUE:
        state = states.open_()
    else:
        state = states.sync(stored if was is None else was, stored, left > 0)
        if action == commands.CLOSE:
            state = states.close(state, left > 0)
        elif action == commands.OPEN:
            state = states.open_()
        shut = parent is not None and parent.status.state in states.SHUT
        if shut and state not in states.SHUT:
            state, mark, told = states.close(state, left > 0), _TRUE, commands.CLOSE
        elif by_parent == _TRUE and state in states.SHUT and _is_open(parent) and action != commands.CLOSE:
            state, mark, told = states.open_(), _FALSE, commands.OPEN
        elif action == commands.OPEN or (by_parent == _TRUE and (state == keys.QUEUE_OPEN or action == commands.CLOSE)):
            mark = _FALSE  # it was opened or closed on its own
    spec = _spec(queue, by_parent, mark)
    ordered = action in (commands.OPEN, commands.CLOSE)
    events = _events(queue, told, state, left, parent if told != action else None)
    # This order lets the next start repair what is missing if the process ends between two writes.
    if mark == _FALSE and state == keys.QUEUE_OPEN:
        return Verdict(state, (*_status(queue, state, counts, guarded=True, ordered=ordered), *spec), events)
    return Verdict(state, (*spec, *_status(queue, state, counts, guarded=not spec, ordered=ordered)), events)


def _events(
    queue: CountedQueue, action: str, state: str, left: int, parent: CountedQueue | None
) -> tuple[RecordEvent, ...]:
    """Return the event about an action: of a command, or because of the parent."""
    if action not in (commands.OPEN, commands.CLOSE):
        return ()
    text = f"queue {queue.metadata.name} is {state.lower()}"
    if state == keys.QUEUE_CLOSING:
        text += f": {left} PodGroups are left"
    if parent is not None:
        text += f", like its parent {parent.metadata.name}"
    return (event(queue, keys.EVENT_NORMAL, action, text),)


def event(queue: Queue, kind: str, reason: str, text: str) -> RecordEvent:
    """Return an event on a queue."""
    return RecordEvent(QUEUES.kind, "", queue.metadata.name, queue.metadata.uid, kind, reason, text)


def _is_open(parent: CountedQueue | None) -> bool:
    return parent is not None and parent.status.state in ("", keys.QUEUE_OPEN)


def _spec(queue: CountedQueue, by_parent: str | None, mark: str | None) -> list[Write]:
    body: dict[str, Any] = {}
    meta: dict[str, Any] = {"uid": queue.metadata.uid}
    if not queue.spec.parent and queue.metadata.name != keys.ROOT_QUEUE:
        body["spec"] = {"parent": keys.ROOT_QUEUE}
    if mark != by_parent:
        meta["annotations"] = {CLOSED_BY_PARENT: mark}
    elif not body:
        return []
    return [Patch(QUEUES, "", queue.metadata.name, {"metadata": meta, **body})]


def _status(queue: CountedQueue, state: str, counts: Mapping[str, int], *, guarded: bool, ordered: bool) -> list[Write]:
    name, uid = queue.metadata.name, queue.metadata.uid
    writes: list[Write] = []
    if ordered or state != queue.status.state:  # what a command asks for may be there only as far as is known here
        # The resourceVersion protects a state that another client changes, unless our own write has just changed it.
        version = {"resourceVersion": queue.metadata.resource_version} if guarded else {}
        writes.append(ApplyStatus(QUEUES, name, {"uid": uid, **version}, {"state": state}, STATE_MANAGER))
    changed = {
        phase.lower(): counts.get(phase, 0)
        for phase in PHASES
        if getattr(queue.status, phase.lower()) != counts.get(phase, 0)
    }
    if changed:
        body = {"metadata": {"uid": uid}, "status": changed}
        writes.append(Patch(QUEUES, "", name, body, subresource="status"))
    return writes
