"""The cluster of a local system: an embedded API server with the definitions of this project, and its kubelets."""

from collections.abc import Iterable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from volcano_py.apiserver import ApiServer, ApiServerOptions
from volcano_py.apiserver.kubelet import InProcessPort, Kubelet
from volcano_py.apiserver.registry import Registry
from volcano_py.local import objects
from volcano_py.local.manifests import definitions


class LocalCluster:
    """An API server and kubelets in this process; PortInUse when the port is taken."""

    def __init__(self, port: int = 0, start_delay_s: float | None = 0.3, node_lifecycle: bool = False) -> None:
        self._server = ApiServer(ApiServerOptions(port=port, node_lifecycle=node_lifecycle))
        self._kubelet_port = InProcessPort(self._server.registry)
        delays = {} if start_delay_s is None else {"pod-run": start_delay_s}
        self._kubelet = Kubelet(self._kubelet_port, delays=delays)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._server)
        for definition in definitions():
            self.create(definition)
        await self._stack.enter_async_context(self._kubelet)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return self._server.url

    @property
    def registry(self) -> Registry:
        """The objects of the API server."""
        return self._server.registry

    @property
    def writes(self) -> dict[tuple[str, str], int]:
        """Write requests over HTTP so far, by (verb, resource)."""
        return self._server.requests.writes()

    def create(self, obj: objects.Obj) -> None:
        """Create an object of any kind that the server knows."""
        resource = self.registry.resources.of_kind(obj["apiVersion"], obj["kind"])
        if resource is None:
            raise LookupError(f"the API server does not know {obj['apiVersion']} {obj['kind']}")
        self.registry.create(resource, obj["metadata"].get("namespace") if resource.namespaced else None, obj)

    def pods(self) -> Iterable[dict[str, Any]]:
        """Return all pods."""
        return self.registry.objects("pods")

    async def finish(self, pods: Iterable[dict[str, Any]]) -> None:
        """Mark running pods as Succeeded."""
        for pod in pods:
            await self._kubelet_port.patch_status("pods", pod, {"phase": "Succeeded"})
