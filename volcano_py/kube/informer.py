"""All resources that a process watches, and one barrier that waits until all are listed."""

import asyncio
import random
from collections.abc import Callable
from functools import partial
from typing import Any

from prometheus_client import Gauge

from volcano_py.kube.client import ApiClient
from volcano_py.kube.delivery import EventHandler, Quarantined, T
from volcano_py.kube.reflector import Reflector, ReflectorOptions, ReflectorStatus
from volcano_py.kube.refusals import Refusals
from volcano_py.kube.resource import Resource
from volcano_py.runtime.clock import Clock, RealClock
from volcano_py.runtime.supervisor import Supervisor


class SyncTimeout(Exception):
    """Not every first list was delivered in time; the message says which and why."""


class Informers:
    """Reflectors that start together under a supervisor."""

    def __init__(
        self,
        client: ApiClient,
        *,
        options: ReflectorOptions | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._options = options
        self._clock = clock
        self._rng = rng
        self.outage = client.outage
        """The outage that all reflectors report together while the API server does not answer."""
        self.on_unreadable: Callable[[Resource, Quarantined], None] = lambda _, __: None
        """Called for each object that cannot be read, once per problem; for an event."""
        self._refusals = Refusals(clock or RealClock())
        self._reflectors: dict[str, Reflector[Any]] = {}

    def add(
        self,
        resource: Resource,
        into: type[T],
        handler: EventHandler[T],
        *,
        name: str = "",
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        optional: bool = False,
        dispensable: bool = False,
    ) -> Reflector[T]:
        """Add a resource before :meth:`start`; ``name`` tells two of the same resource apart."""
        name = name or resource.label
        if name in self._reflectors:
            raise ValueError(f"there is already an informer named {name}; give this one a name of its own")
        reflector = Reflector(
            self._client,
            resource,
            into,
            handler,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            optional=optional,
            dispensable=dispensable,
            options=self._options,
            clock=self._clock,
            rng=self._rng,
            outage=self.outage,
            refusals=self._refusals,
            name=name,
            told=lambda entry: self.on_unreadable(resource, entry),
        )
        self._reflectors[name] = reflector
        return reflector

    def start(self, supervisor: Supervisor) -> None:
        """Run every reflector as a task of its own."""
        self._refusals.collecting = True
        for name, reflector in self._reflectors.items():
            supervisor.start(f"informer {name}", reflector.run())

    def relist(self, name: str) -> None:
        """List one resource again at once, and resume all other watches over new connections.

        Whatever silenced one watch most likely silenced all.
        """
        for other, reflector in self._reflectors.items():
            if other == name:
                reflector.relist()
            else:
                reflector.reconnect()

    def reconnect(self) -> None:
        """Resume every watch over a new connection, because the old ones may be dead."""
        self._client.distrust_idle()
        for reflector in self._reflectors.values():
            reflector.reconnect()

    async def synced(self, timeout_s: float) -> None:
        """Wait until every first list was delivered to its handler; raise SyncTimeout if not."""
        try:
            async with asyncio.timeout(timeout_s):
                for reflector in self._reflectors.values():
                    await reflector.synced()
        except TimeoutError as error:
            missing = {name: status.last_error for name, status in self.status().items() if not status.synced}
            why = next((problem for problem in missing.values() if problem), "the list has not ended")
            raise SyncTimeout(f"not listed within {timeout_s:g} s: {', '.join(missing)}; {why}") from error
        finally:
            self._refusals.collected()

    def count_unreadable(self, gauge: Gauge) -> None:
        """Have the objects that cannot be read counted, by the names of the informers so far."""
        for name, reflector in self._reflectors.items():
            gauge.labels(name).set_function(partial(_count, reflector))

    def status(self) -> dict[str, ReflectorStatus]:
        """Return the state of each reflector, by name."""
        return {name: reflector.status() for name, reflector in self._reflectors.items()}

    def not_ready(self) -> list[str]:
        """Return one reason per resource whose first list was not delivered, for a readiness probe."""
        return [f"{name} is not listed yet" for name, status in self.status().items() if not status.synced]

    def quarantined(self) -> list[Quarantined]:
        """Return every object that is left out because it cannot be read."""
        return [entry for _, reflector in sorted(self._reflectors.items()) for entry in reflector.unreadable()]


def _count(reflector: Reflector[Any]) -> int:
    return len(reflector.unreadable())
