"""The whole process: certificate, injection, reviews through an API server, several replicas, end."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.admission.server.managing import bundles, configurations, free_port, webhooks
from tests.effects.waiting import until
from volcano_py.admission import options as options_module
from volcano_py.admission.certificates import generated
from volcano_py.admission.options import DEFAULT_NAMESPACE, LEASE, SECRET, Files
from volcano_py.admission.paths import WEBHOOKS
from volcano_py.apiserver import ApiServer
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import QUEUES, SECRETS, VALIDATING_WEBHOOKS
from volcano_py.testing import a_queue, manifest

QUICK_LEASE = replace(LEASE, duration_s=2.0, renew_deadline_s=1.5, retry_period_s=0.2)


@pytest.fixture
async def user(server: ApiServer) -> AsyncIterator[ApiClient]:
    async with ApiClient(Credentials(server.url)) as client:
        yield client


async def create(user: ApiClient, name: str) -> str:
    """Create a queue through the webhooks; return "" or why that failed."""
    try:
        await user.create(QUEUES, manifest(a_queue(name)), dict[str, Any])
    except errors.ApiError as error:
        return str(error)
    return ""


def secret(server: ApiServer) -> dict[str, bytes]:
    found = server.get(SECRETS.label, SECRET, DEFAULT_NAMESPACE)
    return {} if found is None else {key: base64.b64decode(value) for key, value in found["data"].items()}


async def test_it_makes_a_certificate_injects_its_issuer_and_answers(server: ApiServer, user: ApiClient) -> None:
    assert "failed calling webhook" in await create(user, "early")
    async with webhooks(server, free_port()):
        await until(lambda: bundles(server) == {base64.b64encode(secret(server)["ca.crt"]).decode()})

        assert await create(user, "good") == ""
        assert 'webhook "mutatequeue.volcano.sh" denied the request: it is bad' in await create(user, "bad")


async def test_a_bundle_that_somebody_removes_is_put_back(server: ApiServer, user: ApiClient) -> None:
    name = WEBHOOKS["/queues/validate"].configuration
    async with webhooks(server, free_port()):
        await until(lambda: "" not in bundles(server))
        (plain,) = [one for one in configurations() if one["metadata"]["name"] == name]
        await user.delete(VALIDATING_WEBHOOKS, name)
        await user.create(VALIDATING_WEBHOOKS, plain, dict[str, Any])
        await until(lambda: len(bundles(server)) == 1 and "" not in bundles(server))

        assert "it is bad" in await create(user, "bad")


async def test_a_secret_that_somebody_deletes_or_breaks_is_written_again(server: ApiServer, user: ApiClient) -> None:
    async with webhooks(server, free_port()):
        await until(lambda: "" not in bundles(server))
        before = secret(server)
        await user.delete(SECRETS, SECRET, namespace=DEFAULT_NAMESPACE)
        await until(lambda: secret(server) == before)
        await user.patch(SECRETS, SECRET, {"data": {"tls.key": "eA=="}}, dict[str, Any], namespace=DEFAULT_NAMESPACE)
        await until(lambda: secret(server) == before)

        assert await create(user, "good") == ""


async def test_replicas_serve_the_same_certificate_and_the_next_one_leads(server: ApiServer, user: ApiClient) -> None:
    ports = [free_port(), free_port()]
    url = f"https://127.0.0.1:{ports[1]}"
    async with AsyncExitStack() as stack:
        async with webhooks(server, ports[0], lease=QUICK_LEASE, url=url) as first:
            other = await stack.enter_async_context(webhooks(server, ports[1], lease=QUICK_LEASE))
            assert first.certificate == other.certificate
            assert [first.leads, other.leads] == [True, False]
            assert await create(user, "good") == ""
        await until(lambda: other.leads)
        await user.delete(SECRETS, SECRET, namespace=DEFAULT_NAMESPACE)
        await until(lambda: bool(secret(server)))
        assert "it is bad" in await create(user, "bad")


async def test_certificates_are_renewed_without_a_failed_request(
    server: ApiServer, user: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options_module, "_SHORTEST_LIFETIME", timedelta(seconds=1))
    async with webhooks(server, free_port(), lifetime=timedelta(seconds=5)):
        await until(lambda: "" not in bundles(server))
        seen: set[bytes] = set()
        failures: list[str] = []
        index = 0
        while len(seen) < 3 or index <= 50:
            seen.add(secret(server)["tls.crt"])
            failures += filter(None, [await create(user, f"q-{index}")])
            index += 1
            await asyncio.sleep(0.005)

    assert (failures, index > 50) == ([], True)


def write(files: Files, pair: Any, issuer: bytes) -> None:
    files.certificate.write_bytes(pair.certificate)
    files.key.write_bytes(pair.key)
    files.authorities.write_bytes(issuer)


async def test_given_files_are_read_again_without_a_failed_request(
    server: ApiServer, user: ApiClient, tmp_path: Path
) -> None:
    files = Files(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt")
    first, second = (generated(("127.0.0.1",), datetime.now(UTC), timedelta(days=1)) for _ in range(2))
    write(files, *first)
    async with webhooks(server, free_port(), files=files) as manager:
        await until(lambda: bundles(server) == {base64.b64encode(first[1]).decode()})
        write(files, *second)
        failures: list[str] = []
        index = 0
        while manager.certificate != second[0] or index <= 20:
            failures += filter(None, [await create(user, f"q-{index}")])
            index += 1
        assert await create(user, "after") == ""
        assert "it is bad" in await create(user, "bad")

        files.key.write_bytes(b"garbage")
        await asyncio.sleep(1.5)
        assert await create(user, "still") == ""

    assert (failures, index > 20) == ([], True)
    assert secret(server) == {}


async def test_files_that_do_not_fit_together_are_refused_at_the_start(server: ApiServer, tmp_path: Path) -> None:
    files = Files(tmp_path / "tls.crt", tmp_path / "tls.key", tmp_path / "ca.crt")
    first, second = (generated(("127.0.0.1",), datetime.now(UTC), timedelta(days=1)) for _ in range(2))
    write(files, replace(first[0], key=second[0].key), first[1])

    with pytest.raises(OSError, match="the key does not belong to the certificate"):
        async with webhooks(server, free_port(), files=files):
            pass
