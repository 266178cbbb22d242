"""Before the first cycle: every pod that is bound must be counted, or its room would be given away again.

The informers have delivered their lists by then. A fresh list of bound pods, made after that, is the proof: what a
former process of ours bound in its last moment is in it, and each of its pods is waited for. What ended the former
process may have silenced our watch as well; therefore pods that do not come are not only waited for but listed anew.
"""

import random
from collections.abc import Callable
from typing import Final

import msgspec
import structlog

from volcano_py.cache.cluster import ClusterCache
from volcano_py.kube import errors
from volcano_py.kube.backoff import Backoff
from volcano_py.kube.client import ApiClient
from volcano_py.kube.outage import Outage
from volcano_py.kube.resource import PODS
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_ON_A_NODE: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
_POLL_S: Final = 0.02
_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_TIMEOUT_S: Final = 10.0  # per page; doubled after each failure
_LONGEST_TIMEOUT_S: Final = 60.0
_PAGE: Final = 2000  # pages of little structs
_NAMED: Final = 10
_NAME: Final = "start barrier"


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    uid: str = ""
    name: str = ""
    namespace: str = ""


class _Spec(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


class _BoundPod(msgspec.Struct, gc=False):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)


class StartBarrier:
    """Holds the first cycle back until the cache knows every bound pod, however long that takes."""

    def __init__(
        self,
        client: ApiClient,
        cache: ClusterCache,
        *,
        relist: Callable[[], None],
        outage: Outage,
        clock: Clock,
        rng: random.Random,
        patience_s: float,
    ) -> None:
        """Take how to have pods listed anew, and how long the watch has to show what a fresh list names."""
        self._client = client
        self._cache = cache
        self._relist = relist
        self._outage = outage
        self._clock = clock
        self._backoff = Backoff(rng, first_s=_PAUSE_S, cap_s=_LONGEST_PAUSE_S)
        self._patience_s = patience_s
        self.waits_for = "bound pods are not listed yet"
        """What is missing still; empty when the barrier is passed."""
        self.held = False
        """Whether something has gone wrong while it waits: a list has failed, or pods do not come."""

    async def passed(self) -> None:
        """Return when every bound pod is counted.

        A pod may have ended between list and look; therefore the proof is made anew in each round. A round without
        success ends in a new list of the informer, which is made over new connections.
        """
        while True:
            bound = await self._list()
            missing = await self._missing_after_a_while(bound)
            if not missing:
                break
            self.held = True
            log.warning(
                "bound pods that the watch does not show: pods are listed anew, nothing is scheduled before",
                count=len(missing),
                pods=sorted(missing.values())[:_NAMED],
            )
            self._relist()
            await self._clock.sleep(self._backoff.next())
        self.waits_for = ""
        self.held = False
        log.info("start barrier passed", bound_pods=len(bound))

    async def _missing_after_a_while(self, bound: dict[str, str]) -> dict[str, str]:
        """Return which pods are still not counted when the time for it is up, or none as soon as all are."""
        deadline = self._clock.monotonic() + self._patience_s
        missing = self._missing(bound)
        while missing:
            some = ", ".join(sorted(missing.values())[:_NAMED])
            self.waits_for = f"{len(missing)} bound pods are not counted yet, among them {some}"
            if self._clock.monotonic() >= deadline:
                break
            await self._clock.sleep(_POLL_S)
            missing = self._missing(missing)
        return missing

    async def _list(self) -> dict[str, str]:
        """Return the names of bound pods by uid; tried again until the API server answers."""
        failures = Backoff(self._backoff.rng)
        while True:
            timeout_s = min(_TIMEOUT_S * 2.0 ** min(failures.failures, 10), _LONGEST_TIMEOUT_S)
            self._client.distrust_idle()  # they may be as dead as that of the watch
            try:
                bound = await self._list_once(timeout_s)
            except errors.ApiError as error:
                self.held = True
                self.waits_for = f"bound pods cannot be listed: {error}"
                pause_s = failures.next(error.retry_after_s)
                tell = log.debug if self._outage.failed(_NAME, error) else log.warning
                tell("bound pods cannot be listed; trying again", error=str(error), retry_in_s=round(pause_s, 2))
                await self._clock.sleep(pause_s)
            else:
                self._outage.answered(_NAME)
                return bound

    async def _list_once(self, timeout_s: float) -> dict[str, str]:
        pages = self._client.list_pages(
            PODS, _BoundPod, field_selector=_ON_A_NODE, page_size=_PAGE, timeout_s=timeout_s
        )
        return {
            pod.metadata.uid: f"{pod.metadata.namespace}/{pod.metadata.name}"
            async for page in pages
            for pod in page.items
            if pod.spec.node_name
        }

    def _missing(self, bound: dict[str, str]) -> dict[str, str]:
        """Return those that the cache has on no node; one that cannot be read has closed its node."""
        unreadable = {entry.uid for entry in self._cache.unreadable()}
        task = self._cache.store.task
        return {
            uid: name
            for uid, name in bound.items()
            if uid not in unreadable and ((place := task(uid)) is None or not place.node)
        }
