"""Finds promises of volumes that belong to nobody, and has them undone: at the start of a term, and now and then.

At the start, before the first cycle, no bind of ours is under way: what is promised for our pods was promised by a
scheduler that is gone. Later, a promise is undone when two looks in a row find it, so that none of a bind that is just
beginning or ending is touched.
"""

from typing import Final

import structlog

from volcano_py.cache.cluster import ClusterCache
from volcano_py.effects.orphans import ClaimUser, Shelf, orphans
from volcano_py.effects.preparer import Preparer
from volcano_py.model.decisions import PrepareStep
from volcano_py.model.volumes import WAIT_FOR_FIRST_CONSUMER, ClaimKey
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_AT_START_S: Final = 10.0


class PromiseRecovery:
    """Looks at what the watch shows; a pass without such promises costs a look at each claim and volume."""

    def __init__(self, cache: ClusterCache, preparer: Preparer, *, owner: str, clock: Clock, every_s: float) -> None:
        self._cache = cache
        self._preparer = preparer
        self._owner = owner
        self._clock = clock
        self._every_s = every_s
        self._seen: frozenset[PrepareStep] = frozenset()

    async def at_start(self) -> None:
        """Have everything undone that is promised to nobody; go on after a while, even if it takes longer."""
        found = self._look()
        if not found:
            return
        log.info("promises of volumes without a bind are undone", count=len(found))
        self._preparer.undo_orphans(found)
        if not await self._preparer.undone(_AT_START_S):
            log.warning("some promises of volumes are not undone yet; trying again")

    async def run(self) -> None:
        """Look every few seconds, until cancelled."""
        while True:
            await self._clock.sleep(self._every_s)
            found = self._look()
            again = [step for step in found if step in self._seen]
            self._seen = frozenset(found)
            self._preparer.undo_orphans(again)

    def _look(self) -> list[PrepareStep]:
        storage = self._cache.store.volumes
        classes = storage.classes
        shelf = Shelf(
            storage.claims.values(),
            storage.volumes.values(),
            self._cache.volumes.claim,
            lambda name: name in classes and classes[name].binding_mode == WAIT_FOR_FIRST_CONSUMER,
            self._preparer.needs,
        )
        return orphans(shelf, self._users, self._owner)

    def _users(self, claims: frozenset[ClaimKey]) -> dict[ClaimKey, list[ClaimUser]]:
        """Find the pods that use claims."""
        storage, ledger = self._cache.store.volumes, self._cache.binds.ledger
        return {
            key: [
                ClaimUser(record.uid, not node and not record.foreign, ledger.get(record.uid) is not None)
                for record, node in storage.users(key)
            ]
            for key in claims
        }
