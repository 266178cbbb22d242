"""An embedded API server that notes itself when pods were created, got a reason, were bound and ended.

python -m benchmarks.steady.apiserver    prints "serving on URL"

/metrics    requests by verb and resource, in the form of kube-apiserver
/pod-times  the times of all pods so far (:class:`~benchmarks.steady.times.PodTimes` by name)
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Final

import msgspec
from aiohttp import web

from benchmarks.steady.times import TimesLog
from volcano_py.apiserver.frontend import Frontend
from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.options import ApiServerOptions
from volcano_py.apiserver.server import ApiServer
from volcano_py.apiserver.store import Collection, Event
from volcano_py.local.manifests import definitions
from volcano_py.runtime.garbage import collect_in_small_steps
from volcano_py.runtime.loop import loop_factory
from volcano_py.runtime.signals import Shutdown, shutdown_on_signals

_METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "get": "GET"}

# kube-scheduler waits for these lists, which are empty here.
_LISTED_ALSO: Final = {"ResourceClaim": "Namespaced", "ResourceSlice": "Cluster", "DeviceClass": "Cluster"}


def _listener(log: TimesLog) -> Callable[[Collection, Event], None]:
    def note(collection: Collection, event: Event) -> None:
        if collection.name != "pods" or event.type == "DELETED":
            return
        pod = event.stored.obj
        status = pod.get("status") or {}
        scheduled = next((one["status"] for one in status.get("conditions") or () if one["type"] == "PodScheduled"), "")
        log.note(pod["metadata"]["name"], pod["spec"].get("nodeName") or "", status.get("phase", ""), scheduled)

    return note


def _metrics(server: ApiServer) -> str:
    lines = []
    for (verb, counted_as), number in server.requests.snapshot().items():
        resource, _, subresource = counted_as.partition("/")
        plural, _, group = resource.partition(".")
        labels = f'group="{group}",resource="{plural}",subresource="{subresource}",verb="{_METHODS.get(verb, verb)}"'
        lines.append(f"apiserver_request_total{{{labels}}} {number}\n")
    return "".join(lines)


def _answer_also(server: ApiServer, log: TimesLog) -> None:
    """Let this process answer two more paths; the API server stays as it is."""
    handle = Frontend.handle

    async def handled(self: Frontend, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/metrics":
            return web.Response(text=_metrics(server))
        if request.path == "/pod-times":
            return web.Response(body=msgspec.json.encode(log.pods))
        return await handle(self, request)

    Frontend.handle = handled  # type: ignore[method-assign]


def _definition(kind: str, scope: str) -> Obj:
    group, plural = "resource.k8s.io", "deviceclasses" if kind == "DeviceClass" else f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, only for this benchmark"},
        },
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


async def _serve() -> None:
    shutdown, log = Shutdown(), TimesLog()
    with shutdown_on_signals(shutdown):
        server = ApiServer(ApiServerOptions())
        server.store.listeners.append(_listener(log))
        _answer_also(server, log)
        async with server:
            for definition in [*definitions(), *(_definition(*one) for one in _LISTED_ALSO.items())]:
                server.create(definition)
            print(f"serving on {server.url}", flush=True)
            await shutdown.graceful.wait()


def main() -> int:
    """Serve until a signal ends the process."""
    collect_in_small_steps()  # with 50,000 pods, Python's own thresholds stop the server for half a second now and then
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
