"""Keeps the loads of nodes up to date, from the source that the configuration in force names."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from volcano_py.conf.node_metrics import ADAPTOR, PROMETHEUS, NodeMetricsConf
from volcano_py.daemon.alarm import wait_for
from volcano_py.daemon.loads.custom_metrics import CustomMetrics
from volcano_py.daemon.loads.elasticsearch import Elasticsearch
from volcano_py.daemon.loads.poller import LoadPoller
from volcano_py.daemon.loads.prometheus import Prometheus
from volcano_py.daemon.loads.source import TIMEOUT_S, LoadSource
from volcano_py.kube.client import ApiClient
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.fetch import Fetcher

MakePoller = Callable[[LoadSource, float], LoadPoller]
"""Makes a poller of a source and an interval."""


class LoadKeeper:
    """Asks the source of the configuration in force. Volcano keeps the source that was named at the start."""

    def __init__(
        self,
        conf: Callable[[], NodeMetricsConf | None],
        client: ApiClient,
        make: MakePoller,
        *,
        clock: Clock,
    ) -> None:
        self._conf = conf
        self._client = client
        self._make = make
        self._clock = clock
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Note that the configuration may name another source now."""
        self._changed.set()

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            self._changed.clear()
            conf = self._conf()
            if conf is None:
                await self._changed.wait()  # no source until another configuration names one
                continue
            async with source_of(conf, self._client) as source:
                poller = self._make(source, conf.interval_s)
                while self._conf() == conf:
                    await poller.ask()
                    await wait_for(self._changed, self._clock, conf.interval_s)
                    self._changed.clear()


@asynccontextmanager
async def source_of(conf: NodeMetricsConf, client: ApiClient) -> AsyncIterator[LoadSource]:
    """Open the source that a configuration names; ``client`` reaches a source behind the API server."""
    if conf.kind == ADAPTOR:
        yield CustomMetrics(client)
        return
    async with Fetcher(
        timeout_s=TIMEOUT_S, verify=conf.verify, username=conf.username, password=conf.password
    ) as fetcher:
        if conf.kind == PROMETHEUS:
            yield Prometheus(fetcher, conf.address)
        else:
            yield Elasticsearch(fetcher, conf.address, conf.index, conf.host_field)
