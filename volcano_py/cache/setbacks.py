"""Pods whose binds failed: they are left alone for a while, the longer the oftener the binds of their job fail.

A refusal for good (a policy, a right) would otherwise be repeated with every cycle. Failures of one job that come
together count once. A pod is tried again before its time when it, or what its PodGroup asks for, has changed.
"""

import random
from typing import Final

from volcano_py.cache.state import ClusterState
from volcano_py.kube.backoff import Backoff
from volcano_py.model.objects import JobKey

FIRST_S: Final = 1.0
CAP_S: Final = 60.0


class _Setback:
    __slots__ = ("backoff", "group_revision", "pods", "until")

    def __init__(self, rng: random.Random) -> None:
        self.backoff = Backoff(rng, first_s=FIRST_S, cap_s=CAP_S)
        self.until = float("-inf")
        self.group_revision = 0
        self.pods: set[str] = set()  # uids


class Setbacks:
    """The jobs whose binds failed last, each with the pods that wait for that."""

    def __init__(self, state: ClusterState, rng: random.Random) -> None:
        self._state = state
        self._rng = rng
        self._of: dict[JobKey, _Setback] = {}

    def __bool__(self) -> bool:
        return bool(self._of)

    def failed(self, job: JobKey, uid: str, now: float) -> None:
        """Note that the bind of a pod failed."""
        setback = self._of.get(job)
        if setback is None:
            setback = self._of[job] = _Setback(self._rng)
        if now >= setback.until:
            setback.until = now + setback.backoff.next()
        setback.group_revision = self._state.group_revision(job)
        setback.pods.add(uid)

    def over(self, job: JobKey | None, uid: str) -> None:
        """Note that a pod is bound, gone, or asks for something else than it did."""
        if job is None or job not in self._of:
            return
        pods = self._of[job].pods
        pods.discard(uid)
        if not pods:
            del self._of[job]

    def held(self, now: float) -> list[str]:
        """Return the uids of the pods that are left alone now."""
        changed = [job for job, one in self._of.items() if self._state.group_revision(job) != one.group_revision]
        for job in changed:
            del self._of[job]
        return [uid for setback in self._of.values() if now < setback.until for uid in setback.pods]
