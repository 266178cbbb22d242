"""Checks queues: their state, their place in the tree, their amounts, and fields that mean something else here."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from volcano_py.admission.contract import UPDATE, Options, Refusal, Request
from volcano_py.admission.queues import against_ancestors, against_children, validate
from volcano_py.api import keys
from volcano_py.migration.findings import Finding, Group, Obj, Ref, mapping, sequence, shortened, text
from volcano_py.migration.relatives import Queues

_ORDINARY: Final = frozenset({keys.QUEUE_OPEN, keys.QUEUE_CLOSED, keys.QUEUE_CLOSING})
_COMPLETED: Final = "Completed"


def judge_queue(
    ref: Ref, queue: Obj, queues: Queues, groups: Mapping[str, int], *, stateless: bool = False
) -> Iterator[Finding]:
    """Yield what differs for a queue; ``groups`` has its PodGroups by phase; ``stateless`` if no queue has a state."""
    if not stateless:
        yield from _state(ref, queue, groups)
    yield from _place(ref, queue, queues)
    yield from _amounts(ref, queue, queues)
    if text(queue, "spec", "dequeueStrategy") == "fifo":
        what = (
            "dequeueStrategy fifo works here: a first job without room blocks the others; in Volcano it has no effect"
        )
        yield Finding(Group.DIFFERS, "queue-fifo", ref, what, "write traverse to keep what Volcano does")
    if sequence(queue, "spec", "extendClusters"):
        what = "extendClusters forwards jobs to other clusters, which nothing here does"
        yield Finding(Group.MISSING, "queue-clusters", ref, what, "keep Volcano for this queue")


def _state(ref: Ref, queue: Obj, groups: Mapping[str, int]) -> Iterator[Finding]:
    state = text(queue, "status", "state")
    if not state:
        what = "it has no state: here it is open; Volcano refuses its jobs"
        yield Finding(Group.DIFFERS, "queue-state", ref, what, "close it if nobody is to use it")
    elif state == keys.QUEUE_CLOSING and groups and set(groups) == {_COMPLETED}:
        what = (
            f"it is Closing with {groups[_COMPLETED]} completed PodGroups: here it becomes Closed, in Volcano it stays"
        )
        yield Finding(Group.DIFFERS, "queue-state", ref, what, "open it first if it shall not be closed")
    elif state not in _ORDINARY:
        what = f"its state is {state}"
        yield Finding(Group.DIFFERS, "queue-state", ref, what, "open or close it: vcctl queue operate")


def _place(ref: Ref, queue: Obj, queues: Queues) -> Iterator[Finding]:
    parent = text(queue, "spec", "parent")
    if parent and parent != keys.ROOT_QUEUE and queues.queue(parent) is None:
        what = f"its parent {parent} does not exist: here only its own jobs wait; with capacity in Volcano, all jobs do"
        yield Finding(Group.DIFFERS, "queue-parent", ref, what, f"create queue {parent}, or give it another parent")
    circle = _circle(ref.name, queues)
    if circle and ref.name == min(circle):
        what = f"its parents form a circle: {', '.join(circle)}; their jobs wait here, in Volcano nothing is scheduled"
        yield Finding(Group.DIFFERS, "queue-circle", ref, what, "give one of them another parent")


def _circle(name: str, queues: Queues) -> list[str]:
    """Return the circle of parents that a queue belongs to, empty if there is none."""
    seen = [name]
    while True:
        above = queues.queue(seen[-1])
        parent = text(above, "spec", "parent") if above is not None else ""
        if parent == name:
            return seen
        if not parent or parent in seen:
            return []
        seen.append(parent)


def _amounts(ref: Ref, queue: Obj, queues: Queues) -> Iterator[Finding]:
    """Yield the first thing for which the webhook would refuse a change of the queue."""
    request = Request(UPDATE, name=ref.name, object=queue, old=queue)
    flaws: list[Refusal] = [*validate(request, queues, Options()).refusals]
    if ref.name != keys.ROOT_QUEUE and not flaws:
        flaws += against_ancestors(queue, queues)
        flaws += (one for one in _below(queue, queues) if not one.field.startswith("spec.capability"))
    for flaw in flaws[:1]:
        what = f"our webhook refuses changes of its amounts: {shortened(flaw.message, 120)}"
        yield Finding(Group.DIFFERS, "queue-refused", ref, what, flaw.hint or "correct the queue")


def _below(queue: Obj, queues: Queues) -> Iterator[Refusal]:
    # Of a sum that is too large, only the parent is reported; of a capability, only the child.
    yield from against_children(queue, queues, list(queues.children(text(queue, "metadata", "name"))))


def count_group(counts: dict[str, Counter[str]], group: Obj) -> None:
    """Count a PodGroup in its queue."""
    queue = text(group, "spec", "queue") or keys.DEFAULT_QUEUE
    counts.setdefault(queue, Counter())[text(mapping(group, "status"), "phase")] += 1
