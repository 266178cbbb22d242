"""How every process starts, stands by, works and ends.

start     serve the probes, open the watches, wait for the first lists; after 15 s a warning says what is missing
stand by  keep the watches up to date until this process wins the lease; without an election, not at all
work      open the watches anew, start what decides and what writes
end       on request: decide nothing more, complete what has begun, write what waits, release the lease, return 0;
          on a second request, or when the lease is lost: end at once, return 1

A process is a :class:`Work`: it says what it starts and what it completes. A process without a lease or without watches
(a webhook server) takes the same way: its context has no lease, its set of informers is empty.
"""

import asyncio
import itertools
from contextlib import AsyncExitStack
from typing import Final, Protocol

import structlog

from volcano_py.kube.informer import Informers, SyncTimeout
from volcano_py.process import threads
from volcano_py.process.context import ProcessContext
from volcano_py.process.operator_pages import OperatorPages
from volcano_py.runtime import garbage
from volcano_py.runtime.signals import Shutdown
from volcano_py.runtime.supervisor import Supervisor

log = structlog.get_logger()

_SYNC_REPORT_S: Final = 15.0
_REMIND_EACH: Final = 20  # of these reports, if nothing changes
_FORCED_OR_LOST: Final = 1


class Work(Protocol):
    """The work of one process; its methods are called in this order, each at most once."""

    def start(self, services: Supervisor) -> None:
        """Start what runs from the beginning, with or without the lease."""

    async def lead(self, workers: Supervisor, services: Supervisor) -> None:
        """Start all parts that decide or write; return when the process is ready.

        ``workers`` end as soon as the end is asked for or the lease is lost, ``services`` after :meth:`drain`.
        """

    def stop(self, why_lost: str | None) -> None:
        """Decide nothing more; ``why_lost`` says why the lease is lost, None if the end was asked for."""

    async def drain(self) -> bool:
        """Complete what has begun and write what waits; return True if no request can take effect any more.

        The lease is released only then. Bounds its own time; cancelled when the end is forced.
        """


class Lifecycle:
    """Takes one process from its start to its end; run it once."""

    def __init__(self, context: ProcessContext, informers: Informers, *, freeze_garbage: bool = False) -> None:
        """Take what the process is built on, and the watches whose first lists it waits for.

        ``freeze_garbage`` excludes the objects of the first lists from garbage collections, in the whole Python
        process.
        """
        self._context = context
        self._informers = informers
        self._freeze_garbage = freeze_garbage
        self.ready = asyncio.Event()
        """Set when the process works; with an election, already when only the lease is missing."""
        self.leading = asyncio.Event()
        """Set when the process works."""

    async def run(self, work: Work, pages: OperatorPages, shutdown: Shutdown) -> int:
        """Work until asked to end; return the exit code: 0 after an orderly end, 1 if forced or the lease is lost.

        Raises AddressInUse before anything has begun, and TaskFailed if a part of the process fails because of a bug.
        """
        context = self._context
        if self._freeze_garbage:
            garbage.collect_in_small_steps(starting=True)
            threads.give_way_soon()
        async with AsyncExitStack() as stack:
            for server in pages.servers(context.registry):
                await stack.enter_async_context(server)
            await stack.enter_async_context(context.client)
            await stack.enter_async_context(context.leadership)
            async with Supervisor() as services:
                code, drained = await self._live(work, services, shutdown)
            if drained:
                await context.leadership.give_up()  # only now the last request of this process has ended
            return code

    async def _live(self, work: Work, services: Supervisor, shutdown: Shutdown) -> tuple[int, bool]:
        """Return the exit code, and whether all requests of this process have ended."""
        leadership = self._context.leadership
        async with Supervisor() as workers:
            self._informers.start(services)
            work.start(services)
            workers.start("start", self._begin(work, workers, services))
            lost = await leadership.lost_before(shutdown.graceful)
            work.stop(leadership.why_lost if lost else None)
        return (_FORCED_OR_LOST, False) if lost else await self._drain(work, shutdown)

    async def _begin(self, work: Work, workers: Supervisor, services: Supervisor) -> None:
        leadership = self._context.leadership
        await self._first_lists()
        if self._freeze_garbage:
            garbage.keep_what_is_there()
        if leadership.contested:
            self.ready.set()
        await leadership.won(services)
        if leadership.contested:
            self._informers.reconnect()  # what ended the last leader may have silenced our watches
        await work.lead(workers, services)
        self.ready.set()
        self.leading.set()

    async def _first_lists(self) -> None:
        event, told = "still waiting for the first lists", ""
        for attempt in itertools.count():
            try:
                await self._informers.synced(_SYNC_REPORT_S)
            except SyncTimeout as error:
                problem = str(error)
                news = problem != told or attempt % _REMIND_EACH == 0
                if news and not self._informers.outage.withholds(event):
                    log.warning(event, problem=problem)
                    told = problem
            else:
                return

    async def _drain(self, work: Work, shutdown: Shutdown) -> tuple[int, bool]:
        draining = asyncio.create_task(work.drain(), name="drain")
        forced = asyncio.create_task(shutdown.force.wait(), name="force")
        try:
            await asyncio.wait([draining, forced], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (draining, forced):
                task.cancel()
            await asyncio.gather(draining, forced, return_exceptions=True)
        return (_FORCED_OR_LOST, False) if shutdown.force.is_set() else (0, draining.result())
