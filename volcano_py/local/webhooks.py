"""The admission webhooks inside a local system, on the same event loop as everything else."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any, Final

from volcano_py.admission.manager import WebhookManager
from volcano_py.admission.options import DEFAULT_NAMESPACE, WebhookOptions
from volcano_py.admission.paths import WEBHOOKS
from volcano_py.admission.rules import RULES
from volcano_py.admission.server import ServerOptions
from volcano_py.kube.credentials import Credentials
from volcano_py.local.cluster import LocalCluster
from volcano_py.local.manifests import webhook_configurations
from volcano_py.local.running import START_S

_HOST: Final = "127.0.0.1"
_COLLECTIONS: Final = tuple(
    f"{kind}webhookconfigurations.admissionregistration.k8s.io" for kind in ("mutating", "validating")
)
_POLL_S: Final = 0.02
_GRACEFUL_S: Final = 0.5


def make_webhooks(cluster: LocalCluster) -> WebhookManager:
    """Return the webhook manager of a cluster, and create the webhook configurations, which it completes."""
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": DEFAULT_NAMESPACE}})
    for configuration in webhook_configurations():
        cluster.create(configuration)
    port = _free_port()
    options = WebhookOptions(
        paths=tuple(_paths(cluster)),
        url=f"https://{_HOST}:{port}",
        server=ServerOptions(host=_HOST, port=port),
        graceful_s=_GRACEFUL_S,
        metrics_address=None,
        health_address=None,
    )
    return WebhookManager(Credentials(cluster.url), options, RULES)


async def reviews_begin(cluster: LocalCluster) -> None:
    """Wait until the API server can call every webhook: each has the address and the issuer of the certificate."""
    async with asyncio.timeout(START_S):
        while not all(_complete(webhook) for webhook in _webhooks(cluster)):  # noqa: ASYNC110 - the registry has no events
            await asyncio.sleep(_POLL_S)


def _paths(cluster: LocalCluster) -> Iterator[str]:
    """Yield the paths that the API server asks, in the usual order."""
    asked = {webhook["clientConfig"]["service"]["path"] for webhook in _webhooks(cluster)}
    return (path for path in WEBHOOKS if path in asked)


def _complete(webhook: dict[str, Any]) -> bool:
    client = webhook["clientConfig"]
    return "url" in client and bool(client.get("caBundle"))


def _webhooks(cluster: LocalCluster) -> Iterator[dict[str, Any]]:
    for collection in _COLLECTIONS:
        for configuration in cluster.registry.objects(collection):
            yield from configuration["webhooks"]


def _free_port() -> int:
    """Return a port that is free now. The address of the webhooks must be known before they listen."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])
