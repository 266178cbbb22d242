"""Before the first cycle: every pod that is bound must be counted, or its room would be given away again.

The informers have delivered their lists by then. A fresh list of bound pods, made after that, is the proof: what a
former process of ours bound in its last moment is in it, and each of its pods is waited for.
"""

from typing import Final

import msgspec
import structlog

from volcano_py.cache.cluster import ClusterCache
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import PODS
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_ON_A_NODE: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
_LISTS: Final = 3
_POLL_S: Final = 0.02
_RETRY_S: Final = 1.0
_PAGE: Final = 2000  # pages of little structs


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
    """Holds the first cycle back until the cache knows every bound pod."""

    def __init__(self, client: ApiClient, cache: ClusterCache, *, clock: Clock, patience_s: float) -> None:
        self._client = client
        self._cache = cache
        self._clock = clock
        self._patience_s = patience_s
        self.missing: set[str] = set()
        """Names of bound pods that the cache does not count yet."""

    async def passed(self) -> None:
        """Return when every bound pod is counted; after some lists and some patience, with a warning, even if not.

        A pod may have ended between list and look; therefore a list that stays unmatched is made again.
        """
        for _ in range(_LISTS):
            bound = await self._list()
            deadline = self._clock.monotonic() + self._patience_s / _LISTS
            while True:
                self.missing = self._missing(bound)
                if not self.missing:
                    log.info("start barrier passed", bound_pods=len(bound))
                    return
                if self._clock.monotonic() >= deadline:
                    break
                await self._clock.sleep(_POLL_S)
        log.warning(
            "bound pods that the watch does not show; scheduling starts without them",
            count=len(self.missing),
            pods=sorted(self.missing)[:10],
        )
        self.missing = set()

    async def _list(self) -> dict[str, str]:
        """Return the names of bound pods by uid; tried again until the API server answers."""
        while True:
            bound: dict[str, str] = {}
            try:
                pages = self._client.list_pages(PODS, _BoundPod, field_selector=_ON_A_NODE, page_size=_PAGE)
                async for page in pages:
                    for pod in page.items:
                        if pod.spec.node_name:
                            bound[pod.metadata.uid] = f"{pod.metadata.namespace}/{pod.metadata.name}"
                return bound
            except errors.ApiError as error:
                log.warning("bound pods cannot be listed; trying again", error=str(error))
                await self._clock.sleep(_RETRY_S)

    def _missing(self, bound: dict[str, str]) -> set[str]:
        """Return the names of those that the cache has on no node; one that cannot be read has closed its node."""
        unreadable = {entry.uid for entry in self._cache.unreadable()}
        task = self._cache.store.task
        return {
            name
            for uid, name in bound.items()
            if uid not in unreadable and ((place := task(uid)) is None or not place.node)
        }
