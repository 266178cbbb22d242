"""Life of the server: ports, tokens, limits, shutdown, a process of its own."""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import ssl
import sys
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.apiserver.support import Client, a_bare_pod, a_config
from volcano_py.apiserver import ApiServer, ApiServerOptions, PortInUse
from volcano_py.apiserver.registry import Registry

CONFIGS = "/api/v1/namespaces/default/configmaps"


async def test_a_port_in_use_is_named(server: ApiServer) -> None:
    with pytest.raises(PortInUse, match=f"port {server.port} on 127.0.0.1 is in use by another program"):
        await ApiServer(ApiServerOptions(port=server.port)).start()


async def test_a_stopped_server_leaves_no_task_and_frees_its_port() -> None:
    before = asyncio.all_tasks()
    async with aiohttp.ClientSession() as session:
        async with ApiServer() as server:
            await Client(session, server).get(CONFIGS)
            port = server.port
        async with ApiServer(ApiServerOptions(port=port)) as again:
            assert (await Client(session, again).get(CONFIGS))[0] == 200
    assert asyncio.all_tasks() == before


async def test_stopping_twice_and_stopping_what_never_started_do_no_harm() -> None:
    server = ApiServer()
    await server.stop()
    await server.start()
    await server.stop()
    await server.stop()


async def test_a_restarted_server_has_its_objects_history_and_port() -> None:
    server = ApiServer()
    await server.start()
    url, version = server.url, server.store.rv
    server.create(a_config())
    await server.stop()
    await server.start()
    try:
        assert server.url == url
        async with aiohttp.ClientSession() as session:
            client = Client(session, server)
            assert (await client.get(f"{CONFIGS}/a"))[0] == 200
            async with client.watch(CONFIGS, resourceVersion=str(version)) as watch, asyncio.timeout(5):
                assert b'"ADDED"' in await watch.content.readline()
    finally:
        await server.stop()


async def test_names_may_be_written_with_escapes(server: ApiServer, client: Client) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a:b c"}}
    server.create(role)
    status, answer = await client.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/a%3Ab%20c")
    assert (status, answer["metadata"]["name"]) == (200, "a:b c")


async def test_a_token_is_demanded_of_every_request() -> None:
    async with ApiServer(ApiServerOptions(token="secret")) as server, aiohttp.ClientSession() as session:
        for headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer wrong"}, 401),
            ({"Authorization": "Bearer secret"}, 200),
        ):
            for path in (CONFIGS, "/version", "/healthz"):
                async with session.get(server.url + path, headers=headers) as response:
                    assert response.status == status


async def test_a_body_that_is_too_large_is_refused() -> None:
    async with (
        ApiServer(ApiServerOptions(max_body_bytes=1000)) as server,
        aiohttp.ClientSession() as session,
        session.post(server.url + CONFIGS, data=b"x" * 2000) as response,
    ):
        assert response.status == 413


async def test_requests_are_counted_by_verb_resource_and_code(server: ApiServer, client: Client) -> None:
    await client.post("/api/v1/namespaces/default/pods", a_bare_pod())
    await client.post("/api/v1/namespaces/default/pods", a_bare_pod())
    await client.post("/api/v1/namespaces/default/pods/a/binding", {"metadata": {"name": "a"}, "target": {"name": "n"}})
    await client.get("/api/v1/pods")
    assert server.requests.snapshot() == {
        ("create", "pods"): 2,
        ("create", "pods/binding"): 1,
        ("list", "pods"): 1,
    }
    assert server.requests.writes() == {("create", "pods"): 2, ("create", "pods/binding"): 1}
    assert server.requests.count("create", "pods", 409) == 1
    assert server.requests.count(resource="pods") == 3
    server.requests.reset()
    assert server.requests.count() == 0


async def test_a_failure_inside_is_answered_and_logged(
    server: ApiServer, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*arguments: object) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(Registry, "get", broken)
    with caplog.at_level(logging.ERROR):
        status, answer = await client.get(f"{CONFIGS}/a")
    assert (status, answer["reason"]) == (500, "InternalError")
    assert "boom" in answer["message"]
    assert "request failed: get configmaps a" in caplog.text


async def test_objects_can_be_used_without_http(server: ApiServer) -> None:
    made = server.create(a_config(labels={"x": "y"}))
    assert server.get("configmaps", "a", "default") == made
    assert [obj["metadata"]["name"] for obj in server.list("configmaps")] == ["a"]
    assert server.list("configmaps", "kube-system") == []
    with pytest.raises(LookupError, match=r"no resource of example\.com/v1, kind Thing is served"):
        server.create({"apiVersion": "example.com/v1", "kind": "Thing"})


async def test_it_runs_as_a_process_and_ends_on_sigterm() -> None:
    command = [sys.executable, "-m", "volcano_py.apiserver", "--port", "0", "--kubelet"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(60):
            line = (await process.stderr.readline()).decode()
            match = re.search(r"serving on (\S+)", line)
            assert match, line
            async with aiohttp.ClientSession() as session, session.get(match[1] + "/readyz") as response:
                assert response.status == 200
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_process_whose_port_is_taken_says_so(server: ApiServer) -> None:
    command = [sys.executable, "-m", "volcano_py.apiserver", "--port", str(server.port)]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    async with asyncio.timeout(60):
        _, errors = await process.communicate()
    assert process.returncode == 1
    assert f"port {server.port} on 127.0.0.1 is in use" in errors.decode()
    assert "Traceback" not in errors.decode()


async def test_it_serves_over_tls_when_given_a_context(tmp_path: Path) -> None:
    certificate, key = _self_signed(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    trust = ssl.create_default_context(cafile=certificate)
    async with (
        ApiServer(ApiServerOptions(ssl_context=context)) as server,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session,
        session.get(server.url + CONFIGS) as response,
    ):
        assert server.url.startswith("https://127.0.0.1:")
        assert response.status == 200


def _self_signed(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return folder / "cert.pem", folder / "key.pem"
