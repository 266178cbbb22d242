"""A fake API server and a client of it."""

from collections.abc import AsyncIterator

import pytest

from tests.kube.fake_api import FakeApi, a_server
from tests.kube.reflecting import Recorder
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.runtime.clock import FakeClock


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    fake = FakeApi()
    async with a_server(fake.handle) as url:
        fake.url = url
        yield fake


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[ApiClient]:
    async with ApiClient(Credentials(api.url), timeout_s=5) as client:
        yield client


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()
