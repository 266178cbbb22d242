"""Eviction back-off: a pod whose eviction was refused is not evicted for a while, longer with every refusal.

Without it, every cycle would repeat a deletion that the API server always refuses, because of a webhook or a missing
right. The delays are those of refused binds.
"""

import random

from volcano_py.cache.bind_backoff import CAP_S, FIRST_S
from volcano_py.kube.backoff import Backoff
from volcano_py.snapshot.store import ClusterStore


class EvictionBackoff:
    """The pods whose evictions were refused, by uid."""

    def __init__(self, store: ClusterStore, rng: random.Random) -> None:
        self._store = store
        self._rng = rng
        self._refused: dict[str, tuple[Backoff, float]] = {}  # with the time until which the pod stays

    def refused(self, uid: str, now: float) -> None:
        """Note that an eviction was refused; times are monotonic seconds."""
        self._refused = {one: refused for one, refused in self._refused.items() if self._store.task(one) is not None}
        backoff = self._refused[uid][0] if uid in self._refused else Backoff(self._rng, FIRST_S, CAP_S)
        self._refused[uid] = backoff, now + min(backoff.next(), CAP_S)

    def end(self, uid: str) -> None:
        """Note that the pod is evicted."""
        self._refused.pop(uid, None)

    def lasts(self, uid: str, now: float) -> bool:
        """Say whether the pod is backing off."""
        refused = self._refused.get(uid)
        return refused is not None and now < refused[1]
