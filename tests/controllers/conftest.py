from collections.abc import AsyncIterator

import pytest

from tests.daemon.cluster import serve_definitions
from volcano_py.apiserver import ApiServer


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as server:
        serve_definitions(server)
        yield server
