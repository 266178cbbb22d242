"""Programs that tell who we are: how they are run, what they may say, and that they end."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiohttp import web

from tests.effects.waiting import until
from tests.kube.certificates import Authority
from tests.kube.fake_api import WIDGETS, FakeApi, a_server
from tests.kube.identities import encoded, knock, server_context, write_kubeconfig
from volcano_py.kube import credentials as module
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import CredentialsError, load_credentials
from volcano_py.runtime.clock import FakeClock

V1 = "client.authentication.k8s.io/v1"
LOOPS = pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uv"])


def said(version: str = V1, **status: Any) -> str:
    """Return what a plugin writes."""
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


def a_plugin(folder: Path, script: str, *, cluster: dict[str, Any] | None = None, **section: Any) -> str:
    """Write a shell script beside a kubeconfig that has it run, and return the kubeconfig's path."""
    plugin = folder / "plugin.sh"
    plugin.write_text(f"#!/bin/sh\n{script}\n")
    plugin.chmod(0o755)
    user = {"exec": {"apiVersion": V1, "command": "./plugin.sh", "interactiveMode": "Never", **section}}
    return str(write_kubeconfig(folder, server="http://127.0.0.1:1", user=user, cluster=cluster))


def writes(folder: Path, text: str) -> str:
    """Return the script of a plugin that writes this."""
    (folder / "output").write_text(text)
    return f"cat {folder / 'output'}"


def alive(pid: int) -> bool:
    """Say whether a process runs; one that has ended and only was not taken note of does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# How it is run


@pytest.mark.parametrize("version", [V1, "client.authentication.k8s.io/v1beta1"])
@LOOPS
def test_a_token_and_its_expiry_are_read(tmp_path: Path, version: str, loop_factory: Callable[[], Any]) -> None:
    output = said(version, token="abc", expirationTimestamp="2030-01-01T00:00:00.123456789Z")
    path = a_plugin(tmp_path, writes(tmp_path, output), apiVersion=version)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        credentials = runner.run(load_credentials(kubeconfig=path, environ={}))

    assert credentials.authorization == "Bearer abc"
    assert str(credentials.identity.until) == "2030-01-01 00:00:00.123456+00:00"
    assert "abc" not in repr(credentials.identity)


async def test_a_plugin_gets_its_arguments_and_variables_and_an_empty_input(tmp_path: Path) -> None:
    script = f"""echo "$@" > {tmp_path}/seen; echo "$GIVEN $HERE" >> {tmp_path}/seen; cat >> {tmp_path}/seen
    echo "$KUBERNETES_EXEC_INFO" >> {tmp_path}/seen; {writes(tmp_path, said(token="a"))}"""
    path = a_plugin(tmp_path, script, args=["get", 5], env=[{"name": "GIVEN", "value": "yes"}])

    await load_credentials(kubeconfig=path, environ={"HERE": "too", "PATH": os.defpath})

    arguments, variables, info = (tmp_path / "seen").read_text().splitlines()
    assert (arguments, variables) == ("get 5", "yes too")
    assert json.loads(info) == {"apiVersion": V1, "kind": "ExecCredential", "spec": {"interactive": False}}


async def test_a_plugin_gets_the_cluster_if_its_section_asks_for_it(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    cluster = {
        "server": "https://cluster.example:6443",
        "certificate-authority": authority.file.name,
        "tls-server-name": "inside",
        "extensions": [
            {"name": "other", "extension": {"not": "this"}},
            {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "us"}},
        ],
    }
    script = f"""echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/seen; {writes(tmp_path, said(token="a"))}"""
    path = a_plugin(tmp_path, script, provideClusterInfo=True, cluster=cluster)

    await load_credentials(kubeconfig=path, environ={"PATH": os.defpath, "HTTPS_PROXY": "http://proxy:1"})

    assert json.loads((tmp_path / "seen").read_text())["spec"]["cluster"] == {
        "server": "https://cluster.example:6443",
        "tls-server-name": "inside",
        "certificate-authority-data": encoded(authority.file),
        "proxy-url": "http://proxy:1",
        "config": {"audience": "us"},
    }


async def test_a_command_without_a_slash_is_looked_for_on_the_path(tmp_path: Path) -> None:
    path = a_plugin(tmp_path, writes(tmp_path, said(token="abc")), command="plugin.sh")

    environ = {"PATH": f"{tmp_path}:{os.defpath}"}
    assert (await load_credentials(kubeconfig=path, environ=environ)).authorization == "Bearer abc"
    with pytest.raises(CredentialsError, match=r"plugin\.sh does not exist or is not executable"):
        await load_credentials(kubeconfig=path, environ={"PATH": os.defpath})


async def test_the_kubeconfig_stays_as_it_is(tmp_path: Path) -> None:
    path = a_plugin(tmp_path, writes(tmp_path, said(token="abc")))
    before = (tmp_path / "config").read_bytes()

    credentials = await load_credentials(kubeconfig=path, environ={})
    assert not await credentials.refresh_after_refusal(credentials.identity, 5)  # it gives the same token again

    assert (tmp_path / "config").read_bytes() == before


# What may be wrong with it


@pytest.mark.parametrize(
    ("section", "message"),
    [
        pytest.param({"command": ""}, "names no command", id="no command"),
        pytest.param({"command": "./none"}, r"/none does not exist or is not executable; install it", id="no program"),
        pytest.param({"command": "./none", "installHint": "Get\nit at x"}, r"\(Get it at x\)", id="hint"),
        pytest.param({"apiVersion": "client.authentication.k8s.io/v1alpha1"}, "supported are .*/v1 and", id="version"),
        pytest.param({"interactiveMode": "Always"}, "needs interactive input", id="asks somebody"),
        pytest.param({"interactiveMode": "maybe"}, "must be Never or IfAvailable", id="mode"),
        pytest.param({"args": "get"}, "args are not a list", id="args"),
        pytest.param({"env": ["A=b"]}, "env is not a list of names and values", id="env"),
    ],
)
async def test_a_section_that_cannot_be_used_is_refused(tmp_path: Path, section: dict[str, Any], message: str) -> None:
    path = a_plugin(tmp_path, "exit 9", **section)

    with pytest.raises(CredentialsError, match=message) as caught:
        await load_credentials(kubeconfig=path, environ={})
    assert path in str(caught.value)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        pytest.param("echo one >&2; echo ' log in first ' >&2; exit 3", "exit code 3: log in first; run", id="fails"),
        pytest.param("exit 3", "ended with exit code 3: it said nothing; run it by hand", id="fails silently"),
        pytest.param("kill -9 $$", "was ended by signal 9", id="killed"),
        pytest.param("echo sesame", "wrote no ExecCredential: its output is not JSON", id="no JSON"),
        pytest.param("echo '[]'", "wrote no ExecCredential", id="no object"),
        pytest.param("echo '{}'", "wrote no ExecCredential", id="another object"),
        pytest.param(f"echo '{said('v7', token='sesame')}'", f"in version v7 and not in {V1}", id="version"),
        pytest.param(f"echo '{said()}'", "neither a token nor a client certificate", id="nothing in it"),
        pytest.param(f"echo '{said(clientCertificateData='sesame')}'", "without its key", id="half a pair"),
        pytest.param(f"echo '{said(token='sesame', expirationTimestamp='soon')}'", "gave 'soon' as exp", id="time"),
        pytest.param("yes sesame", "wrote more than 1048576 bytes and was ended", id="floods"),
    ],
)
async def test_an_unusable_answer_is_reported_without_its_secrets(tmp_path: Path, script: str, message: str) -> None:
    path = a_plugin(tmp_path, script)

    with pytest.raises(CredentialsError, match=message) as caught:
        await load_credentials(kubeconfig=path, environ={"PATH": os.defpath})
    assert f"kubeconfig {path}: exec plugin {tmp_path}/plugin.sh " in str(caught.value)
    assert "sesame" not in str(caught.value)


async def test_a_program_that_cannot_be_started_is_reported(tmp_path: Path) -> None:
    path = a_plugin(tmp_path, "")
    (tmp_path / "plugin.sh").write_text("#!/no/such/shell\n")

    with pytest.raises(CredentialsError, match=r"plugin\.sh cannot be started"):
        await load_credentials(kubeconfig=path, environ={})


async def test_a_plugin_corrected_in_the_kubeconfig_is_run_at_the_next_try(tmp_path: Path) -> None:
    clock = FakeClock()
    path = a_plugin(tmp_path, writes(tmp_path, said(token="a", expirationTimestamp="2024-01-01T01:00:00Z")))
    credentials = await load_credentials(kubeconfig=path, environ={}, clock=clock)
    a_plugin(tmp_path, "exit 1")
    clock.advance(3000)
    await credentials.refresh()
    assert credentials.authorization == "Bearer a"

    (tmp_path / "new.sh").write_text(f"#!/bin/sh\n{writes(tmp_path, said(token='b'))}\n")
    (tmp_path / "new.sh").chmod(0o755)
    a_plugin(tmp_path, "exit 1", command="./new.sh")
    clock.advance(60)
    await credentials.refresh()

    assert credentials.authorization == "Bearer b"


# That it ends

STUBBORN = """import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
os.fork()
with open(sys.argv[1], "a") as file: print(os.getpid(), file=file)
time.sleep(600)
"""
HANGING = {
    "the program": "echo $$ >> {0}/pids; exec sleep 600",
    "its children": "sleep 600 & echo $! >> {0}/pids; echo $$ >> {0}/pids; wait",
    "its orphans": "sleep 600 & echo $! >> {0}/pids; exit 0",
    "those that ignore SIGTERM": f"exec {sys.executable} -ISc '{STUBBORN}' {{0}}/pids",
}


@pytest.mark.parametrize("what", HANGING)
@LOOPS
def test_a_plugin_that_takes_too_long_is_ended_with_all_it_started(
    tmp_path: Path, what: str, loop_factory: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = a_plugin(tmp_path, HANGING[what].format(tmp_path))
    begun = tmp_path / "pids"

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        for limit_s in (0.5, 5, 20):
            monkeypatch.setattr(module, "_REFRESH_TIMEOUT_S", limit_s)
            started = time.monotonic()
            with pytest.raises(CredentialsError, match=f"gave no credentials within {limit_s} s") as caught:
                runner.run(load_credentials(kubeconfig=path, environ={"PATH": os.defpath}))
            took = time.monotonic() - started
            if begun.exists() and begun.read_text() and "plugin.sh" in str(caught.value):
                break  # on a busy machine, the time may be over before the program has begun

    assert "plugin.sh gave" in str(caught.value)
    pids = [int(pid) for pid in begun.read_text().split()]
    assert pids
    assert not [pid for pid in pids if alive(pid)]
    assert took < limit_s + 15  # about 3 s on a quiet machine; the programs themselves would take 600


@pytest.mark.parametrize("turns", range(6))
@LOOPS
def test_a_plugin_that_is_cancelled_while_it_starts_is_ended_and_reaped(
    tmp_path: Path, turns: int, loop_factory: Callable[[], Any]
) -> None:
    path = a_plugin(tmp_path, HANGING["the program"].format(tmp_path))

    async def cancel_early() -> None:
        credentials = asyncio.create_task(load_credentials(kubeconfig=path, environ={"PATH": os.defpath}))
        while not starts():  # noqa: ASYNC110 - nothing tells of the start
            await asyncio.sleep(0)
        for _ in range(turns):
            await asyncio.sleep(0)
        credentials.cancel()
        with pytest.raises(asyncio.CancelledError):
            await credentials

    def starts() -> int:
        return sum(task.get_coro().__name__ == "_start" for task in asyncio.all_tasks())  # type: ignore[union-attr]

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(cancel_early())

    pids = tmp_path / "pids"
    assert not [pid for pid in (pids.read_text().split() if pids.exists() else []) if alive(int(pid))]


@LOOPS
def test_a_plugin_is_ended_when_the_last_client_closes(tmp_path: Path, loop_factory: Callable[[], Any]) -> None:
    clock = FakeClock()
    path = a_plugin(tmp_path, writes(tmp_path, said(token="a", expirationTimestamp="2024-01-01T01:00:00Z")))

    async def close_meanwhile() -> None:
        credentials = await load_credentials(kubeconfig=path, environ={"PATH": os.defpath}, clock=clock)
        a_plugin(tmp_path, HANGING["its children"].format(tmp_path))
        async with ApiClient(credentials):
            clock.advance(3000)
            credentials.look()
            pids = tmp_path / "pids"
            await until(lambda: pids.exists() and pids.read_text().count("\n") == 2)

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(close_meanwhile())

    assert not [pid for pid in (tmp_path / "pids").read_text().split() if alive(int(pid))]


# Certificates


async def test_a_certificate_of_a_plugin_is_shown_and_leaves_no_file(
    tmp_path: Path, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    pair = authority.sign("client")
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    output = said(clientCertificateData=pair.certificate.read_text(), clientKeyData=pair.key.read_text())
    async with a_server(api.handle, server_context(authority, address="127.0.0.1")) as url:
        cluster = {"server": url, "certificate-authority": authority.file.name}
        path = a_plugin(tmp_path, writes(tmp_path, output), cluster=cluster)
        credentials = await load_credentials(kubeconfig=path, environ={"PATH": os.defpath})
        async with ApiClient(credentials) as client:
            await knock(client)

    assert credentials.authorization is None
    assert list(place.iterdir()) == []


async def test_a_certificate_that_does_not_fit_its_key_is_reported(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    one, other = authority.sign("one"), authority.sign("other")
    output = said(clientCertificateData=one.certificate.read_text(), clientKeyData=other.key.read_text())
    path = a_plugin(tmp_path, writes(tmp_path, output), cluster={"server": "https://127.0.0.1:1"})

    with pytest.raises(CredentialsError, match="gave a certificate that cannot be used"):
        await load_credentials(kubeconfig=path, environ={"PATH": os.defpath})


async def peers(request: web.Request) -> web.Response:
    """Answer with the serial number of the certificate that the connection was made with."""
    assert request.transport is not None
    number = request.transport.get_extra_info("peercert")["serialNumber"]
    return web.Response(body=f'{{"items": ["{number}"]}}')


@pytest.mark.parametrize("compress", [False, True], ids=["own connections", "aiohttp"])
async def test_connections_that_showed_an_earlier_certificate_are_used_no_more(tmp_path: Path, compress: bool) -> None:
    authority, clock = Authority(tmp_path), FakeClock()

    def write(name: str, until: str) -> None:
        pair = authority.sign(name)
        status = {"clientCertificateData": pair.certificate.read_text(), "clientKeyData": pair.key.read_text()}
        writes(tmp_path, said(expirationTimestamp=until, **status))

    write("one", "2024-01-01T01:00:00Z")
    async with a_server(peers, server_context(authority, address="127.0.0.1")) as url:
        cluster = {"server": url, "certificate-authority": authority.file.name}
        path = a_plugin(tmp_path, f"cat {tmp_path}/output", cluster=cluster)
        credentials = await load_credentials(kubeconfig=path, environ={"PATH": os.defpath}, clock=clock)
        async with ApiClient(credentials, compress=compress) as client:
            seen = [await client.list_bytes(WIDGETS, {}) for _ in range(2)]
            await asyncio.gather(*(knock(client) for _ in range(3)))
            write("two", "2024-01-01T02:00:00Z")
            clock.advance(3000)
            await credentials.refresh()
            seen += await asyncio.gather(*(client.list_bytes(WIDGETS, {}) for _ in range(3)))

    assert len(set(seen[:2])) == len(set(seen[2:])) == 1
    assert seen[0] != seen[2]
