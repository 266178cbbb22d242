"""Write deduplication: a write is not repeated while the watch has not shown it yet.

A cycle compares its decisions with the objects that the watch has shown. Until the watch shows a write, the cycle
decides the same write again. The version of the object tells whether somebody else has changed it since: only then the
write is repeated.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
A = TypeVar("A")

VersionOf = Callable[[str], str]
"""Returns the resourceVersion that the watch has shown last, by ``namespace/name``; "" for an unknown object."""

_CAPACITY: Final = 20_000  # a forgotten write is written once more, which changes nothing
_CHECKED: Final = 2  # writes that are looked at again with each new one: those of objects that are gone take no memory


class WriteDedup(Generic[K, A]):
    """Remembers the last write to each object, the answer to it, and the versions before and after it."""

    def __init__(self, version_of: VersionOf, capacity: int = _CAPACITY) -> None:
        self._version_of = version_of
        self._capacity = capacity
        self._written: OrderedDict[K, _Write[A]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._written)

    def shown(self, name: str) -> str:
        """Return the version that the watch shows now; pass it to :meth:`remember` after the write."""
        return self._version_of(name)

    def remember(self, key: K, name: object, content: object, answer: A, shown_before: str, version_after: str) -> None:
        """Note what was written and what the API server answered."""
        self._written[key] = _Write(str(name), content, answer, shown_before, version_after)
        self._written.move_to_end(key)
        if len(self._written) > self._capacity:
            self._written.popitem(last=False)
        # The first ones have not been looked at for longest; those that still count go to the end.
        for _ in range(min(_CHECKED, len(self._written) - 1)):
            first, write = next(iter(self._written.items()))
            if self._last(first, write.name) is not None:
                self._written.move_to_end(first)

    def repeats(self, key: K, content: object, name: object) -> bool:
        """Say whether the last write had this content and nobody else is known to have changed the object since."""
        write = self._last(key, name)
        return write is not None and write.content == content

    def answer(self, key: K, name: object) -> A | None:
        """Return the answer to the last write, if nobody else is known to have changed the object since."""
        write = self._last(key, name)
        return None if write is None else write.answer

    def version(self, key: K, name: object) -> str:
        """Return the newest known version of an object: that of our last write, or the one that the watch shows."""
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
    name: str
    content: object
    answer: A
    shown_before: str
    version_after: str
