"""An embedded API server with the definitions of PodGroup and Queue, a client of it, and a supervisor."""

import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from volcano_py.apiserver import ApiServer, ApiServerOptions
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.metrics.effects import BindMetrics, WriteQueueMetrics
from volcano_py.runtime.supervisor import Supervisor

CRDS = Path(__file__).parents[2] / "manifests" / "crds"


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer(ApiServerOptions()) as server:
        for path in sorted(CRDS.glob("*.yaml")):
            server.create(yaml.load(path.read_text(), Loader=yaml.CSafeLoader))
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
