"""The controller manager put together: what it is made of, how it starts, how it ends.

start     listen for probes, open watches, wait for the first lists
stand by  with views that are kept up to date, until the lease is ours; without an election not at all
work      let the controllers work
end       on request: no further turns, events flushed, the lease given up; on demand, and without the lease: at once
"""

import asyncio
import random
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Final

import structlog
from prometheus_client import CollectorRegistry

import volcano_py
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.controller import Controller, ControllerContext
from volcano_py.controllers.metrics import ControllerMetrics
from volcano_py.controllers.options import ManagerOptions
from volcano_py.controllers.table import CONTROLLERS
from volcano_py.controllers.view import View
from volcano_py.controllers.writes import Writer
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.informer import Informers, SyncTimeout
from volcano_py.kube.resource import PODGROUPS
from volcano_py.metrics.effects import RequestMetrics, WriteQueueMetrics
from volcano_py.metrics.leader import LeaderMetrics
from volcano_py.process.leadership import Leadership
from volcano_py.runtime.clock import Clock, RealClock
from volcano_py.runtime.http import OperatorServer
from volcano_py.runtime.signals import Shutdown
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.events import EventRecorder

log = structlog.get_logger()

COMPONENT: Final = "vc-controller-manager"
_SYNC_REPORT_S: Final = 15.0


class ControllerManager:
    """The controllers of one process; run it once."""

    def __init__(
        self,
        credentials: Credentials,
        options: ManagerOptions | None = None,
        *,
        clock: Clock | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self.options = options = options or ManagerOptions()
        self.registry = registry or CollectorRegistry()
        self.ready = asyncio.Event()
        """Set when the controllers work; with an election, when nothing but the lease is missing."""
        self.leading = asyncio.Event()
        """Set when the controllers work."""
        self._clock: Clock = clock or RealClock()
        self._rng = random.Random()  # for the spread of delays only
        self._metrics = ControllerMetrics(self.registry)
        self._metrics.watch_readiness(self.ready.is_set)
        agent, observer = f"{COMPONENT}/{volcano_py.__version__}", RequestMetrics(self.registry).observe
        self._leadership = Leadership(
            credentials,
            options.lease,
            LeaderMetrics(self.registry),
            clock=self._clock,
            rng=self._rng,
            user_agent=agent,
            observer=observer,
        )
        self.client = ApiClient(credentials, user_agent=agent, observer=observer, obstacle=self._leadership.obstacle)
        self._informers = Informers(self.client, options=options.reflectors, clock=self._clock)
        self._writer = Writer(self.client, rate_per_s=options.rate_per_s, burst=options.burst, clock=self._clock)
        self._events = EventRecorder(
            self.client,
            WriteQueueMetrics(self.registry),
            component=COMPONENT,
            clock=self._clock,
            rng=self._rng,
            options=options.events,
        )
        self._controllers = tuple(self._build())

    def _build(self) -> Iterator[Controller]:
        """Build the chosen controllers and let them say what they watch."""
        groups: View[PodGroup] = View()
        self._informers.add(PODGROUPS, PodGroup, groups, optional=True)
        context = ControllerContext(
            client=self.client,
            writer=self._writer,
            groups=groups,
            events=self._events,
            metrics=self._metrics,
            options=self.options,
            clock=self._clock,
            rng=self._rng,
            served=lambda resource: not self._informers.status()[resource.label].absent,
        )
        for name, build in CONTROLLERS.items():
            if name in self.options.controllers:
                controller = build(context)
                controller.watch(self._informers)
                self._metrics.watch_backlog(name, controller.backlog)
                yield controller

    # Life

    async def run(self, shutdown: Shutdown) -> int:
        """Work until asked to end; return the exit code: 0 after an orderly end, 1 if forced or the lease is lost.

        Raises AddressInUse before anything has begun, and TaskFailed if a part of the process dies of a bug.
        """
        async with AsyncExitStack() as stack:
            for server in self._operator_servers():
                await stack.enter_async_context(server)
            await stack.enter_async_context(self.client)
            await stack.enter_async_context(self._leadership)
            async with Supervisor() as writers:
                self._events.start(writers)
                async with Supervisor() as workers:
                    self._informers.start(workers)
                    workers.start("controllers", self._work(workers))
                    lost = await self._leadership.lost_before(shutdown.graceful)
                if lost:
                    log.error("the lease is lost: the controllers end", why=self._leadership.why_lost)
                    return 1
                code = await self._end(shutdown)
            if code == 0:
                await self._leadership.give_up()  # not before the last write of ours has ended
            return code

    def not_ready(self) -> list[str]:
        """Return what the start still waits for; empty when the controllers work."""
        return [] if self.ready.is_set() else self._informers.not_ready() or ["controllers have not started yet"]

    def _operator_servers(self) -> Iterator[OperatorServer]:
        metrics, health = self.options.metrics_address, self.options.health_address
        for address, flag in {metrics: "--listen-address", health: "--healthz-address"}.items():
            if address is not None:
                registry = self.registry if address == metrics else None
                yield OperatorServer(address, flag=flag, not_ready=self.not_ready, registry=registry)

    async def _work(self, supervisor: Supervisor) -> None:
        names = sorted(self.options.controllers)
        log.info("controllers start", server=self.client.server, version=volcano_py.__version__, controllers=names)
        while True:
            try:
                await self._informers.synced(_SYNC_REPORT_S)
                break
            except SyncTimeout as problem:
                log.warning("still waiting for the first lists", problem=str(problem))
        if self._leadership.contested:
            self.ready.set()
        await self._leadership.won(supervisor)
        if self._leadership.contested:
            self._informers.reconnect()  # what ended the last leader may have silenced our watches
        self._leadership.announce(self._events)
        for controller in self._controllers:
            controller.start(supervisor)
        self.ready.set()
        self.leading.set()
        log.info("controllers are ready")

    async def _end(self, shutdown: Shutdown) -> int:
        """Write the events that are left, unless the end is forced."""
        flushing = asyncio.create_task(self._events.drained(self.options.stop_patience_s), name="flush")
        forced = asyncio.create_task(shutdown.force.wait(), name="force")
        try:
            await asyncio.wait([flushing, forced], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (flushing, forced):
                task.cancel()
            await asyncio.gather(flushing, forced, return_exceptions=True)
        log.info("controllers end")
        return 1 if shutdown.force.is_set() else 0
