"""Faults on demand: rules that make the server misbehave the way real ones do.

    server.faults.add(Fault("reply", verb="create", resource="pods/binding", code=409, times=3))
    server.faults.add(Fault("drop_after", verb="create", resource="pods/binding", probability=0.1))
    server.faults.add(Fault("delay", delay_s=0.5, verb="list"))
    server.faults.disconnect_watches("pods")                         # also abruptly, or with 410
    server.faults.duplicate_events("pods", 3)                        # on watches that are running already
    server.faults.compact()
    server.faults.inject({"apiVersion": "v1", "kind": "Pod", ...})   # past defaults and validation

Actions of a rule:

    reply             answer `code` (409 Conflict, 410 Expired, 429 with Retry-After, 5xx) without doing anything
    drop_before       close the connection before the request is carried out
    drop_after        carry the request out, then close the connection without an answer
    delay             carry the request out `delay_s` later
    duplicate_events  a watch delivers each of its first `events` events twice
    disconnect        a watch ends as soon as it has started (a clean end of stream)

A rule applies to requests that match all of `verb`, `resource` (`pods`, `pods/binding`,
`podgroups.scheduling.volcano.sh`), `namespace` and `name` (shell patterns); it lets `skip` matching requests
pass, then acts with `probability` (its own seeded generator, so a run can be repeated) at most `times` times.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.status import StatusError
from volcano_py.apiserver.store import Store, Stored, Watching

Ending = Literal["clean", "abrupt", "expired"]
Action = Literal["reply", "drop_before", "drop_after", "delay", "duplicate_events", "disconnect"]

_REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


@dataclass(eq=False, slots=True)
class Fault:
    """One rule. `hits` counts how often it acted."""

    action: Action
    verb: str = "*"
    resource: str = "*"
    namespace: str = "*"
    name: str = "*"
    times: int | None = None
    skip: int = 0
    probability: float = 1.0
    seed: int = 0
    code: int = 500
    message: str = "injected fault"
    retry_after_s: int | None = None
    delay_s: float = 0.0
    events: int = 1
    hits: int = 0
    _seen: int = field(default=0, repr=False)
    _random: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def decides(self, verb: str, resource: str, namespace: str, name: str) -> bool:
        """Whether the rule acts on this request; counts it."""
        if self.times is not None and self.hits >= self.times:
            return False
        if not (
            fnmatchcase(verb, self.verb)
            and fnmatchcase(resource, self.resource)
            and fnmatchcase(namespace, self.namespace)
            and fnmatchcase(name, self.name)
        ):
            return False
        self._seen += 1
        if self._seen <= self.skip or (self.probability < 1 and self._random.random() >= self.probability):
            return False
        self.hits += 1
        return True

    def error(self) -> StatusError:
        """The failure that a `reply` rule answers with."""
        retry_after_s = self.retry_after_s
        if retry_after_s is None and self.code == 429:
            retry_after_s = 1
        return StatusError(self.code, _REASONS.get(self.code, ""), self.message, retry_after_s=retry_after_s)


class Faults:
    """The rules in force, and faults that take effect at once."""

    def __init__(self, store: Store, inject: Callable[[Obj], Stored]) -> None:
        self._store = store
        self._inject = inject
        self._rules: list[Fault] = []

    def add(self, fault: Fault) -> Fault:
        """Put a rule in force; earlier rules are asked first."""
        self._rules.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Take a rule out of force."""
        self._rules.remove(fault)

    def clear(self) -> None:
        """Take every rule out of force."""
        self._rules.clear()

    def match(self, verb: str, resource: str, namespace: str, name: str) -> Fault | None:
        """The first rule that acts on this request."""
        for rule in self._rules:
            if rule.decides(verb, resource, namespace, name):
                return rule
        return None

    def disconnect_watches(self, resource: str = "*", how: Ending = "clean") -> int:
        """End the running watches of the resources that match the pattern; returns how many.

        `clean` ends the stream as a timeout does, `abrupt` closes the connection, `expired` sends ERROR 410 first.
        """
        watchers = self._watchers(resource)
        for watcher in watchers:
            if how == "abrupt":
                watcher.abort()
            elif how == "expired":
                watcher.expire()
            watcher.close()
        return len(watchers)

    def duplicate_events(self, resource: str = "*", count: int = 1) -> None:
        """Let each running watch of the matching resources deliver its next `count` events twice."""
        for watcher in self._watchers(resource):
            watcher.duplicate(count)

    def _watchers(self, resource: str) -> list[Watching]:
        return [
            watcher
            for collection in self._store.collections.values()
            if fnmatchcase(collection.name, resource)
            for watcher in collection.watchers
        ]

    def compact(self, rv: int | None = None) -> None:
        """Forget the history now (up to `rv`), so that older versions are answered with 410."""
        self._store.compact(rv)

    def inject(self, obj: Obj) -> Stored:
        """Store an object as it is, past defaults, admission and validation."""
        return self._inject(obj)
