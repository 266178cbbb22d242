"""A cluster that stays up: API server, nodes, webhooks, controllers and the scheduler, for kubectl and experiments."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from volcano_py.daemon.configuration import Configuration
from volcano_py.local import objects
from volcano_py.local.cluster import LocalCluster
from volcano_py.local.controllers import make_controllers
from volcano_py.local.running import running
from volcano_py.local.scheduler import make_scheduler
from volcano_py.local.webhooks import make_webhooks, reviews_begin
from volcano_py.runtime.signals import Shutdown


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The options of the cluster."""

    port: int = 0  # of the API server, 0 takes a free one
    nodes: int = 4
    cpu: str = "4"
    memory: str = "16Gi"
    extended: tuple[tuple[str, str], ...] = ()  # further resources of every node, such as nvidia.com/gpu


class LocalSystem:
    """A cluster with everything in this process; PortInUse when the port is taken."""

    def __init__(self, options: UpOptions, configuration: Configuration, shutdown: Shutdown) -> None:
        """Take the configuration of the scheduler; if it is of a file, the file is read again when it changes."""
        self._options = options
        self._configuration = configuration
        self._shutdown = shutdown
        self.cluster = LocalCluster(options.port, start_delay_s=None, node_lifecycle=True)
        self._stack = AsyncExitStack()
        self._daemons: list[asyncio.Task[int]] = []

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.cluster)
            for node in _nodes(self._options):
                self.cluster.create(node)
            manager = make_controllers(self.cluster.url)
            scheduler = make_scheduler(self.cluster.url, self._configuration.policy, self._configuration)
            webhooks = make_webhooks(self.cluster)
            for name, daemon in (("webhooks", webhooks), ("controller manager", manager), ("scheduler", scheduler)):
                self._daemons.append(await stack.enter_async_context(running(name, daemon, self._shutdown)))
                if daemon is webhooks and not self._shutdown.graceful.is_set():
                    await reviews_begin(self.cluster)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return self.cluster.url

    async def until_end(self) -> None:
        """Wait until a shutdown is requested; a daemon that fails before ends the wait with its error."""
        asked = asyncio.create_task(self._shutdown.graceful.wait(), name="end-of-system")
        try:
            await asyncio.wait({asked, *self._daemons}, return_when=asyncio.FIRST_COMPLETED)
            for task in self._daemons:
                if task.done():
                    await task
        finally:
            asked.cancel()


def _nodes(options: UpOptions) -> Iterator[objects.Obj]:
    width = len(str(max(options.nodes - 1, 0)))
    resources = {"cpu": options.cpu, "memory": options.memory, **dict(options.extended)}
    for number in range(options.nodes):
        node = objects.node(f"node-{number:0{width}}", resources)
        node["status"]["nodeInfo"] = {
            "kubeletVersion": "stand-in",
            "operatingSystem": "linux",
            "architecture": "amd64",
            "osImage": "none: containers are simulated",
        }
        yield node
