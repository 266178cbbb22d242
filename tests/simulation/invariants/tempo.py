"""How often programs ask again for what was refused."""

from collections import deque
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.simulation import objects
from tests.simulation.invariants.invariant import Invariant
from tests.simulation.loop import Process
from tests.simulation.network import End
from volcano_py.apiserver.store import Event
from volcano_py.kube.resource import target_of

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

_WINDOW_S: Final = 15.0
_MOST_REFUSED: Final = 11
"""Refusals of one request within the window; a back-off from 0.2 s that doubles makes eight.

The statuses of pods may be refused twice as often: reasons and nominations are written by two parts of a program. So
may everything if a queue changes meanwhile: the back-off begins anew then, since what was refused may be accepted now.
"""
_EARLY: Final = 4
"""An answer may be lost on its way, so that some requests come too early."""
_SLACK_S: Final = 0.3

_Key = tuple[str, str, str]


class RefusalsAreHeeded(Invariant):
    """Who is refused asks less and less often, and not before the time that the server has named."""

    name = "refusals are heeded"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._refused: dict[_Key, deque[float]] = {}
        self._not_before: dict[_Key, float] = {}
        self._early: dict[_Key, int] = {}
        self._rules: dict[str, tuple[object, object]] = {}  # of queues
        self._rules_changed_at = -inf

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Forget what was refused for an object that another of its name has replaced."""
        if resource == objects.QUEUES:
            queue = event.stored.obj
            rules = (queue.get("spec"), queue.get("status", {}).get("state"))
            if self._rules.get(event.stored.key) != rules:
                self._rules[event.stored.key] = rules
                self._rules_changed_at = self.world.loop.time()
        if event.type != "ADDED":
            return
        for key in [*self._refused]:
            if _is_about(key[2], resource, event.stored.key):
                self._refused.pop(key)
                self._not_before.pop(key, None)
                self._early.pop(key, None)

    def answered(self, asked: "Asked", status: int) -> None:
        """Count the refusals of a request."""
        machine = self.world.machines.get(asked.client.name)
        if machine is None or machine.process is not asked.client or asked.resource.startswith("leases"):
            return
        path = asked.path
        if asked.method == "POST" and asked.resource != "pods/binding":
            path = f"{path.partition('?')[0]}/{asked.taken}" if asked.taken else ""
        if asked.method == "GET" or not path:
            return  # lists have a back-off of their own; what is created is another object each time
        key = (f"{machine.name} {machine.starts}", asked.method, path)
        at = self.world.loop.time()
        if asked.resource != "pods/status":  # several parts of a program write it, each with its own pauses
            self._look_at_time(asked, key)
        if asked.lost:
            return  # a connection that breaks says nothing; several parts of a program may find out one by one
        if status < 400:
            self._refused.pop(key, None)
            self._early.pop(key, None)
            return
        if status == 429 and asked.retry_after_s:
            self._not_before[key] = at + asked.retry_after_s
        begins_anew = at - self._rules_changed_at < _WINDOW_S
        most = _MOST_REFUSED * (2 if asked.resource == "pods/status" or begins_anew else 1)
        times = self._refused.setdefault(key, deque(maxlen=2 * _MOST_REFUSED + 1))
        times.append(at)
        if len(times) > most and (lasted_s := at - times[-most - 1]) < _WINDOW_S:
            what = f"{asked.method} {path} {most + 1} times in {lasted_s:.1f} s"
            self.violated(f"{asked.client.name} sent {what}, refused each time")

    def _look_at_time(self, asked: "Asked", key: _Key) -> None:
        until = self._not_before.pop(key, None)
        if until is None or asked.sent_at >= until - _SLACK_S:
            return
        self._early[key] = early = self._early.get(key, 0) + 1
        if early >= _EARLY:
            self.violated(
                f"{asked.client.name} sent {asked.method} {asked.path} {early} times before the time of Retry-After"
            )


def _is_about(path: str, resource: str, key: str) -> bool:
    """Say whether the path of a request names this object."""
    about = target_of(path)
    name = f"{about.namespace}/{about.name}" if about.namespace else about.name
    return about.resource.partition("/")[0] == resource and name == key


class _Wait(NamedTuple):
    until: float
    connection: End


class RetryAfterIsHonoured(Invariant):
    """A write that was refused with Retry-After is not repeated by the same process before that time.

    The answer has surely arrived if the connection that brought it is still in use when the next request comes, and
    nobody garbles answers. The time counts from when the server answered. Leases are left out: their deadlines are
    shorter. So are creations without a name, and what several parts of a program ask for, each for itself: reads and
    the statuses of pods.
    """

    name = "Retry-After is honoured"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._waits: dict[tuple[Process, str, str], _Wait] = {}

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Forget what was refused for an object that another of its name has replaced."""
        if event.type == "ADDED":
            for key in [key for key in self._waits if _is_about(key[2], resource, event.stored.key)]:
                del self._waits[key]

    def answered(self, asked: "Asked", status: int) -> None:
        """Compare when a request was sent with what the last answer to it has said."""
        if asked.method == "GET" or asked.resource.startswith(("leases", "pods/status")):
            return
        if asked.method == "POST" and asked.resource != "pods/binding":
            return
        key = (asked.client, asked.method, asked.path)
        wait = self._waits.pop(key, None)
        arrived = wait is not None and not wait.connection.is_closing() and "garbled answers" not in self.world.struck
        if wait is not None and arrived and asked.sent_at < wait.until:
            early = wait.until - asked.sent_at
            self.violated(f"{asked.client.name} sent {asked.method} {asked.path} {early:.2f} s before Retry-After")
        if status in (429, 503) and asked.retry_after_s and asked.connection is not None:
            self._waits[key] = _Wait(self.world.loop.time() + asked.retry_after_s, asked.connection)
