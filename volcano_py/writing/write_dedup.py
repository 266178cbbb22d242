"""Not writing twice what the watch has only not shown yet.

A cycle compares with what the watch has brought. Between a write and its appearance in the watch it decides the same
write again; the version of the object tells this case from the one in which somebody has changed the object since.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
A = TypeVar("A")

VersionOf = Callable[[str], str]
"""The resourceVersion that the watch has shown last, by ``namespace/name``; "" for an object it does not know."""

_CAPACITY: Final = 20_000  # forgetting one costs a write that changes nothing


class WriteDedup(Generic[K, A]):
    """What was written last to each object, what the API server answered, and between which versions that was."""

    def __init__(self, version_of: VersionOf, capacity: int = _CAPACITY) -> None:
        self._version_of = version_of
        self._capacity = capacity
        self._written: OrderedDict[K, _Write[A]] = OrderedDict()

    def shown(self, name: str) -> str:
        """Return the version that the watch shows now, to be given to :meth:`remember` after the write."""
        return self._version_of(name)

    def remember(self, key: K, content: object, answer: A, shown_before: str, version_after: str) -> None:
        """Note what was written and what came of it."""
        self._written[key] = _Write(content, answer, shown_before, version_after)
        self._written.move_to_end(key)
        if len(self._written) > self._capacity:
            self._written.popitem(last=False)

    def repeats(self, key: K, content: object, name: object) -> bool:
        """Say whether this was the last write and nobody else has changed the object since, as far as is known."""
        write = self._last(key, name)
        return write is not None and write.content == content

    def answer(self, key: K, name: object) -> A | None:
        """Return the answer to the last write, if nobody else has changed the object since, as far as is known."""
        write = self._last(key, name)
        return None if write is None else write.answer

    def version(self, key: K, name: object) -> str:
        """Return the version of an object as far as is known: that of our last write, or else what the watch shows."""
        write = self._last(key, name)
        return self._version_of(str(name)) if write is None else write.version_after

    def _last(self, key: K, name: object) -> "_Write[A] | None":
        write = self._written.get(key)
        if write is None:
            return None
        if self._version_of(str(name)) in (write.shown_before, write.version_after):
            return write
        del self._written[key]
        return None


@dataclass(frozen=True, slots=True)
class _Write(Generic[A]):
    content: object
    answer: A
    shown_before: str
    version_after: str
