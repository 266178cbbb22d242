"""Objects that cannot be read, with the reasons; each new reason is reported once."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that is left out until it is corrected or gone."""

    kind: str  # Pod, Node, PodGroup, Queue, PriorityClass
    namespace: str
    name: str
    uid: str
    message: str  # object, field, value and remedy
    node: str = ""  # the node of a pod; it is closed because of the pod


UnreadableCallback = Callable[[Unreadable], None]
"""Called for each object that cannot be read, once per reason; for a metric and an event."""


class UnreadableObjects:
    """All objects that cannot be read now."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], Unreadable] = {}  # by kind and uid
        self._callbacks: list[UnreadableCallback] = []

    def __len__(self) -> int:
        return len(self._entries)

    def entries(self) -> tuple[Unreadable, ...]:
        """Return all of them, by kind, namespace and name."""
        return tuple(sorted(self._entries.values(), key=lambda e: (e.kind, e.namespace, e.name, e.uid)))

    def subscribe(self, callback: UnreadableCallback) -> None:
        """Call ``callback`` with every new entry."""
        self._callbacks.append(callback)

    def get(self, kind: str, uid: str) -> Unreadable | None:
        """Return the entry of an object."""
        return self._entries.get((kind, uid))

    def add(self, entry: Unreadable) -> None:
        """Add an entry; the same reason is reported only once."""
        key = (entry.kind, entry.uid)
        if self._entries.get(key) == entry:
            return
        self._entries[key] = entry
        log.warning(
            "object cannot be read",
            kind=entry.kind,
            object=f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name,
            problem=entry.message,
            **({"closed_node": entry.node} if entry.node else {}),
        )
        for callback in self._callbacks:
            callback(entry)

    def discard(self, kind: str, uid: str) -> Unreadable | None:
        """Forget an object that is readable again or gone; return its entry if it had one."""
        return self._entries.pop((kind, uid), None)
