"""An embedded API server with the definitions of custom resources, a client of it, and a supervisor."""

import random
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry

from volcano_py.apiserver import ApiServer, ApiServerOptions
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.local.manifests import definitions
from volcano_py.metrics.effects import BindMetrics, WriteQueueMetrics
from volcano_py.runtime.supervisor import Supervisor


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(ApiServerOptions()) as server:
        for definition in definitions():
            server.create(definition)
        yield server


@pytest.fixture
async def client(server: ApiServer) -> AsyncIterator[ApiClient]:
    async with ApiClient(Credentials(server.url)) as client:
        yield client


@pytest.fixture
async def supervisor() -> AsyncIterator[Supervisor]:
    async with Supervisor() as supervisor:
        yield supervisor


@pytest.fixture
def rng() -> random.Random:
    return random.Random(1)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def bind_metrics(registry: CollectorRegistry) -> BindMetrics:
    return BindMetrics(registry)


@pytest.fixture
def write_queue_metrics(registry: CollectorRegistry) -> WriteQueueMetrics:
    return WriteQueueMetrics(registry)
