"""Kubeconfigs, exec plugins and servers that authenticate their clients."""

import base64
import ssl
import sys
from pathlib import Path
from typing import Any

import yaml
from aiohttp import web

from tests.kube.certificates import Authority
from tests.kube.fake_api import WIDGETS, a_status
from volcano_py.kube.client import ApiClient


def write_kubeconfig(
    folder: Path,
    *,
    server: str = "https://cluster.example:6443",
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    name: str = "config",
    current: str | None = "main",
) -> Path:
    """Write a kubeconfig with one cluster, one user and the contexts ``main`` and ``other``."""
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": server, **(cluster or {})}},
            {"name": "o", "cluster": {"server": "http://other.example:8080"}},
        ],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u"}},
            {"name": "other", "context": {"cluster": "o", "user": "u"}},
        ],
    }
    if current:
        config["current-context"] = current
    path = folder / name
    path.write_text(yaml.safe_dump(config))
    return path


class Doorkeeper:
    """A server that accepts some tokens and records the token of every request."""

    def __init__(self, *known: str) -> None:
        self.known = set(known)
        self.seen: list[str] = []

    async def handle(self, request: web.Request) -> web.Response:
        self.seen.append(request.headers.get("Authorization", ""))
        if self.seen[-1] in self.known:
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": []})
        return web.json_response(a_status(401, "Unauthorized", "who are you"), status=401)


async def knock(client: ApiClient) -> None:
    """Make one request."""
    await client.list_bytes(WIDGETS, {})


def write_plugin(folder: Path, *, expires: str = "") -> dict[str, Any]:
    """Write an exec plugin that gives the token in ``folder/token`` and counts its runs; return the user's section."""
    plugin = folder / "plugin.py"
    status = f', "expirationTimestamp": "{expires}"' if expires else ""
    plugin.write_text(
        f"open({str(folder / 'runs')!r}, 'a').write('x')\n"
        f"token = open({str(folder / 'token')!r}).read()\n"
        'print(\'{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", '
        f'"status": {{"token": "\' + token + \'"{status}}}}}\')\n'
    )
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": ["-I", "-S", str(plugin)],
        }
    }


def encoded(path: Path) -> str:
    """Return a file as a kubeconfig embeds it."""
    return base64.b64encode(path.read_bytes()).decode()


def server_context(authority: Authority, *, address: str = "", dns: str = "") -> ssl.SSLContext:
    """Return the context of a server that demands a client certificate."""
    pair = authority.sign("server", address=address, dns=dns)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.file)
    context.load_cert_chain(pair.certificate, pair.key)
    context.verify_mode = ssl.CERT_REQUIRED
    return context
