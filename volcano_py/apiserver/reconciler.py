"""Background work of the server: a queue without duplicates, and one task that works through it."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Hashable

from volcano_py.apiserver.registry import Registry
from volcano_py.apiserver.status import StatusError
from volcano_py.apiserver.store import Collection, Event

log = logging.getLogger(__name__)

_BATCH = 50  # items handled before the loop runs other work
_ATTEMPTS = 5


class Reconciler(ABC):
    """Listens to the store, notes items, and works through them one at a time.

    The queue holds each item at most once, so it is bounded by the number of objects. An item that fails is
    logged and retried a few times, then left until its next event; it never stops the others.
    """

    name = "reconciler"

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._queue: OrderedDict[Hashable, int] = OrderedDict()  # removing from the front of a dict is slow
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        registry.store.listeners.append(self.observe)

    @abstractmethod
    def observe(self, collection: Collection, event: Event) -> None:
        """Note the items that an event concerns; called within the write, so it does no work yet."""

    @abstractmethod
    def reconcile(self, item: Hashable) -> None:
        """Bring one item into its desired state, given the current objects."""

    def enqueue(self, item: Hashable) -> None:
        """Add an item to the queue."""
        self._queue.setdefault(item, 0)
        self._wake.set()

    @property
    def idle(self) -> bool:
        """Whether the queue is empty."""
        return not self._queue

    def start(self) -> None:
        """Begin to work."""
        self._task = asyncio.create_task(self._run(), name=f"apiserver-{self.name}")

    async def stop(self) -> None:
        """Stop working and wait for the end."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=5)

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                for _ in range(min(_BATCH, len(self._queue))):
                    self._step()
                await asyncio.sleep(0)

    def _step(self) -> None:
        item, failures = self._queue.popitem(last=False)
        try:
            self.reconcile(item)
        except StatusError as error:
            log.warning("%s: %s is refused: %s", self.name, item, error)
            self._again(item, failures)
        except Exception:
            log.exception("%s: %s failed", self.name, item)
            self._again(item, failures)

    def _again(self, item: Hashable, failures: int) -> None:
        if failures + 1 < _ATTEMPTS:
            self._queue.setdefault(item, failures + 1)
