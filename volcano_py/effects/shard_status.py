"""Writes the status of our NodeShard: which nodes this scheduler uses. It is written when the shard changes.

Other schedulers take over a node once our status does not name it any more. Therefore the status says what the cache
says at the moment of the write.
"""

import random
from collections.abc import Callable
from typing import Final

import msgspec
import structlog

from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import NODE_SHARDS
from volcano_py.metrics.effects import WriteQueueMetrics
from volcano_py.model.facts import NodeShardRecord, Shard
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.write_queue import WriteQueue, WriteQueueOptions

log = structlog.get_logger()

NAME: Final = "shard status"
DEFAULT_OPTIONS: Final = WriteQueueOptions(rate_per_s=5, burst=10, workers=1, capacity=1, delay_s=0.05)
_TIMEOUT_S: Final = 10.0


class _Shard(msgspec.Struct):
    """An answer whose content is not needed."""


class ShardStatusWriter:
    """Writes which nodes this scheduler uses.

    ``own`` returns our NodeShard as the watch shows it, None if it does not exist; ``shard`` returns what we use.
    """

    def __init__(
        self,
        client: ApiClient,
        metrics: WriteQueueMetrics,
        name: str,
        *,
        clock: Clock,
        rng: random.Random,
        own: Callable[[], NodeShardRecord | None],
        shard: Callable[[], Shard | None],
        options: WriteQueueOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._client = client
        self._name = name
        self._own = own
        self._shard = shard
        self._missed = False
        self._write_queue: WriteQueue[str, None] = WriteQueue(
            NAME, self._write, options, metrics, clock=clock, rng=rng, outage=client.outage
        )
        self._write_queue.on_lost(lambda _: self.look())  # no cycle decides it again; the back-off goes on

    def start(self, supervisor: Supervisor) -> None:
        """Start writing, and write the status now if it is outdated."""
        self._write_queue.start(supervisor)
        self.look()

    def look(self) -> None:
        """Write the status if it is outdated."""
        if self._own() is None:
            if not self._missed:
                log.warning(
                    "our NodeShard does not exist, so no other node is ours than those it named last: create it with "
                    "spec.nodesDesired, or name another one with --scheduler-sharding-name",
                    shard=self._name,
                )
            self._missed = True
            return
        self._missed = False
        if self._due() is not None:
            self._write_queue.put(self._name, None)

    def _due(self) -> dict[str, list[str]] | None:
        """Return the status as it should be, None if it is so already."""
        own, shard = self._own(), self._shard()
        if own is None or shard is None:
            return None
        in_use, to_remove, to_add = shard.nodes, shard.nodes - own.desired, own.desired - shard.nodes
        if (own.in_use, own.to_remove, own.to_add) == (in_use, to_remove, to_add):
            return None
        return {"nodesInUse": sorted(in_use), "nodesToRemove": sorted(to_remove), "nodesToAdd": sorted(to_add)}

    async def _write(self, name: str, _: None) -> str:
        status = self._due()
        if status is None:
            return "unchanged"
        try:
            await self._client.patch(
                NODE_SHARDS, name, {"status": status}, _Shard, subresource="status", timeout_s=_TIMEOUT_S
            )
        except errors.NotFound:
            return "obsolete"
        return "written"
