"""Not writing twice what the watch has only not shown yet.

A cycle compares with what the watch has brought. Between a write and its appearance in the watch it decides the same
write again; the version of the object tells this case from the one in which somebody has changed the object since.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

VersionOf = Callable[[str], str]
"""The resourceVersion that the watch has shown last, by ``namespace/name``; "" for an object it does not know."""

_CAPACITY: Final = 20_000  # forgetting one costs a write that changes nothing


class Echoes(Generic[K]):
    """What was written last to each object, and between which versions."""

    def __init__(self, version_of: VersionOf, capacity: int = _CAPACITY) -> None:
        self._version_of = version_of
        self._capacity = capacity
        self._written: OrderedDict[K, tuple[object, str, str]] = OrderedDict()

    def shown(self, name: str) -> str:
        """Return the version that the watch shows now, to be given to :meth:`remember` after the write."""
        return self._version_of(name)

    def remember(self, key: K, content: object, shown_before: str, version_after: str) -> None:
        """Note what was written."""
        self._written[key] = (content, shown_before, version_after)
        self._written.move_to_end(key)
        if len(self._written) > self._capacity:
            self._written.popitem(last=False)

    def repeats(self, key: K, content: object, name: str) -> bool:
        """Say whether this was the last write and nobody else has changed the object since, as far as is known."""
        written = self._written.get(key)
        if written is None:
            return False
        if self._version_of(name) in written[1:]:
            return content == written[0]
        del self._written[key]
        return False
