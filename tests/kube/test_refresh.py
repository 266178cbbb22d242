"""Staying known: who we are is read anew in the background, in time, and no request pays for it."""

import asyncio
import itertools
import os
import random
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from tests.effects.waiting import until
from tests.kube.certificates import Authority
from tests.kube.fake_api import WIDGETS, a_server
from tests.kube.identities import Doorkeeper, knock
from volcano_py.apiserver import ApiServer
from volcano_py.kube import credentials as module
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials, CredentialsError, load_credentials
from volcano_py.kube.identity import UNTIL_REFUSED, Identity
from volcano_py.kube.leader import LeaderElector
from volcano_py.kube.lease import LeaseOptions
from volcano_py.runtime.clock import FakeClock
from volcano_py.testing import a_namespace, manifest

CLIENTS = pytest.mark.parametrize("compress", [False, True], ids=["own connections", "aiohttp"])


class Source:
    """Where the token comes from: it answers when it may, and counts who asks."""

    def __init__(self, *answers: Identity | str | Exception, hangs: bool = False) -> None:
        self.answers = list(answers)
        self.asked: list[bool] = []
        self.ended = 0
        self.may_answer = asyncio.Event()
        if not hangs:
            self.may_answer.set()

    async def __call__(self, force: bool) -> Identity | str | None:
        self.asked.append(force)
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.ended += 1
            raise
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@asynccontextmanager
async def a_door(*known: str) -> AsyncIterator[tuple[Doorkeeper, str]]:
    door = Doorkeeper(*known)
    async with a_server(door.handle) as url:
        yield door, url


@CLIENTS
async def test_a_refresh_that_hangs_delays_no_request(compress: bool) -> None:
    clock, source = FakeClock(), Source("Bearer new", hangs=True)
    async with a_door("Bearer old", "Bearer new") as (door, url):
        credentials = Credentials(url, authorization="Bearer old", refresh=source, clock=clock)
        async with ApiClient(credentials, compress=compress, timeout_s=10) as client:
            clock.advance(61)
            await asyncio.gather(*(knock(client) for _ in range(3)))
            async with client.watch(WIDGETS, {}, lasts_s=5, stall_s=5):
                pass
            source.may_answer.set()
            await credentials.refresh()
            await knock(client)

    assert source.asked == [False]
    assert door.seen == ["Bearer old"] * 4 + ["Bearer new"]


async def test_a_refresh_that_hangs_costs_no_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REFRESH_EVERY_S", 0.2)
    source = Source("Bearer new", hangs=True)
    async with ApiServer() as server:
        server.create(manifest(a_namespace("volcano-system")))
        credentials = Credentials(server.url, authorization="Bearer old", refresh=source)
        async with ApiClient(credentials, connections=2) as client:
            options, clock = LeaseOptions(duration_s=20, renew_deadline_s=10, retry_period_s=2), FakeClock()
            elector = LeaderElector(client, options, clock=clock, rng=random.Random(1), identity="a")
            await elector.acquire()
            await asyncio.sleep(0.25)  # a refresh is due
            renewing = asyncio.create_task(elector.renew())
            for _ in range(60):
                await until(lambda: renewing.done() or clock.sleepers)
                clock.advance(1)
            assert not renewing.done()
            assert elector.holds()
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    assert source.asked == [False]
    assert source.ended == 1  # by the client that was closed


@CLIENTS
async def test_after_a_401_a_request_waits_for_a_fresh_token_within_its_deadline_only(compress: bool) -> None:
    source = Source("Bearer new", hangs=True)
    async with a_door("Bearer new") as (door, url):
        credentials = Credentials(url, authorization="Bearer old", refresh=source)
        async with (
            ApiClient(credentials, compress=compress, timeout_s=3) as hasty,
            ApiClient(credentials, compress=compress, timeout_s=10) as patient,
        ):
            started = time.monotonic()
            with pytest.raises(errors.Unauthorized):
                await knock(hasty)
            assert 2.9 < time.monotonic() - started < 12  # the refresh itself may last 30 s
            waiting = asyncio.create_task(knock(patient))
            await until(lambda: len(door.seen) >= 2)
            source.may_answer.set()
            await waiting

    assert source.asked == [True]  # the first request's went on, and served the second
    assert door.seen == ["Bearer old", "Bearer old", "Bearer new"]


@CLIENTS
@pytest.mark.parametrize("answer", ["Bearer new\ntoken", "Bearer t\N{LATIN SMALL LETTER O WITH DIAERESIS}ken"])
async def test_a_token_that_no_header_may_have_is_not_used(answer: str, compress: bool) -> None:
    clock, source = FakeClock(), Source(answer, "Bearer new")
    async with a_door("Bearer old", "Bearer new") as (door, url):
        credentials = Credentials(url, authorization="Bearer old", refresh=source, clock=clock)
        async with ApiClient(credentials, compress=compress) as client:
            for _ in range(3):
                clock.advance(61)
                await knock(client)
                await until(lambda: credentials._running() is None)
            await knock(client)

    assert door.seen[0] == "Bearer old"
    assert door.seen[-1] == "Bearer new"


def test_a_first_token_that_no_header_may_have_is_named_with_its_source() -> None:
    with pytest.raises(CredentialsError, match="kubeconfig /k gives a token with a character"):
        Credentials("http://x", authorization="Bearer a\nb", origin="kubeconfig /k")


async def test_a_request_that_was_refused_waits_for_the_refresh_that_is_under_way() -> None:
    clock, source = FakeClock(), Source("Bearer new", hangs=True)
    async with a_door("Bearer new") as (door, url):
        credentials = Credentials(url, authorization="Bearer old", refresh=source, clock=clock)
        async with ApiClient(credentials) as client:
            clock.advance(61)
            waiting = asyncio.create_task(knock(client))
            await until(lambda: door.seen)
            source.may_answer.set()
            await waiting

    assert source.asked == [False]


async def test_a_source_is_asked_again_if_it_gave_the_refused_token_again() -> None:
    source = Source("Bearer old", "Bearer new")
    async with a_door("Bearer new") as (_, url):
        credentials = Credentials(url, authorization="Bearer old", refresh=source, clock=(clock := FakeClock()))
        async with ApiClient(credentials) as client:
            clock.advance(61)
            await knock(client)

    assert source.asked == [False, True]


@pytest.mark.parametrize(
    ("lives_s", "used_s"),
    [
        pytest.param(3600, 2880, id="an hour: four fifths of it"),
        pytest.param(200, 140, id="minutes: a minute before its end"),
        pytest.param(100, 50, id="short: half of it"),
        pytest.param(4, 5, id="too short: not all the time"),
    ],
)
async def test_a_token_is_renewed_before_it_ends(lives_s: float, used_s: float) -> None:
    clock = FakeClock()
    source = Source(Identity("Bearer next", until=clock.now() + timedelta(days=1)))
    first = Identity("Bearer first", until=clock.now() + timedelta(seconds=lives_s))
    credentials = Credentials("http://nowhere", identity=first, refresh=source, clock=clock)

    clock.advance(used_s - 1)
    await credentials.refresh()
    assert (source.asked, credentials.authorization) == ([], "Bearer first")
    clock.advance(1)
    await credentials.refresh()
    assert (source.asked, credentials.authorization) == ([False], "Bearer next")


async def test_an_identity_that_is_good_until_refused_is_not_refreshed() -> None:
    clock, source = FakeClock(), Source("Bearer next")
    credentials = Credentials("http://x", identity=Identity("a", until=UNTIL_REFUSED), refresh=source, clock=clock)

    clock.advance(1e8)
    await credentials.refresh()

    assert source.asked == []


def failing() -> CredentialsError:
    return CredentialsError("the disk is gone")


def expired() -> Identity:
    return Identity("Bearer old", until=FakeClock().now() - timedelta(seconds=1))


@pytest.mark.parametrize("trouble", [failing, expired])
async def test_a_failing_refresh_keeps_the_token_and_backs_off(
    trouble: Callable[[], Identity | Exception],
) -> None:
    clock, source = FakeClock(), Source(trouble())
    credentials = Credentials("http://x", authorization="Bearer old", refresh=source, clock=clock, rng=random.Random(3))
    times = []
    for second in range(660):
        clock.advance(1)
        before = len(source.asked)
        await credentials.refresh()
        if len(source.asked) > before:
            times.append(second)

    pauses = [b - a for a, b in itertools.pairwise(times)]
    assert credentials.authorization == "Bearer old"
    assert times[0] == 59
    assert pauses[0] <= 4
    assert max(pauses) <= 46  # also a source that is mended is heard within that
    assert 15 < len(pauses) < 40
    assert source.asked == [False] + [True] * len(pauses)  # what was read before may be what is wrong

    source.answers = ["Bearer new"]
    clock.advance(46)
    await credentials.refresh()
    assert credentials.authorization == "Bearer new"


async def test_a_source_that_fails_is_not_asked_by_every_refused_request() -> None:
    source = Source(failing())
    async with a_door() as (_, url):
        credentials = Credentials(url, authorization="Bearer old", refresh=source, clock=(clock := FakeClock()))
        async with ApiClient(credentials) as client:
            for _ in range(5):
                with pytest.raises(errors.Unauthorized):
                    await knock(client)
            assert source.asked == [True]
            clock.advance(5)
            with pytest.raises(errors.Unauthorized):
                await knock(client)

    assert source.asked == [True, True]


async def test_a_refresh_that_takes_too_long_is_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "_REFRESH_TIMEOUT_S", 0.05)
    clock, source = FakeClock(), Source("Bearer new", hangs=True)
    credentials = Credentials("http://x", authorization="old", refresh=source, origin="the plugin", clock=clock)

    clock.advance(61)
    await credentials.refresh()

    assert (credentials.authorization, source.ended) == ("old", 1)
    assert "the plugin gave no credentials within 0.05 s" in capsys.readouterr().out


async def test_an_unexpected_error_of_a_refresh_is_logged_and_the_refresh_retried(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock, source = FakeClock(), Source(RuntimeError("a bug"), "new")
    credentials = Credentials("http://x", authorization="old", refresh=source, clock=clock)

    clock.advance(61)
    await credentials.refresh()
    await credentials.refresh()
    assert (credentials.authorization, len(source.asked)) == ("old", 1)
    assert "a bug" in capsys.readouterr().out
    clock.advance(61)
    await credentials.refresh()

    assert credentials.authorization == "new"


async def test_a_client_that_closes_leaves_the_refresh_to_the_others() -> None:
    clock, source = FakeClock(), Source("Bearer new", hangs=True)
    async with a_door("Bearer new") as (_, url):
        credentials = Credentials(url, authorization="Bearer old", refresh=source, clock=clock)
        async with ApiClient(credentials) as stays:
            async with ApiClient(credentials):
                waiting = asyncio.create_task(knock(stays))
                await until(lambda: source.asked)
            source.may_answer.set()
            await waiting
            source.may_answer.clear()
            clock.advance(61)
            await knock(stays)
        assert source.ended == 1
        source.may_answer.set()
        async with ApiClient(credentials) as later:
            await knock(later)
            await credentials.refresh()

    assert source.asked == [True, False, False]


async def test_a_token_file_that_hangs_holds_nothing_up_and_takes_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_REFRESH_TIMEOUT_S", 0.1)
    clock, token = FakeClock(), tmp_path / "token"
    token.write_text("first")
    (tmp_path / "ca.crt").write_bytes(Authority(tmp_path).file.read_bytes())
    pod = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    credentials = await load_credentials(environ=pod, service_account=tmp_path, clock=clock)
    token.unlink()
    os.mkfifo(token)  # whoever opens it waits for somebody to write

    clock.advance(61)
    started = time.monotonic()
    for _ in range(5):
        await credentials.refresh()
        clock.advance(61)
    assert time.monotonic() - started < 20  # half a second on a quiet machine; the file itself would hang for ever
    assert credentials.authorization == "Bearer first"

    names = [t.name for t in threading.enumerate() if t.name.startswith("asyncio")]
    with token.open("w") as writer:
        writer.write("second")
    token.unlink()
    token.write_text("third")
    await asyncio.sleep(0.1)
    monkeypatch.setattr(module, "_REFRESH_TIMEOUT_S", 10)
    clock.advance(61)
    await credentials.refresh()
    assert credentials.authorization == "Bearer third"
    assert len(names) <= 2
