from collections.abc import AsyncIterator

import pytest

from tests.admission.server.managing import put_configurations, put_namespace
from tests.daemon.cluster import serve_definitions
from volcano_py.apiserver import ApiServer


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    """An API server with the kinds of the manifests and all webhook configurations, which nobody answers yet."""
    async with ApiServer() as server:
        serve_definitions(server)
        put_namespace(server)
        put_configurations(server)
        yield server
