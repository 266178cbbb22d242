"""Sets aside one object over which a handler raises, so that everything else goes on.

    events before it: taken in ◀── handler raises over one event of a batch ──▶ events after it: passed on
                                                    │
                                                    ▼
                                         its object is set aside

Users write objects, and no code foresees all that they write. Without this, one such object would end every program
that watches it, and each restart would end at it, too. To the handler, an object set aside is one that cannot be read:
it gets the whole JSON, and decides what is safe. A bound pod keeps its room, and its node takes no more pods.

The next version of the object is tried again. A deleted object is forgotten. The exception is a fault of ours: it is
logged with its traceback (`own_faults`).
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Generic

import msgspec
import structlog

from volcano_py.kube.delivery import Event, EventHandler, EventType, Quarantined, T
from volcano_py.kube.own_faults import OwnFaults
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

Told = Callable[[Quarantined], None]
"""Called for each object that cannot be read, once per problem; for an event."""


class SettingAside(Generic[T]):
    """Stands before a handler of one resource.

    A handler goes through its events in order, so the last one that it took is the one over which it raises. That event
    is not passed on again: its half may be in the handler's state, and may hide the fault. If the handler raises before
    or after that loop, its events are passed on again one by one.

    It is told of an object that is set aside by `on_quarantine`, of every version. No `on_release` follows: the next
    change shows that the object is readable, or gone.
    """

    def __init__(self, resource: str, handler: EventHandler[T], clock: Clock, told: Told = lambda _: None) -> None:
        self._resource = resource
        self._handler = handler
        self._told = told
        self._faults = OwnFaults(f"changes of {resource}", clock)
        self._aside: dict[str, Quarantined] = {}
        self._problems: dict[str, tuple[str, str, str, str]] = {}  # key -> what was told last
        self._count = 0  # of objects over which the handler raised

    @property
    def aside(self) -> Mapping[str, Quarantined]:
        """What is set aside now, by key."""
        return self._aside

    def on_events(self, events: list[Event[T]]) -> None:
        """Pass a batch on; after a fault, set its object aside and pass the rest on."""
        while events:
            events = events[self._take(events) :]

    def on_quarantine(self, entry: Quarantined) -> None:
        """Pass on that an object cannot be decoded."""
        self._aside.pop(_key(entry), None)
        self._leave_out(entry)

    def on_release(self, entry: Quarantined) -> None:
        """Pass on that it can be decoded again, or is gone."""
        self._problems.pop(_key(entry), None)
        try:
            self._handler.on_release(entry)
        except Exception as error:  # noqa: BLE001 - a fault of ours may be anything
            self._faults.survive(f"{self._resource} {_key(entry)}", error)

    def _take(self, events: list[Event[T]]) -> int:
        """Pass events on up to a fault; return how many are dealt with."""
        batch = _Batch(events)
        try:
            self._handler.on_events(batch)
        except Exception as error:  # noqa: BLE001 - a fault of ours may be anything
            return self._after(error, batch)
        self._taken_in(events)
        return len(events)

    def _after(self, error: Exception, batch: "_Batch[T]") -> int:
        at = 0 if len(batch) == 1 else batch.at
        if at is not None:
            self._taken_in(batch[:at])
            self._set_aside(batch[at], error)
            return at + 1
        faults = self._count
        for one in list(batch):
            self._take([one])
        if faults == self._count:
            self._faults.survive(f"{self._resource}, {len(batch)} changes", error)
        return len(batch)

    def _taken_in(self, events: list[Event[T]]) -> None:
        if self._problems:
            for event in events:
                self._aside.pop(event.key, None)
                self._problems.pop(event.key, None)

    def _set_aside(self, event: Event[T], error: Exception) -> None:
        self._count += 1
        fault = self._faults.survive(f"{self._resource} {event.key}", error)
        if event.type is EventType.DELETED or event.object is None:
            self._taken_in([event])
            return
        entry = Quarantined(
            resource=self._resource,
            namespace=event.namespace,
            name=event.name,
            uid=event.uid,
            resource_version=event.object.metadata.resource_version,
            field="",
            value="",
            problem=fault.server_message,
            delivered=True,
            raw=msgspec.json.encode(event.object),
        )
        self._aside[event.key] = dataclasses.replace(entry, raw=b"")
        if self._leave_out(entry):
            log.warning("object is set aside, going on without it", problem=entry.message)

    def _leave_out(self, entry: Quarantined) -> bool:
        """Have the handler leave an object out; return whether its problem is new."""
        key, problem = _key(entry), (entry.uid, entry.field, entry.value, entry.problem)
        new = self._problems.get(key) != problem
        if entry.name:  # nothing could ever release an object without a name
            self._problems[key] = problem
        try:
            self._handler.on_quarantine(entry)
            if new:
                self._told(entry)
        except Exception as error:  # noqa: BLE001 - a fault of ours may be anything
            self._faults.survive(f"{self._resource} {key}", error)
        return new


class _Batch(list[Event[T]]):
    """Events, with the place up to which somebody has gone through them; None before the first and after the last."""

    at: int | None = None

    def __iter__(self) -> Iterator[Event[T]]:
        for self.at, event in enumerate(super().__iter__()):
            yield event
        self.at = None


def _key(entry: Quarantined) -> str:
    return f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name
