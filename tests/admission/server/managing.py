"""A webhook manager on an embedded API server, both in this process, and writes that pass through its webhooks."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from volcano_py.admission.contract import Options, Refusal, Request, Rule, Verdict, View
from volcano_py.admission.manager import WebhookManager
from volcano_py.admission.options import DEFAULT_NAMESPACE, WebhookOptions
from volcano_py.admission.paths import WEBHOOKS
from volcano_py.admission.server import ServerOptions
from volcano_py.apiserver import ApiServer
from volcano_py.kube.credentials import Credentials
from volcano_py.runtime.signals import Shutdown
from volcano_py.testing import a_namespace, manifest

CONFIGURATIONS = Path(__file__).parents[3] / "manifests" / "webhooks"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def refuse_bad(request: Request, _: View, __: Options) -> Verdict:
    """Refuse objects whose name begins with "bad"."""
    return Verdict((Refusal("it is bad"),)) if request.name.startswith("bad") else Verdict()


FAKE_RULES: dict[str, Rule] = dict.fromkeys(WEBHOOKS, refuse_bad)


@asynccontextmanager
async def webhooks(
    server: ApiServer, port: int, rules: Mapping[str, Rule] | None = None, **options: Any
) -> AsyncIterator[WebhookManager]:
    """Start a webhook manager and wait until it is ready; it must end in order."""
    chosen: dict[str, Any] = {
        "paths": tuple(WEBHOOKS),
        "url": f"https://127.0.0.1:{port}",
        "server": ServerOptions(host="127.0.0.1", port=port),
        "graceful_s": 1.0,
        "metrics_address": None,
        "health_address": None,
        **options,
    }
    manager = WebhookManager(Credentials(server.url), WebhookOptions(**chosen), rules or FAKE_RULES)
    shutdown = Shutdown()
    running = asyncio.create_task(manager.run(shutdown), name="manager")
    try:
        ready = asyncio.create_task(manager.ready.wait())
        await asyncio.wait([ready, running], timeout=30, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        assert ready.done(), manager.not_ready()
        yield manager
        assert not running.done(), running
        shutdown.request("end of test")
        async with asyncio.timeout(30):
            assert await running == 0
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def put_namespace(server: ApiServer) -> None:
    server.create(manifest(a_namespace(DEFAULT_NAMESPACE)))


def configurations() -> list[dict[str, Any]]:
    """Return the webhook configurations of the manifests, without conditions: the embedded server evaluates no CEL."""
    files = sorted(CONFIGURATIONS.rglob("*.yaml"))
    documents = [document for file in files for document in yaml.safe_load_all(file.read_text())]
    found = [document for document in documents if document["kind"].endswith("WebhookConfiguration")]
    for webhook in (webhook for document in found for webhook in document["webhooks"]):
        webhook.pop("matchConditions", None)
    return found


def put_configurations(server: ApiServer) -> None:
    for configuration in configurations():
        server.create(configuration)


def bundles(server: ApiServer) -> set[str]:
    """Return the bundles of all webhooks; "" stands for none."""
    return {
        str(webhook["clientConfig"].get("caBundle") or "")
        for kind in ("mutating", "validating")
        for found in server.list(f"{kind}webhookconfigurations.admissionregistration.k8s.io")
        for webhook in found["webhooks"]
    }
