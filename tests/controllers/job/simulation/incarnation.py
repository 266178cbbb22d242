"""One life of the job controller: the real one, with watches and turns that the simulation moves forward."""

import asyncio
import random
from collections.abc import Callable
from functools import cache
from typing import Any, Final
from unittest import mock

import msgspec
from prometheus_client import CollectorRegistry

from tests.controllers.job.simulation.client import Client
from tests.controllers.job.simulation.server import Server
from tests.controllers.job.simulation.stepping import StepLoop
from volcano_py.api.batch import Job
from volcano_py.api.scheduling import PodGroup, PriorityClass, Queue
from volcano_py.controllers.controller import ControllerContext, ControllerOptions
from volcano_py.controllers.excuses import Excuses
from volcano_py.controllers.job import controller as controller_module
from volcano_py.controllers.job.controller import JobController
from volcano_py.controllers.job.members import ENDED
from volcano_py.controllers.job.plugins.registry import PluginTable, load_table
from volcano_py.controllers.job.record import Record
from volcano_py.controllers.metrics import ControllerMetrics
from volcano_py.controllers.view import View
from volcano_py.controllers.writes import Writer
from volcano_py.kube import errors
from volcano_py.kube.delivery import Delivery, EventHandler
from volcano_py.kube.resource import PODGROUPS, PRIORITY_CLASSES, QUEUES, VCJOBS, Resource
from volcano_py.model.decisions import RecordEvent
from volcano_py.runtime.clock import FakeClock

_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 5.0


@cache
def _metrics() -> ControllerMetrics:
    return ControllerMetrics(CollectorRegistry())


@cache
def _plugins() -> PluginTable:
    return load_table()


class Turns:
    """Stands in for the work queue: the simulation chooses whose turn it is."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.waiting: dict[str, float] = {}
        self._pauses: dict[str, tuple[int, float]] = {}

    @property
    def backlog(self) -> int:
        """Keys that wait."""
        return len(self.waiting)

    def start(self, _: object) -> None:
        """Do nothing: there are no workers."""

    def add(self, key: str) -> bool:
        """Ask for a turn."""
        self.add_later(key, 0.0)
        return True

    def add_later(self, key: str, seconds: float) -> None:
        """Ask for a turn after a delay, and not before the pause after a failure is over."""
        # However short a delay is, some time passes until then.
        delay_s = max(seconds, 1e-6) if seconds > 0 else 0.0
        due = max(self._clock.monotonic() + delay_s, self._pauses.get(key, (0, 0.0))[1])
        self.waiting[key] = min(due, self.waiting.get(key, due))

    def due(self) -> list[str]:
        """Return the keys whose time has come."""
        now = self._clock.monotonic()
        return [key for key, due in self.waiting.items() if due <= now]

    def next_due_s(self) -> float | None:
        """Return the seconds until the next turn, None if no key waits."""
        return min((max(0.0, due - self._clock.monotonic()) for due in self.waiting.values()), default=None)

    def failed(self, key: str) -> None:
        """Plan the next attempt."""
        times = self._pauses.get(key, (0, 0.0))[0]
        pause = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**times)
        self._pauses[key] = (times + 1, self._clock.monotonic() + pause)
        self.waiting.pop(key, None)
        self.add_later(key, pause)

    def succeeded(self, key: str) -> None:
        """Forget failures."""
        self._pauses.pop(key, None)


class Feed:
    """The watch of one resource: it shows the journal of the server up to a point."""

    def __init__(self, server: Server, resource: Resource, into: type[Any], handler: EventHandler[Any]) -> None:
        self._server = server
        self._resource = resource
        self._into = into
        self._delivery = Delivery(resource.label, handler)
        self._position = -1

    @property
    def listed(self) -> bool:
        """Whether the first list has arrived."""
        return self._position >= 0

    @property
    def behind(self) -> int:
        """How many changes it has not shown."""
        return len(self._journal) - self._position if self.listed else 0

    @property
    def _journal(self) -> list[Any]:
        return self._server.journal.get(self._resource.label, [])

    def list(self) -> None:
        """List all objects; changes since the last position are skipped, as after a long break."""
        self._delivery.begin_list()
        for obj in self._server.all(self._resource):
            self._delivery.put(msgspec.convert(obj, self._into), 0.0)
        self._delivery.end_list(0.0)
        self._position = len(self._journal)

    def show(self, count: int) -> None:
        """Show the next changes in one batch."""
        for change, obj in self._journal[self._position : self._position + count]:
            typed = msgspec.convert(obj, self._into)
            if change == "DELETED":
                self._delivery.delete(typed, 0.0)
            else:
                self._delivery.put(typed, 0.0)
        self._position = min(len(self._journal), self._position + count)
        self._delivery.flush()


class _Informers:
    """Collects what a controller wants to watch."""

    def __init__(self) -> None:
        self.wanted: list[tuple[Resource, type[Any], EventHandler[Any]]] = []

    def add(self, resource: Resource, into: type[Any], handler: EventHandler[Any], **_: object) -> None:
        """Note a resource."""
        self.wanted.append((resource, into, handler))


class _Events:
    """Stands in for the recorder of events."""

    def __init__(self, record: Callable[[RecordEvent], None]) -> None:
        self.record = record


class Incarnation:
    """The controller between two restarts."""

    def __init__(
        self, server: Server, loop: StepLoop, clock: FakeClock, client: Client, record: Callable[[RecordEvent], None]
    ) -> None:
        self.client = client
        self.loop = loop
        groups: View[PodGroup] = View()
        jobs: View[Job] = View()
        queues: View[Queue] = View()
        classes: View[PriorityClass] = View()
        context = ControllerContext(
            client=client,  # type: ignore[arg-type]  # the methods that controllers use
            writer=Writer(client, rate_per_s=None, burst=1, clock=clock),  # type: ignore[arg-type]  # as above
            groups=groups,
            jobs=jobs,
            queues=queues,
            classes=classes,
            excuses=Excuses(queues, classes),
            events=_Events(record),  # type: ignore[arg-type]  # as above
            metrics=_metrics(),
            options=ControllerOptions(),
            clock=clock,
            rng=random.Random(0),
            served=lambda _: True,
        )
        with mock.patch.object(controller_module, "load_table", _plugins):
            self.controller = JobController(context)
        self.turns = Turns(clock)
        self.controller._queue = self.turns  # type: ignore[assignment]  # the methods that the controller uses
        informers = _Informers()
        self.controller.watch(informers)  # type: ignore[arg-type]  # as above
        self.feeds = {
            resource.label: Feed(server, resource, into, handler)
            for resource, into, handler in [
                (PODGROUPS, PodGroup, groups),
                (VCJOBS, Job, jobs),
                (QUEUES, Queue, queues),
                (PRIORITY_CLASSES, PriorityClass, classes),
                *informers.wanted,
            ]
        }
        self.task: asyncio.Task[None] | None = None
        self.key = ""
        self.looks = 0
        self.wanted: dict[str, int] = {}
        """The fewest replicas of each task since the turn began, as far as the controller knew."""
        self.groups: set[str] = set()
        """uids of the PodGroups that the controller knew since the turn began."""
        self.had_ended: set[str] = set()
        """uids of the pods that had ended when the turn began, as far as the controller knew."""

    @property
    def synced(self) -> bool:
        """Whether every list has arrived; the controller starts then."""
        return all(feed.listed for feed in self.feeds.values())

    def record(self, uid: str) -> Record | None:
        """Return what the controller knows of a job."""
        return self.controller._records.get(uid if "/" in uid else f"default/{uid}")

    def known(self, uid: str) -> Job | None:
        """Return the job as the controller knows it."""
        record = self.record(uid)
        return None if record is None else record.job

    def begin(self, key: str) -> None:
        """Begin the turn of a key."""
        assert self.task is None
        self.turns.waiting.pop(key)
        self.looks += 1
        self.key = key
        record = self.record(key)
        self.had_ended = set() if record is None else {one.uid for one in record.members if one.phase in ENDED}
        self.wanted.clear()
        self.groups.clear()
        self.note_wanted(key)
        self.task = self.loop.create_task(self.controller._reconcile(key))
        self.go_on()

    def note_wanted(self, uid: str) -> None:
        """Note how many replicas, and which PodGroup, the controller knows of."""
        known = self.known(uid)
        for task in () if known is None else known.spec.tasks:
            self.wanted[task.name] = min(task.replicas, self.wanted.get(task.name, task.replicas))
        record = self.record(uid)
        if record is not None and record.group is not None:
            self.groups.add(record.group.metadata.uid)

    def go_on(self) -> None:
        """Run until every coroutine waits or has ended, and settle the turn if it is over."""
        self.loop.run_ready()
        if self.loop.broken:
            raise self.loop.broken[0]
        if self.task is None or not self.task.done():
            return
        task, self.task = self.task, None
        failure = task.exception()
        if failure is None:
            self.turns.succeeded(self.key)
        elif isinstance(failure, errors.ApiError):
            self.turns.failed(self.key)
        else:
            raise failure

    def end(self, keep: Callable[[], bool]) -> None:
        """End as SIGKILL would."""
        self.client.die(keep)
        if self.task is not None:
            self.task.cancel()
            self.loop.run_ready()
            self.task = None
