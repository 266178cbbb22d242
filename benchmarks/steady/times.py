"""When each pod was created, got a reason, was bound and ended: monotonic times of one observer."""

import time
from collections.abc import Callable, Iterable

import msgspec


class PodTimes(msgspec.Struct):
    """What happened to one pod, in monotonic seconds; None if it has not happened."""

    created: float
    reason: float | None = None
    """First seen with the condition PodScheduled=False."""
    bound: float | None = None
    """First seen with a node."""
    ended: float | None = None
    """First seen as Succeeded: its node has room again."""


class TimesLog:
    """Notes the first time of each state of each pod."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.pods: dict[str, PodTimes] = {}
        self._clock = clock

    def note(self, name: str, node: str, phase: str, scheduled: str) -> PodTimes:
        """Note one state of a pod; ``scheduled`` is the status of its condition PodScheduled, "" without one."""
        now = self._clock()
        pod = self.pods.get(name)
        if pod is None:
            pod = self.pods[name] = PodTimes(now)
        if pod.reason is None and not node and scheduled == "False":
            pod.reason = now
        if pod.bound is None and node:
            pod.bound = now
        if pod.ended is None and phase == "Succeeded":
            pod.ended = now
        return pod

    def without_reason(self, names: Iterable[str]) -> int:
        """Return how many of these pods have neither a reason nor a node."""
        return sum((pod := self.pods.get(name)) is None or (pod.reason is None and pod.bound is None) for name in names)
