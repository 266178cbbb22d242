"""Bind back-off: a pod whose bind failed is not scheduled for a while, longer with every failure of its job.

Without it, every cycle would repeat a bind that the API server always refuses (because of a policy or a missing right).
Binds that were decided together count as one failure, even if the API server takes long to refuse them all. The time
runs from the last of them. It ends early if the pod changes, or what its PodGroup asks for.
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
    """The jobs with failed binds, each with its pods that are backing off."""

    def __init__(self, state: ClusterState, rng: random.Random) -> None:
        self._state = state
        self._rng = rng
        self._by_job: dict[JobKey, _Failures] = {}
        self._job_of: dict[str, JobKey] = {}  # by uid of the pods

    def __bool__(self) -> bool:
        return bool(self._by_job)

    def failed(self, job: JobKey, uid: str, assumed_at: float, now: float) -> None:
        """Note that the bind of a pod failed; it was assumed at ``assumed_at``."""
        self.end(uid, unless_of=job)
        failures = self._by_job.get(job)
        if failures is None:
            failures = self._by_job[job] = _Failures(self._rng)
        if assumed_at > failures.counted_at:
            failures.counted_at, failures.delay_s = now, min(failures.backoff.next(), CAP_S)
        failures.until = now + failures.delay_s
        failures.group_revision = self._state.group_revision(job)
        failures.pods.add(uid)
        self._job_of[uid] = job

    def end(self, uid: str, unless_of: JobKey | None = None) -> None:
        """End the back-off of a pod that is bound, gone or has changed; not if its job is ``unless_of``."""
        job = self._job_of.get(uid)
        if job is None or job == unless_of:
            return
        del self._job_of[uid]
        pods = self._by_job[job].pods
        pods.discard(uid)
        if not pods:
            del self._by_job[job]

    def backing_off(self, now: float) -> list[str]:
        """Return the uids of the pods that are backing off now."""
        changed = [job for job, one in self._by_job.items() if self._state.group_revision(job) != one.group_revision]
        for job in changed:
            for uid in self._by_job.pop(job).pods:
                del self._job_of[uid]
        return [uid for failures in self._by_job.values() if now < failures.until for uid in failures.pods]
