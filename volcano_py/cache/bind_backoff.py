"""Pods whose binds failed: they are left alone for a while, the longer the oftener the binds of their job fail.

A refusal for good (a policy, a right) would otherwise be repeated with every cycle. Failures of binds that were decided
together count once, however long the API server takes to refuse them all, and the time runs from the last of them. A
pod is tried again before its time when it, or what its PodGroup asks for, has changed.
"""

import random
from typing import Final

from volcano_py.cache.state import ClusterState
from volcano_py.kube.backoff import Backoff
from volcano_py.model.objects import JobKey

FIRST_S: Final = 1.0
CAP_S: Final = 60.0


class _Failures:
    __slots__ = ("backoff", "counted_at", "delay_s", "group_revision", "pods", "until")

    def __init__(self, rng: random.Random) -> None:
        self.backoff = Backoff(rng, first_s=FIRST_S, cap_s=CAP_S)
        self.counted_at = float("-inf")  # when the first failure of the last decision was counted
        self.delay_s = 0.0
        self.until = float("-inf")
        self.group_revision = 0
        self.pods: set[str] = set()  # uids


class BindBackoff:
    """The jobs whose binds failed last, each with the pods that wait for that."""

    def __init__(self, state: ClusterState, rng: random.Random) -> None:
        self._state = state
        self._rng = rng
        self._of: dict[JobKey, _Failures] = {}
        self._job_of: dict[str, JobKey] = {}  # by uid of the pods

    def __bool__(self) -> bool:
        return bool(self._of)

    def failed(self, job: JobKey, uid: str, assumed_at: float, now: float) -> None:
        """Note that the bind of a pod failed that was assumed at this time."""
        self.over(uid, but=job)
        failures = self._of.get(job)
        if failures is None:
            failures = self._of[job] = _Failures(self._rng)
        if assumed_at > failures.counted_at:
            failures.counted_at, failures.delay_s = now, min(failures.backoff.next(), CAP_S)
        failures.until = now + failures.delay_s
        failures.group_revision = self._state.group_revision(job)
        failures.pods.add(uid)
        self._job_of[uid] = job

    def over(self, uid: str, but: JobKey | None = None) -> None:
        """Note that a pod is bound, gone, or asks for something else than it did; not if it is of the job ``but``."""
        job = self._job_of.get(uid)
        if job is None or job == but:
            return
        del self._job_of[uid]
        pods = self._of[job].pods
        pods.discard(uid)
        if not pods:
            del self._of[job]

    def held(self, now: float) -> list[str]:
        """Return the uids of the pods that are left alone now."""
        changed = [job for job, one in self._of.items() if self._state.group_revision(job) != one.group_revision]
        for job in changed:
            for uid in self._of.pop(job).pods:
                del self._job_of[uid]
        return [uid for failures in self._of.values() if now < failures.until for uid in failures.pods]
