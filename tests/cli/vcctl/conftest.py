"""A server with the kinds of Volcano in the background, and commands against it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.vcctl.running import Cluster
from volcano_py.apiserver import ApiServer
from volcano_py.client.access import Access
from volcano_py.client.api import Api
from volcano_py.kube.resource import CUSTOM_RESOURCE_DEFINITIONS
from volcano_py.local.kubeconfig import kubeconfig
from volcano_py.local.manifests import definitions


@pytest.fixture(scope="module")
def api_server() -> Iterator[ApiServer]:
    """An API server that runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="apiserver", daemon=True)
    thread.start()
    server = ApiServer()

    async def end() -> None:
        await server.__aexit__(None, None, None)

    try:
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(20)
        api = Api(lambda: Access(server.url))
        for definition in definitions():
            api.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
        api.close()
        yield server
        asyncio.run_coroutine_threadsafe(end(), loop).result(20)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


@pytest.fixture(scope="module")
def server(api_server: ApiServer) -> str:
    """The address of that server."""
    return api_server.url


@pytest.fixture
def cluster(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Cluster]:
    """A namespace of its own on that server."""
    path = tmp_path / "kubeconfig"
    path.write_text(kubeconfig(server))
    monkeypatch.setenv("KUBECONFIG", str(path))
    api = Api(lambda: Access(server))
    yield Cluster(api, capsys)
    api.close()
