"""What the times of pods say: from room to bind, from creation to reason, and how full the nodes were.

Room is counted in slots (:mod:`benchmarks.steady.load`). A pod that has ended leaves a slot, a bind takes one. A gang
of ``size`` pods has room while at least ``size`` slots are free. From room to bind sent is the time of a pod's bind
minus the latest of:

- when the free slots last rose to the size of its gang (of one pod, for a scheduler that binds pods one at a time)
- when the last pod of its gang was created

A gang takes all its slots at its first bind, because it is decided then; the others are only under way.
"""

import bisect
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.steady.load import Gang, Plan
from benchmarks.steady.times import PodTimes

Pods = Mapping[str, PodTimes]


@dataclass
class RoomSamples:
    """Seconds from room to bind sent, one per pod bound in the span."""

    seconds: list[float] = field(default_factory=list)
    without_room: int = 0
    """Binds for which too few slots were free: counted from the latest end of a pod instead."""


@dataclass
class ReasonSamples:
    """Seconds from creation to reason, one per pod that was created in the span and not bound at once."""

    seconds: list[float] = field(default_factory=list)
    missing: int = 0
    """Pods with neither reason nor node at the end: they are among the seconds with their age, a lower bound."""


class _Room:
    """The free slots, and since when at least so many are free."""

    def __init__(self, slots: int, sizes: Iterable[int], since: float) -> None:
        self._free = slots
        self._since: dict[int, float] = {size: since for size in sizes if size <= slots}
        self._sizes = sorted(set(sizes))
        self.last_end = since

    def take(self, number: int) -> None:
        self._free -= number
        for size in self._sizes:
            if size > self._free:
                self._since.pop(size, None)

    def give(self, at: float) -> None:
        self._free += 1
        self.last_end = at
        for size in self._sizes:
            if size <= self._free:
                self._since.setdefault(size, at)

    def since(self, size: int) -> float | None:
        return self._since.get(size)


def room_to_bind(plan: Plan, pods: Pods, slots: int, span: tuple[float, float], *, gangs: bool) -> RoomSamples:
    """Return the samples of the pods that were bound in a span; ``gangs`` says whether gangs are bound as a whole."""
    ends = [(pod.ended, None) for pod in pods.values() if pod.ended is not None]
    binds: list[tuple[float, list[PodTimes] | None]] = []
    for gang in plan.gangs:
        bound = [pod for name in gang.pods() if (pod := pods.get(name)) is not None and pod.bound is not None]
        groups = [bound] if gangs else [[pod] for pod in bound]
        binds += [(min(_bound(pod) for pod in group), group) for group in groups if group]
    sizes = {gang.size for gang in plan.gangs} if gangs else {1}
    room, found = _Room(slots, sizes | {1}, -math.inf), RoomSamples()
    # An end that was seen at the same moment as a bind came first: it made room for it.
    for at, group in sorted([*ends, *binds], key=lambda one: (one[0], one[1] is not None)):
        if group is None:
            room.give(at)
            continue
        size = len(group)
        since = room.since(size)
        ready = max(pod.created for pod in group)
        for pod in group:
            if span[0] <= _bound(pod) < span[1]:
                found.without_room += since is None
                found.seconds.append(
                    _bound(pod) - min(_bound(pod), max(room.last_end if since is None else since, ready))
                )
        room.take(size)
    return found


def _bound(pod: PodTimes) -> float:
    assert pod.bound is not None
    return pod.bound


def creation_to_reason(gangs: Iterable[Gang], pods: Pods, span: tuple[float, float], until: float) -> ReasonSamples:
    """Return the samples of the pods of these gangs that were created in a span, as known at a later time."""
    found = ReasonSamples()
    for gang in gangs:
        for name in gang.pods():
            pod = pods.get(name)
            if pod is None or not span[0] <= pod.created < span[1]:
                continue
            if pod.reason is not None:
                found.seconds.append(pod.reason - pod.created)
            elif pod.bound is None:
                found.seconds.append(until - pod.created)
                found.missing += 1
    return found


def marks(seconds: Sequence[float]) -> dict[str, float]:
    """Return p50, p99 and the worst, in ms, and how many there are; without samples, only that."""
    ordered = sorted(seconds)
    if not ordered:
        return {"n": 0}
    places = {"p50": 0.5, "p99": 0.99, "worst": 1.0}
    found = {name: round(_at(ordered, part) * 1000, 1) for name, part in places.items()}
    return {**found, "n": len(ordered)}


def _at(ordered: Sequence[float], part: float) -> float:
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)]


def quantiles(seconds: Sequence[float]) -> list[float]:
    """Return 101 quantiles in seconds, from the least to the greatest, for the plot; empty without samples."""
    ordered = sorted(seconds)
    return [round(_at(ordered, number / 100), 4) for number in range(101)] if ordered else []


def full(pods: Pods, slots: int, at: Sequence[float]) -> list[float]:
    """Return which share of the slots was taken at each of these times."""
    bound = sorted(pod.bound for pod in pods.values() if pod.bound is not None)
    ended = sorted(pod.ended for pod in pods.values() if pod.ended is not None)
    return [round((bisect.bisect(bound, one) - bisect.bisect(ended, one)) / slots, 4) for one in at]


def waiting(gangs: Iterable[Gang], pods: Pods, at: Sequence[float]) -> list[int]:
    """Return how many gangs were there and had an unbound pod, at each of these times."""
    came: list[float] = []
    went: list[float] = []
    for gang in gangs:
        known = [pod for name in gang.pods() if (pod := pods.get(name)) is not None]
        if not known:
            continue
        came.append(min(pod.created for pod in known))
        if len(known) == gang.size and all(pod.bound is not None for pod in known):
            went.append(max(_bound(pod) for pod in known))
    came.sort()
    went.sort()
    return [bisect.bisect(came, one) - bisect.bisect(went, one) for one in at]


def waiting_pods(pods: Pods, at: Sequence[float]) -> list[int]:
    """Return how many pods were there and had no node, at each of these times."""
    created = sorted(pod.created for pod in pods.values())
    bound = sorted(pod.bound for pod in pods.values() if pod.bound is not None)
    return [bisect.bisect(created, one) - bisect.bisect(bound, one) for one in at]
