"""Finding the API server, proving who we are, and staying known when tokens change."""

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.kube.certificates import Authority
from tests.kube.fake_api import WIDGETS, FakeApi, a_server
from tests.kube.identities import Doorkeeper, encoded, knock, server_context, write_kubeconfig, write_plugin
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials, CredentialsError, load_credentials
from volcano_py.kube.kubeconfig import Kubeconfig
from volcano_py.runtime.clock import FakeClock

# Where the server is


async def test_a_plain_http_server_needs_nothing_else(tmp_path: Path) -> None:
    credentials = await load_credentials(server="http://127.0.0.1:8080/", environ={"HOME": str(tmp_path)})

    assert (credentials.server, credentials.authorization, credentials.tls) == ("http://127.0.0.1:8080", None, None)


async def test_a_kubeconfig_gives_server_and_token(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, user={"token": "abc"})

    credentials = await load_credentials(kubeconfig=str(path), environ={})

    assert (credentials.server, credentials.authorization) == ("https://cluster.example:6443", "Bearer abc")
    assert "abc" not in repr(credentials)


async def test_a_context_chooses_another_cluster(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path)

    assert (await load_credentials(kubeconfig=str(path), context="other", environ={})).server.startswith("http://other")


async def test_the_token_of_another_context_is_not_shown_to_the_first_server(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        "{current-context: a, clusters: [{name: a, cluster: {server: 'http://a'}}, {name: b, cluster: {server: 'http://b'}}],"
        " contexts: [{name: a, context: {cluster: a, user: a}}, {name: b, context: {cluster: b, user: b}}],"
        " users: [{name: a, user: {token: one}}, {name: b, user: {token: two}}]}"
    )
    source = Kubeconfig(str(path), None, None, {}, 5.0)
    await source.open()

    path.write_text(path.read_text().replace("current-context: a", "current-context: b").replace("one", "new"))
    assert (await source.read(force=True)).authorization == "Bearer new"

    path.write_text(path.read_text().replace("http://a", "http://c"))
    with pytest.raises(CredentialsError, match="names another server now, http://c: restart this process"):
        await source.read(force=True)


async def test_a_given_server_replaces_the_one_of_the_kubeconfig(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, user={"token": "abc"})

    credentials = await load_credentials(kubeconfig=str(path), server="https://127.0.0.1:1", environ={})

    assert (credentials.server, credentials.authorization) == ("https://127.0.0.1:1", "Bearer abc")


async def test_the_variable_may_name_several_files_some_of_them_missing(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path)
    environ = {"KUBECONFIG": f"{tmp_path / 'missing'}:{path}"}

    assert (await load_credentials(environ=environ)).server == "https://cluster.example:6443"


async def test_the_file_of_the_home_folder_is_the_last_resort(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    write_kubeconfig(tmp_path / ".kube")

    assert (await load_credentials(environ={"HOME": str(tmp_path)})).server == "https://cluster.example:6443"


@pytest.mark.parametrize(
    ("change", "arguments", "message"),
    [
        pytest.param({}, {"kubeconfig": "/does/not/exist"}, "/does/not/exist does not exist", id="no-file"),
        pytest.param({}, {"kubeconfig": "/dev/null"}, "/dev/null does not exist or is not a file", id="no-plain-file"),
        pytest.param({}, {"server": "10.0.0.1:6443"}, "write http://HOST:PORT or https://HOST:PORT", id="no-scheme"),
        pytest.param({}, {"context": "third"}, "does not have context 'third'", id="no-context"),
        pytest.param(
            {"current": None},
            {},
            "no current-context; `kubectl config use-context NAME` sets it",
            id="no-current-context",
        ),
        pytest.param({"current": "gone"}, {}, "does not have its current-context", id="current-context-missing"),
        pytest.param({"server": ""}, {}, "names no server", id="no-server"),
        pytest.param({"server": "http://one:abc"}, {}, "is not the address of an API server", id="bad-server"),
        pytest.param({"cluster": {"certificate-authority": "gone.crt"}}, {}, "gone.crt", id="no-authority-file"),
        pytest.param({"cluster": {"proxy-url": "socks5://x:1"}}, {}, "only http:// and https:// proxies", id="socks"),
        pytest.param({"user": {"exec": {"command": "/no/plugin", "apiVersion": "v1"}}}, {}, "/no/plugin", id="plugin"),
    ],
)
async def test_a_missing_part_is_reported_with_a_remedy(
    tmp_path: Path, change: dict[str, Any], arguments: dict[str, str], message: str
) -> None:
    path = write_kubeconfig(tmp_path, **change)
    with pytest.raises(CredentialsError, match=message):
        await load_credentials(**{"kubeconfig": str(path), "environ": {}, **arguments})  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "just text", "[]", "{", "clusters: 5"])
async def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)

    with pytest.raises(CredentialsError, match=str(path)):
        await load_credentials(kubeconfig=str(path), environ={})


async def test_a_user_that_is_no_map_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("{current-context: c, contexts: [{name: c, context: {user: u}}], users: [{name: u, user: text}]}")
    with pytest.raises(CredentialsError, match="the user 'u' is no map; correct users"):
        await load_credentials(kubeconfig=str(path), environ={})


@pytest.mark.parametrize("users", ["", "users: []", "users: [{name: other, user: {token: x}}]"])
async def test_a_user_that_is_missing_is_named(tmp_path: Path, users: str) -> None:
    path = tmp_path / "config"
    path.write_text(
        "{current-context: c, clusters: [{name: k, cluster: {server: 'https://k'}}], "
        f"contexts: [{{name: c, context: {{cluster: k, user: gone}}}}], {users}}}"
    )
    with pytest.raises(CredentialsError, match=r"does not have the user 'gone' of its context; .* get-users"):
        await load_credentials(kubeconfig=str(path), environ={})


@pytest.mark.parametrize(
    ("context", "users"),
    [
        pytest.param("{cluster: k}", "users: []", id="no-user"),
        pytest.param("{cluster: k}", "users: null", id="no-users"),
        pytest.param("{cluster: k, user: u}", "users: [{name: u}]", id="empty-user"),
        pytest.param("{cluster: k, user: u}", "users: [{name: u, user: null}]", id="null-user"),
    ],
)
async def test_a_context_may_do_without_a_user(tmp_path: Path, context: str, users: str) -> None:
    path = tmp_path / "config"
    path.write_text(
        "{current-context: c, clusters: [{name: k, cluster: {server: 'http://127.0.0.1:8001'}}], "
        f"contexts: [{{name: c, context: {context}}}], {users}}}"
    )
    found = await load_credentials(kubeconfig=str(path), environ={})
    assert (found.server, found.authorization) == ("http://127.0.0.1:8001", None)


async def test_a_user_that_acts_as_another_one_is_refused(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, user={"token": "t", "as": "viewer"})
    with pytest.raises(CredentialsError, match="its user acts as another one"):
        await load_credentials(kubeconfig=str(path), environ={})


async def test_a_user_without_a_home_is_told_what_to_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.expanduser", str)  # what it returns for a user without an entry in the password file
    with pytest.raises(CredentialsError, match=r"no Kubernetes cluster is configured: .* ~/.kube/config does not"):
        await load_credentials(environ={})


async def test_without_any_configuration_all_ways_are_named(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match=r"--kubeconfig and \$KUBECONFIG are not set, this is not a pod"):
        await load_credentials(environ={"HOME": str(tmp_path)})


async def test_an_address_alone_is_not_enough_if_authentication_is_needed(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match=r"no credentials for https://10.0.0.1:6443: .*name a kubeconfig"):
        await load_credentials(server="https://10.0.0.1:6443", environ={"HOME": str(tmp_path)})


# In a pod

IN_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def service_account(tmp_path: Path) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("first\n")
    (folder / "ca.crt").write_bytes(Authority(tmp_path).file.read_bytes())
    return folder


async def test_a_pod_uses_its_service_account(service_account: Path) -> None:
    credentials = await load_credentials(environ=IN_POD, service_account=service_account)

    assert (credentials.server, credentials.authorization) == ("https://10.96.0.1:443", "Bearer first")
    assert credentials.tls is not None


async def test_for_a_pod_without_a_service_account_the_error_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match="automountServiceAccountToken"):
        await load_credentials(environ=IN_POD, service_account=tmp_path)


async def test_a_rotated_token_file_is_read_every_minute(service_account: Path) -> None:
    clock = FakeClock()
    door = Doorkeeper("Bearer first", "Bearer second")
    async with a_server(door.handle) as url:
        credentials = await load_credentials(
            server=url.replace("127.0.0.1", "localhost"), environ=IN_POD, service_account=service_account, clock=clock
        )
        assert credentials.authorization is None  # plain HTTP by choice: the token stays at home
        credentials = await load_credentials(environ=IN_POD, service_account=service_account, clock=clock)
        credentials.server, credentials.tls = url, None
        async with ApiClient(credentials) as client:
            await knock(client)
            (service_account / "token").write_text("second")
            await knock(client)
            clock.advance(61)
            await knock(client)  # does not wait for the file
            await credentials.refresh()
            await knock(client)

    assert door.seen == ["Bearer first", "Bearer first", "Bearer first", "Bearer second"]


# Tokens that change


@pytest.mark.parametrize("where", ["in a file of its own", "in the kubeconfig"])
async def test_a_refused_token_is_renewed_once_and_the_request_repeated(tmp_path: Path, where: str) -> None:
    def write(token: str, url: str) -> Path:
        (tmp_path / "token").write_text(token)
        user = {"tokenFile": "token"} if where == "in a file of its own" else {"token": token}
        return write_kubeconfig(tmp_path, server=url, user=user)

    door = Doorkeeper("Bearer second")
    async with a_server(door.handle) as url:
        path = write("first", url)
        async with ApiClient(await load_credentials(kubeconfig=str(path), environ={})) as client:
            write("second", url)
            await knock(client)

    assert door.seen == ["Bearer first", "Bearer second"]


async def test_a_token_that_stays_refused_is_an_error_and_not_asked_for_at_every_request(tmp_path: Path) -> None:
    asked: list[bool] = []

    async def refresh(force: bool) -> str:
        asked.append(force)
        return f"Bearer wrong-{len(asked)}"

    door = Doorkeeper()
    async with a_server(door.handle) as url:
        credentials = Credentials(url, authorization="Bearer wrong", refresh=refresh, clock=FakeClock())
        async with ApiClient(credentials) as client:
            for _ in range(3):
                with pytest.raises(errors.Unauthorized, match="check the user's token"):
                    await knock(client)

    assert asked == [True]


async def test_requests_refused_together_renew_the_token_once() -> None:
    asked: list[bool] = []

    async def refresh(force: bool) -> str:
        asked.append(force)
        await asyncio.sleep(0.01)
        return "Bearer good"

    door = Doorkeeper("Bearer good")
    async with (
        a_server(door.handle) as url,
        ApiClient(Credentials(url, authorization="Bearer old", refresh=refresh)) as client,
    ):
        await asyncio.gather(*(knock(client) for _ in range(5)))

    assert asked == [True]


async def test_a_refusal_that_arrives_after_others_have_renewed_the_token_is_asked_again() -> None:
    renewed = asyncio.Event()
    door = Doorkeeper("Bearer good")

    async def refresh(force: bool) -> str:
        return "Bearer good"

    async def handle(request: web.Request) -> web.Response:
        answer = await door.handle(request)
        if answer.status == 200:
            renewed.set()
        elif len(door.seen) > 1:
            await renewed.wait()
        return answer

    async with (
        a_server(handle) as url,
        ApiClient(Credentials(url, authorization="Bearer old", refresh=refresh)) as client,
    ):
        await asyncio.gather(knock(client), knock(client))

    assert sorted(door.seen) == ["Bearer good"] * 2 + ["Bearer old"] * 2


async def test_a_refresh_that_fails_leaves_the_old_token_in_use() -> None:
    clock = FakeClock()

    async def refresh(force: bool) -> str:
        raise CredentialsError("the disk is gone")

    door = Doorkeeper("Bearer old")
    async with a_server(door.handle) as url:
        credentials = Credentials(url, authorization="Bearer old", refresh=refresh, clock=clock)
        async with ApiClient(credentials) as client:
            clock.advance(61)
            await knock(client)

    assert door.seen == ["Bearer old"]


async def test_a_watch_is_opened_again_with_a_renewed_token(tmp_path: Path) -> None:
    async def refresh(force: bool) -> str:
        return "Bearer good"

    door = Doorkeeper("Bearer good")
    async with (
        a_server(door.handle) as url,
        ApiClient(Credentials(url, authorization="Bearer old", refresh=refresh)) as client,
        client.watch(WIDGETS, {}, lasts_s=5, stall_s=5) as stream,
    ):
        assert b"items" in await stream.read()


@pytest.mark.parametrize(
    ("expires", "runs_when_due"),
    [
        pytest.param("", 1, id="no-expiry-asked-only-when-refused"),
        pytest.param("2020-01-01T00:00:00Z", 2, id="expired-asked-again"),
        pytest.param("2999-01-01T00:00:00Z", 1, id="long-lived-kept"),
    ],
)
async def test_an_exec_plugin_is_run_when_it_is_needed(tmp_path: Path, expires: str, runs_when_due: int) -> None:
    clock = FakeClock()
    (tmp_path / "token").write_text("first")
    door = Doorkeeper("Bearer first")
    async with a_server(door.handle) as url:
        path = write_kubeconfig(tmp_path, server=url, user=write_plugin(tmp_path, expires=expires))
        credentials = await load_credentials(kubeconfig=str(path), environ={}, clock=clock)
        async with ApiClient(credentials) as client:
            clock.advance(61)
            await credentials.refresh()
            await knock(client)
            assert len((tmp_path / "runs").read_text()) == runs_when_due
            (tmp_path / "token").write_text("second")
            door.known = {"Bearer second"}
            await knock(client)

    assert len((tmp_path / "runs").read_text()) == runs_when_due + 1
    assert door.seen[-1] == "Bearer second"


# TLS


async def test_client_certificates_and_authority_of_the_kubeconfig_are_used(tmp_path: Path, api: FakeApi) -> None:
    authority = Authority(tmp_path)
    pair = authority.sign("client")
    user = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}
    async with a_server(api.handle, server_context(authority, address="127.0.0.1")) as url:
        cluster = {"certificate-authority-data": encoded(authority.file)}
        path = write_kubeconfig(tmp_path, server=url, cluster=cluster, user=user)
        async with ApiClient(await load_credentials(kubeconfig=str(path), environ={})) as client:
            await knock(client)

    assert len(api.requests) == 1


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param({"tls-server-name": "kubernetes.default.svc", "certificate-authority": "test-ca.crt"}, id="name"),
        pytest.param({"insecure-skip-tls-verify": True}, id="insecure"),
    ],
)
async def test_a_server_under_another_name_is_accepted_only_as_configured(
    tmp_path: Path, api: FakeApi, cluster: dict[str, Any]
) -> None:
    authority = Authority(tmp_path)
    authority.sign("client")
    user = {"client-certificate": "client.crt", "client-key": "client.key"}
    async with a_server(api.handle, server_context(authority, dns="kubernetes.default.svc")) as url:
        path = write_kubeconfig(tmp_path, server=url, cluster=cluster, user=user)
        async with ApiClient(await load_credentials(kubeconfig=str(path), environ={})) as client:
            await knock(client)
            async with client.watch(WIDGETS, {}, lasts_s=5, stall_s=5):
                pass
        plain = write_kubeconfig(tmp_path, server=url, cluster={"certificate-authority": "test-ca.crt"}, user=user)
        async with ApiClient(await load_credentials(kubeconfig=str(plain), environ={})) as client:
            with pytest.raises(errors.ConnectionFailed, match="check the cluster's certificate authority"):
                await knock(client)


@pytest.mark.parametrize("where", ["pod", "kubeconfig", "plugin"])
async def test_a_cluster_may_exchange_its_authority_while_the_process_runs(
    tmp_path: Path, api: FakeApi, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    first, second = ours.file.read_bytes(), theirs.file.read_bytes()
    file, clock = tmp_path / "ca.crt", FakeClock()
    file.write_bytes(first)
    (tmp_path / "token").write_text("token")
    user = write_plugin(tmp_path) if where == "plugin" else {"token": "token"}
    context = server_context(theirs, address="127.0.0.1")
    context.verify_mode = ssl.CERT_NONE  # it asks for no client certificate
    async with a_server(api.handle, context) as url:
        if where == "pod":
            credentials = await load_credentials(server=url, environ=IN_POD, service_account=tmp_path, clock=clock)
        else:
            path = write_kubeconfig(tmp_path, server=url, cluster={"certificate-authority": "ca.crt"}, user=user)
            credentials = await load_credentials(kubeconfig=str(path), environ={}, clock=clock)
        async with ApiClient(credentials) as client:
            with pytest.raises(errors.ConnectionFailed, match="no trusted connection"):
                await knock(client)
            for content in (b"half of", first + second):
                file.write_bytes(content)
                credentials._due = 0.0
                await credentials.refresh()
                assert credentials.authorization == "Bearer token"
            await knock(client)

    said = capsys.readouterr().out
    assert said.count("cannot be read again; the earlier ones stay trusted") == 1
    assert said.count("the authorities of the API server have changed") == 1


async def test_a_server_of_an_unknown_authority_is_not_trusted(tmp_path: Path, api: FakeApi) -> None:
    ours = Authority(tmp_path, "ours")
    path = write_kubeconfig(tmp_path, cluster={"certificate-authority": ours.file.name})
    async with a_server(api.handle, server_context(Authority(tmp_path, "theirs"), address="127.0.0.1")) as url:
        credentials = await load_credentials(kubeconfig=str(path), server=url, environ={})
        async with ApiClient(credentials) as client:
            with pytest.raises(errors.ConnectionFailed, match="no trusted connection") as caught:
                await knock(client)

    assert not caught.value.maybe_applied
    assert api.requests == []


async def test_requests_go_through_the_proxy_of_the_environment() -> None:
    seen: list[str] = []

    async def proxy(request: web.Request) -> web.Response:
        seen.append(str(request.url))
        return web.Response(body=json.dumps({"items": []}))

    async with a_server(proxy) as url:
        credentials = await load_credentials(server="http://cluster.example:8001", environ={"HTTP_PROXY": url})
        async with ApiClient(credentials) as client:
            await knock(client)

    assert seen == ["http://cluster.example:8001/apis/test.example/v1/widgets"]


async def test_a_refresh_that_fails_in_an_unexpected_way_is_one_failure_and_no_endless_loop() -> None:
    begun = []

    async def refresh(refused: bool) -> str:
        begun.append(refused)
        raise RuntimeError("can't start new thread")

    credentials = Credentials("https://cluster", authorization="Bearer old", refresh=refresh)
    async with asyncio.timeout(5):
        found = await credentials.refresh_after_refusal(credentials.identity, 0.5)

    assert not found
    assert len(begun) == 1
