"""The start barrier: no cycle runs before the cache counts every bound pod, so that no room is given away twice.

The informers have delivered their first lists by then. After that, the barrier makes a fresh list of bound pods, which
also contains what the last leader bound in its last moment. It waits until the cache counts each of these pods, or
knows that the pod has ended: it says so, or it has all changes up to that list and not this pod. What ended the last
leader may have silenced our watch, too; therefore pods that do not come are listed anew.
"""

import random
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec
import structlog

from volcano_py.cache.cluster import ClusterCache
from volcano_py.effects.storage import is_older
from volcano_py.kube import errors
from volcano_py.kube.backoff import Backoff
from volcano_py.kube.client import ApiClient
from volcano_py.kube.outage import Outage
from volcano_py.kube.resource import PODS
from volcano_py.model.statuses import TaskStatus
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_ON_A_NODE: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
_ENDED: Final = (TaskStatus.SUCCEEDED, TaskStatus.FAILED)
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


class _Bound(NamedTuple):
    """The pods of a list that are on a node."""

    pods: dict[str, str]
    """Their names by uid."""
    version: str
    """The resourceVersion of the list."""


class StartBarrier:
    """Delays the first cycle until the cache counts every bound pod, however long that takes."""

    def __init__(
        self,
        client: ApiClient,
        cache: ClusterCache,
        *,
        relist: Callable[[], None],
        delivered: Callable[[], str],
        outage: Outage,
        clock: Clock,
        rng: random.Random,
        patience_s: float,
    ) -> None:
        """Prepare.

        ``relist`` lists pods anew; ``delivered`` returns the resourceVersion up to which the cache knows all changes of
        pods, "" if that is not known; ``patience_s`` is how long the watch has to show the pods of a fresh list.
        """
        self._client = client
        self._cache = cache
        self._relist = relist
        self._delivered = delivered
        self._outage = outage
        self._clock = clock
        self._backoff = Backoff(rng, first_s=_PAUSE_S, cap_s=_LONGEST_PAUSE_S)
        self._patience_s = patience_s
        self.waits_for = "bound pods are not listed yet"
        """What is still missing; empty when the barrier is passed."""
        self.blocked = False
        """Whether something is wrong: a list failed, or the watch does not show some pods."""

    async def passed(self) -> None:
        """Return when every bound pod is counted.

        Each round begins with a fresh list. After a round without success the informer lists pods anew, over new
        connections.
        """
        while True:
            bound = await self._list()
            missing = await self._missing_after_a_while(bound)
            if not missing:
                break
            self.blocked = True
            log.warning(
                "bound pods that the watch does not show: pods are listed anew, nothing is scheduled before",
                count=len(missing),
                pods=sorted(missing.values())[:_NAMED],
            )
            self._relist()
            await self._clock.sleep(self._backoff.next())
        self.waits_for = ""
        self.blocked = False
        log.info("start barrier passed", bound_pods=len(bound.pods))

    async def _missing_after_a_while(self, bound: _Bound) -> dict[str, str]:
        """Return the pods that are not counted when the time is up; return none as soon as all are."""
        deadline = self._clock.monotonic() + self._patience_s
        missing = self._missing(bound)
        while missing:
            some = ", ".join(sorted(missing.values())[:_NAMED])
            self.waits_for = f"{len(missing)} bound pods are not counted yet, among them {some}"
            if self._clock.monotonic() >= deadline:
                break
            await self._clock.sleep(_POLL_S)
            missing = self._missing(bound._replace(pods=missing))
        return missing

    async def _list(self) -> _Bound:
        """Return the bound pods; tried again until the API server answers."""
        failures = Backoff(self._backoff.rng)
        while True:
            timeout_s = min(_TIMEOUT_S * 2.0 ** min(failures.failures, 10), _LONGEST_TIMEOUT_S)
            self._client.distrust_idle()  # they may be broken, as that of the watch
            try:
                bound = await self._list_once(timeout_s)
            except errors.ApiError as error:
                self.blocked = True
                self.waits_for = f"bound pods cannot be listed: {error}"
                pause_s = failures.next(error.retry_after_s)
                log_it = log.debug if self._outage.failed(_NAME, error) else log.warning
                log_it("bound pods cannot be listed; trying again", error=str(error), retry_in_s=round(pause_s, 2))
                await self._clock.sleep(pause_s)
            else:
                self._outage.answered(_NAME)
                return bound

    async def _list_once(self, timeout_s: float) -> _Bound:
        pages = self._client.list_pages(
            PODS, _BoundPod, field_selector=_ON_A_NODE, page_size=_PAGE, timeout_s=timeout_s
        )
        pods, version = dict[str, str](), ""
        async for page in pages:
            version = page.resource_version
            for pod in page.items:
                if pod.spec.node_name:
                    pods[pod.metadata.uid] = f"{pod.metadata.namespace}/{pod.metadata.name}"
        return _Bound(pods, version)

    def _missing(self, bound: _Bound) -> dict[str, str]:
        """Return those that the cache neither has on a node nor knows to have ended.

        Unreadable ones have closed their nodes already.
        """
        unreadable = {entry.uid for entry in self._cache.unreadable()}
        task = self._cache.store.task
        all_known = not is_older(self._delivered(), bound.version)

        def is_missing(uid: str) -> bool:
            place = task(uid)
            if place is None:
                return not all_known
            return not place.node and place.status not in _ENDED

        return {uid: name for uid, name in bound.pods.items() if uid not in unreadable and is_missing(uid)}
