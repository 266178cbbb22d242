"""A reflector under test and a handler that records events."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.effects.waiting import until
from tests.kube.fake_api import WIDGETS, Widget
from volcano_py.kube.client import ApiClient
from volcano_py.kube.delivery import Event, Quarantined
from volcano_py.kube.reflector import Reflector, ReflectorOptions
from volcano_py.runtime.clock import FakeClock


class Recorder:
    """A handler that records its events and the resulting objects."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.batches: list[list[Event[Widget]]] = []
        self.quarantine: list[Quarantined] = []
        self.released: list[str] = []
        self.mirror: dict[str, int] = {}

    def on_events(self, events: list[Event[Widget]]) -> None:
        self.batches.append(events)
        for event in events:
            self.told.append(f"{event.type.value} {event.name}")
            if event.type.value == "DELETED":
                del self.mirror[event.key]
            else:
                assert event.object is not None
                self.mirror[event.key] = event.object.size

    def on_quarantine(self, entry: Quarantined) -> None:
        self.quarantine.append(entry)
        self.told.append(f"QUARANTINED {entry.name}")

    def on_release(self, entry: Quarantined) -> None:
        self.released.append(entry.name)
        self.told.append(f"RELEASED {entry.name}")


@asynccontextmanager
async def reflecting(
    client: ApiClient,
    recorder: Recorder,
    clock: FakeClock,
    *,
    optional: bool = False,
    dispensable: bool = False,
    **options: Any,
) -> AsyncIterator[Reflector[Widget]]:
    """Run a reflector of widgets; it must still be running at the end."""
    reflector = Reflector(
        client,
        WIDGETS,
        Widget,
        recorder,
        optional=optional,
        dispensable=dispensable,
        options=ReflectorOptions(**options),
        clock=clock,
        rng=random.Random(1),
    )
    task = asyncio.create_task(reflector.run())
    try:
        yield reflector
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def woken(clock: FakeClock, seconds: float = 60.0) -> None:
    """Wait until the reflector pauses, then let the pause pass."""
    await until(lambda: clock.sleepers)
    clock.advance(seconds)
