"""What a watch has shown, by key: what controllers decide on."""

from collections.abc import Callable
from typing import Generic

from volcano_py.kube.delivery import Event, EventType, Quarantined, T

OnChange = Callable[[str, T | None, T | None], None]
"""Told key, former and new state of an object that changed; None where there was or is none."""


class View(Generic[T]):
    """The objects of one resource as the watch shows them; tells of every change.

    An object that ``keep`` refuses is as good as absent.
    """

    def __init__(self, keep: Callable[[T], bool] = lambda _: True) -> None:
        self._keep = keep
        self._objects: dict[str, T] = {}
        self._callbacks: list[OnChange[T]] = []

    def __len__(self) -> int:
        return len(self._objects)

    def subscribe(self, callback: OnChange[T]) -> None:
        """Tell a callback of every change, after it has been taken in."""
        self._callbacks.append(callback)

    def get(self, key: str) -> T | None:
        """Return an object by ``namespace/name``, or by the name of one that has no namespace."""
        return self._objects.get(key)

    def keys(self) -> list[str]:
        """Return all keys, sorted."""
        return sorted(self._objects)

    def on_events(self, events: list[Event[T]]) -> None:
        """Take changes in, in order."""
        for event in events:
            before = self._objects.pop(event.key, None)
            after = None if event.type is EventType.DELETED else event.object
            if after is not None and not self._keep(after):
                after = None
            if after is not None:
                self._objects[event.key] = after
            if before is not None or after is not None:
                for callback in self._callbacks:
                    callback(event.key, before, after)

    def on_quarantine(self, entry: Quarantined) -> None:
        """Leave an object as it was last readable: the reflector has said what is wrong with it."""

    def on_release(self, entry: Quarantined) -> None:
        """Do nothing: the event of the object follows, or it is gone and was told as deleted if it had been shown."""
