"""The indices of a task that need a pod, kept as those that need none.

A job may ask for 200,000 pods, and anybody may create thousands of jobs that never start. So what is kept grows with
the pods that exist, and not with those that are asked for.
"""

from collections.abc import Iterable, Iterator, Set
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


class Missing(Set[int]):
    """The indices below a number of replicas that need a pod."""

    __slots__ = ("_served", "replicas")

    def __init__(self, replicas: int = 0, served: Iterable[int] = ()) -> None:
        """Take how many pods there should be, and the indices that need none."""
        self.replicas = replicas
        self._served = {index for index in served if 0 <= index < replicas}

    def __len__(self) -> int:
        return self.replicas - len(self._served)

    def __contains__(self, index: object) -> bool:
        return isinstance(index, int) and 0 <= index < self.replicas and index not in self._served

    def __iter__(self) -> Iterator[int]:
        """Return the indices in order."""
        return (index for index in range(self.replicas) if index not in self._served)

    @classmethod
    def _from_iterable(cls, it: Iterable[T]) -> Set[T]:
        return set(it)

    def first(self, count: int) -> tuple[int, ...]:
        """Return the lowest indices, so many at most."""
        return tuple(islice(self, count))

    def add(self, index: int) -> None:
        """Say that an index needs a pod."""
        self._served.discard(index)

    def discard(self, index: int) -> None:
        """Say that an index needs no pod."""
        if 0 <= index < self.replicas:
            self._served.add(index)
