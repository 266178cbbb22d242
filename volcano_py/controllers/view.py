"""The objects of a resource by key, as the watch shows them; controllers decide on these."""

from collections.abc import Callable, Mapping
from typing import Generic

from volcano_py.kube.delivery import Event, EventType, Quarantined, T
from volcano_py.kube.own_faults import OwnFaults
from volcano_py.runtime.clock import RealClock

OnChange = Callable[[str, T | None, T | None], None]
"""Called with key, former and new state of a changed object; None for a state in which it does not exist."""


class View(Generic[T]):
    """The objects of one resource as the watch shows them; it reports every change.

    An object that ``keep`` refuses counts as absent. A subscriber that raises misses one change; all others go on.
    """

    def __init__(self, keep: Callable[[T], bool] = lambda _: True) -> None:
        self._keep = keep
        self._objects: dict[str, T] = {}
        self._callbacks: list[OnChange[T]] = []
        self._faults = OwnFaults("changes of objects", RealClock())

    def __len__(self) -> int:
        return len(self._objects)

    def subscribe(self, callback: OnChange[T]) -> None:
        """Call ``callback`` after every change."""
        self._callbacks.append(callback)

    @property
    def watched(self) -> bool:
        """Whether anybody has subscribed."""
        return bool(self._callbacks)

    def get(self, key: str) -> T | None:
        """Return an object by ``namespace/name``, or by its name if it has no namespace."""
        return self._objects.get(key)

    @property
    def objects(self) -> Mapping[str, T]:
        """All objects by key."""
        return self._objects

    def keys(self) -> list[str]:
        """Return all keys, sorted."""
        return sorted(self._objects)

    def on_events(self, events: list[Event[T]]) -> None:
        """Apply changes in order."""
        for event in events:
            before = self._objects.pop(event.key, None)
            after = None if event.type is EventType.DELETED else event.object
            if after is not None and not self._keeps(event.key, after):
                after = None
            if after is not None:
                self._objects[event.key] = after
            if before is not None or after is not None:
                for callback in self._callbacks:
                    try:
                        callback(event.key, before, after)
                    except Exception as error:  # noqa: BLE001 - a fault of ours may be anything
                        self._faults.survive(event.key, error)

    def _keeps(self, key: str, found: T) -> bool:
        try:
            return self._keep(found)
        except Exception as error:  # noqa: BLE001 - a fault of ours may be anything
            self._faults.survive(key, error)
            return False

    def on_quarantine(self, entry: Quarantined) -> None:
        """Keep the last readable state of an object; the reflector has reported what is wrong."""

    def on_release(self, entry: Quarantined) -> None:
        """Do nothing: the event of the object follows, or its deletion has been reported already."""
