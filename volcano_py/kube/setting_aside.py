"""Sets aside one object over which a handler raises, so that everything else goes on.

    handler raises over a batch ──▶ the events again, one by one ──▶ the one that raises: its object is set aside
                                                                     all others: taken in

Users write objects, and no code foresees all that they write. Without this, one such object would end every program
that watches it, and each restart would end at it, too. To the handler, an object set aside is one that cannot be read:
it gets the whole JSON, and decides what is safe. A bound pod keeps its room, and its node takes no more pods.

The next version of the object is tried again. A deleted object is forgotten. The exception is a fault of ours: it is
logged with its traceback (`own_faults`).
"""

import dataclasses
from collections.abc import Callable, Mapping
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
    """Stands before a handler of one resource. The handler may get a change again if another one raises.

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

    @property
    def aside(self) -> Mapping[str, Quarantined]:
        """What is set aside now, by key."""
        return self._aside

    def on_events(self, events: list[Event[T]]) -> None:
        """Pass a batch on; if the handler raises, pass its events on one by one."""
        if not self._problems.keys().isdisjoint(event.key for event in events):
            for event in events:
                self._pass(event)
            return
        try:
            self._handler.on_events(events)
        except Exception as error:  # noqa: BLE001 - a fault of ours may be anything
            if not any([self._pass(event) for event in events]):  # a list: every event is passed on
                self._faults.survive(f"{self._resource}, {len(events)} changes", error)

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

    def _pass(self, event: Event[T]) -> bool:
        """Pass one change on; return whether the handler raised."""
        self._aside.pop(event.key, None)
        try:
            self._handler.on_events([event])
        except Exception as error:  # noqa: BLE001 - a fault of ours may be anything
            self._set_aside(event, error)
            return True
        self._problems.pop(event.key, None)
        return False

    def _set_aside(self, event: Event[T], error: Exception) -> None:
        fault = self._faults.survive(f"{self._resource} {event.key}", error)
        if event.type is EventType.DELETED or event.object is None:
            self._problems.pop(event.key, None)
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


def _key(entry: Quarantined) -> str:
    return f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name
