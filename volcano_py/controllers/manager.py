"""The controller manager: it builds the controllers and starts and stops them.

:mod:`volcano_py.process.lifecycle` says how the process starts, stands by and ends. Controllers work only while the
process holds the lease. At the end they reconcile no further object, and the waiting events are written.
"""

import random
from collections.abc import Iterator
from typing import Final

import structlog
from prometheus_client import CollectorRegistry

import volcano_py
from volcano_py.api import keys
from volcano_py.api.batch import Job
from volcano_py.api.scheduling import PodGroup, PriorityClass, Queue
from volcano_py.controllers.controller import Controller, ControllerContext
from volcano_py.controllers.excuses import Excuses
from volcano_py.controllers.metrics import ControllerMetrics
from volcano_py.controllers.options import ManagerOptions
from volcano_py.controllers.table import CONTROLLERS
from volcano_py.controllers.view import View
from volcano_py.controllers.writes import Writer
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.delivery import Quarantined
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import PODGROUPS, PRIORITY_CLASSES, QUEUES, VCJOBS, Resource
from volcano_py.metrics.effects import WriteQueueMetrics
from volcano_py.metrics.unreadable import unreadable_gauge
from volcano_py.model.decisions import RecordEvent
from volcano_py.process.context import ProcessContext
from volcano_py.process.lifecycle import Lifecycle
from volcano_py.process.operator_pages import OperatorPages
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.signals import Shutdown
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.events import EventRecorder

log = structlog.get_logger()

COMPONENT: Final = "vc-controller-manager"
_OWN_GROUPS: Final = frozenset({keys.BATCH_GROUP, keys.BUS_GROUP, keys.FLOW_GROUP})


class ControllerManager:
    """The controllers of one process; run it once."""

    def __init__(
        self,
        credentials: Credentials,
        options: ManagerOptions | None = None,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self.options = options = options or ManagerOptions()
        self._context = context = ProcessContext.build(
            credentials,
            user_agent=f"{COMPONENT}/{volcano_py.__version__}",
            lease=options.lease,
            clock=clock,
            rng=rng,
            registry=registry,
        )
        self.client, self.registry = context.client, context.registry
        self._clock, self._rng = context.clock, context.rng
        self._metrics = ControllerMetrics(self.registry)
        self._informers = Informers(self.client, options=options.reflectors, clock=self._clock, rng=self._rng)
        self._lifecycle = Lifecycle(context, self._informers)
        self.ready = self._lifecycle.ready
        """Set when the controllers work; with an election, already when only the lease is missing."""
        self.leading = self._lifecycle.leading
        """Set when the controllers work."""
        self._metrics.watch_readiness(lambda: not self.not_ready())
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
        self._informers.on_unreadable = self._record_unreadable
        self._informers.count_unreadable(unreadable_gauge(self.registry))

    def _build(self) -> Iterator[Controller]:
        """Build the chosen controllers and add their informers."""
        groups: View[PodGroup] = View()
        self._informers.add(PODGROUPS, PodGroup, groups, optional=True)
        jobs: View[Job] = View()
        queues: View[Queue] = View()
        classes: View[PriorityClass] = View()
        context = ControllerContext(
            client=self.client,
            writer=self._writer,
            groups=groups,
            jobs=jobs,
            queues=queues,
            classes=classes,
            excuses=Excuses(queues, classes),
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
        if jobs.watched:
            self._informers.add(VCJOBS, Job, jobs, optional=True)
        if queues.watched:
            self._informers.add(QUEUES, Queue, queues, name="queues of jobs", optional=True)
        if classes.watched:
            self._informers.add(PRIORITY_CLASSES, PriorityClass, classes)

    def _record_unreadable(self, kind: Resource, entry: Quarantined) -> None:
        """Record an event on an object of a kind that the scheduler does not watch; it records those of the others."""
        if kind.group in _OWN_GROUPS:
            text = entry.message
            who = (kind.kind, entry.namespace, entry.name, entry.uid)
            self._events.record(RecordEvent(*who, keys.EVENT_WARNING, keys.UNREADABLE, text))

    # Life

    async def run(self, shutdown: Shutdown) -> int:
        """Work until asked to end; return the exit code: 0 after an orderly end, 1 if forced or the lease is lost.

        Raises AddressInUse before anything has begun, and TaskFailed if a part of the process fails because of a bug.
        """
        pages = OperatorPages(self.options.metrics_address, self.options.health_address, self.not_ready)
        return await self._lifecycle.run(self, pages, shutdown)

    def not_ready(self) -> list[str]:
        """Return what is missing until the controllers are ready, or which ones are broken; empty when they work."""
        if self.ready.is_set():
            return self._metrics.broken()
        return self._informers.not_ready() or ["controllers have not started yet"]

    def start(self, _: Supervisor) -> None:
        """Log the start; the controllers start in `lead`."""
        names = sorted(self.options.controllers)
        log.info("controllers start", server=self.client.server, version=volcano_py.__version__, controllers=names)

    async def lead(self, workers: Supervisor, services: Supervisor) -> None:
        """Start the controllers."""
        self._events.start(services)
        self._context.leadership.announce(self._events)
        for controller in self._controllers:
            controller.start(workers)
        log.info("controllers are ready")

    def stop(self, why_lost: str | None) -> None:
        """Log the loss of the lease; the lifecycle ends the workers of the controllers."""
        if why_lost is not None:
            log.error("the lease is lost: the controllers end", why=why_lost)

    async def drain(self) -> bool:
        """Write the waiting events; all writes of the controllers have ended."""
        await self._events.drained(self.options.stop_patience_s)
        log.info("controllers end")
        return True
