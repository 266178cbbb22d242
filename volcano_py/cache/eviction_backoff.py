"""Eviction back-off: a pod whose eviction was refused is not evicted for a while, longer with every refusal.

Without it, every cycle would repeat a deletion that the API server always refuses, because of a webhook or a missing
right.
"""

import random
from typing import Final

from volcano_py.kube.backoff import Backoff
from volcano_py.snapshot.store import ClusterStore

FIRST_S: Final = 1.0
CAP_S: Final = 60.0


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

    def left_s(self, uid: str, now: float) -> float:
        """Return for how many seconds the pod stays, 0 if it may be evicted."""
        refused = self._refused.get(uid)
        return 0.0 if refused is None else max(0.0, refused[1] - now)
