"""The HTTPS server: what is answered how, bounds, and what it survives."""

import asyncio
import random
import re
import ssl

import pytest

from tests.admission.server.reviewing import PATH, Client, allow, review, serving
from tests.effects.waiting import standstill, until
from volcano_py.admission.contract import Refusal, Request, Verdict
from volcano_py.admission.paths import Webhook
from volcano_py.kube import errors
from volcano_py.runtime.loop import loop_factory


async def test_a_review_is_answered_under_its_uid() -> None:
    async with serving() as client:
        assert await client.ask(review(uid="u-7")) == {"uid": "u-7", "allowed": True}


async def test_a_rule_gets_the_review() -> None:
    seen: list[tuple[str, Request]] = []

    async def judge(webhook: Webhook, request: Request, __: bool) -> Verdict:
        seen.append((webhook.path, request))
        return Verdict()

    async with serving(judge) as client:
        await client.ask(review(operation="UPDATE", oldObject={"spec": {}}))

    spec = {"metadata": {"name": "train"}, "spec": {"queue": "default"}}
    assert seen == [(PATH, Request("UPDATE", "default", "train", spec, {"spec": {}}))]


async def test_refusals_have_a_message_causes_and_warnings() -> None:
    refusals = (Refusal("no queue;", "spec.queue", hint="create it"), Refusal("no task;"))

    async def judge(_: Webhook, __: Request, ___: bool) -> Verdict:
        return Verdict(refusals, warnings=("look\nout",))

    async with serving(judge) as client:
        response = await client.ask(review())

    cause = {"reason": "FieldValueInvalid", "message": "no queue;", "field": "spec.queue"}
    assert response == {
        "uid": "u-1",
        "allowed": False,
        "status": {"message": "no queue;no task;", "details": {"causes": [cause]}},
        "warnings": ["look out", "create it"],
    }


async def test_a_mutation_is_a_json_patch() -> None:
    async def judge(_: Webhook, __: Request, ___: bool) -> Verdict:
        return Verdict(patch=({"op": "add", "path": "/spec/a", "value": 1},))

    async with serving(judge) as client:
        response = await client.ask(review())

    assert response["patchType"] == "JSONPatch"
    assert response["patch"] == "W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvYSIsInZhbHVlIjoxfV0="


@pytest.mark.parametrize(
    ("body", "status", "part"),
    [
        (b"", 400, "empty"),
        (b"\x00\xff\xfe garbage", 400, "not JSON"),
        (b"[" * 100_000, 400, "not JSON"),
        (b"[1]", 400, "not an AdmissionReview"),
        (b"{}", 400, "no request"),
        (b'{"request": {"uid": 7}}', 400, "no uid"),
        (b'{"request": {"uid": ""}}', 400, "no uid"),
    ],
)
async def test_a_body_without_a_uid_is_a_bad_request(body: bytes, status: int, part: str) -> None:
    async with serving() as client:
        found, text = await client.post(body)
        assert (found, await client.ask(review())) == (status, {"uid": "u-1", "allowed": True})

    assert part in text


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"operation": "SING"}, "operation 'SING'"),
        ({"operation": 3}, "operation of the request is not a text"),
        ({"object": [1]}, "object of the request is not an object"),
        ({"object": None}, "has no object"),
        ({"resource": {"group": "", "resource": "pods"}}, "expect resource to be jobs.batch.volcano.sh"),
    ],
)
async def test_a_review_that_cannot_be_judged_is_refused(fields: dict[str, object], part: str) -> None:
    async with serving() as client:
        response = await client.ask(review(**fields))

    assert (response["uid"], response["allowed"], response["status"]["code"]) == ("u-1", False, 400)
    assert part in response["status"]["message"]


async def test_other_versions_of_reviews_are_refused() -> None:
    body = review().replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1")
    async with serving() as client:
        response = await client.ask(body)

    assert "expected admission.k8s.io/v1" in response["status"]["message"]


async def test_a_body_has_at_most_3_mib() -> None:
    async def trickle() -> object:  # no Content-Length
        for _ in range(5):
            yield b" " * 1024 * 1024

    async with serving() as client:
        just_fits = review() + b" " * (3 * 1024 * 1024 - len(review()))
        assert (await client.ask(just_fits))["allowed"]
        assert (await client.post(just_fits + b" "))[0] == 413
        headers = {"Content-Type": "application/json"}
        async with client.session.post(client.url(), data=trickle(), headers=headers) as answer:
            assert answer.status == 413
        assert (await client.ask(review()))["allowed"]


async def test_only_json_is_read_only_posts_are_answered_and_only_on_enabled_paths() -> None:
    async with serving() as client:
        assert (await client.post(review(), **{"Content-Type": "text/plain"}))[0] == 415
        assert (await client.post(review(), "/pods/mutate"))[0] == 404
        async with client.session.get(client.url()) as answer:
            assert answer.status == 405


async def test_half_a_review_is_given_up_after_a_time() -> None:
    async with serving(read_timeout_s=1) as client:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection("127.0.0.1", client.server.port, ssl=context)
        head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n"
        writer.write(head.encode() + review()[:100])
        answer = await asyncio.wait_for(reader.read(), 20)
        writer.close()

        assert answer.startswith(b"HTTP/1.1 408")
        assert client.server.under_way == 0
        assert (await client.ask(review()))["allowed"]


@pytest.mark.parametrize("begin", [b"", b"POST /jobs", b"\x16\x03\x01"])
async def test_a_connection_that_asks_nothing_is_closed(begin: bytes) -> None:
    async with serving(read_timeout_s=0.2) as client:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection("127.0.0.1", client.server.port, ssl=context)
        writer.write(begin)
        await asyncio.wait_for(reader.read(), 20)
        writer.close()


async def test_connections_beyond_the_limit_are_closed_and_others_go_on() -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with serving(connections_limit=3, read_timeout_s=60) as client:
        assert (await client.ask(review()))["allowed"]
        opened = [await asyncio.open_connection("127.0.0.1", client.server.port, ssl=context) for _ in range(6)]
        assert (await client.ask(review()))["allowed"]
        reading = [asyncio.create_task(reader.read()) for reader, _ in opened]
        await until(lambda: sum(task.done() for task in reading) >= 4)
        await asyncio.sleep(0.3)
        ended = sum(task.done() for task in reading)
        for _, writer in opened:
            writer.close()
        await asyncio.gather(*reading, return_exceptions=True)

        assert ended == 4


async def test_bytes_under_way_are_bounded() -> None:
    gate = asyncio.Event()

    async def judge(_: Webhook, __: Request, ___: bool) -> Verdict:
        await gate.wait()
        return Verdict()

    async with serving(judge, bytes_limit=2 * len(review())) as client:
        asked = [asyncio.create_task(client.post(review())) for _ in range(5)]
        await until(lambda: sum(task.done() for task in asked) >= 3)
        await asyncio.sleep(0.3)
        done = sum(task.done() for task in asked)
        gate.set()
        statuses = sorted([(await task)[0] for task in asked])

    assert (done, statuses) == (3, [200, 200, 503, 503, 503])


async def test_random_bytes_never_end_it() -> None:
    rng = random.Random(7)
    async with serving(read_timeout_s=0.5) as client:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

        async def disturb(index: int) -> None:
            plain = index % 2 == 0
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", client.server.port, ssl=None if plain else context
            )
            writer.write(rng.randbytes(rng.randrange(1, 5000)))
            if index % 3 == 0:
                writer.transport.abort()
            else:
                await asyncio.wait([asyncio.ensure_future(reader.read())], timeout=2)
                writer.close()

        await asyncio.gather(*(disturb(index) for index in range(60)), return_exceptions=True)
        assert (await client.ask(review()))["allowed"]


async def test_a_rule_that_fails_refuses_and_the_server_goes_on() -> None:
    async def judge(_: Webhook, request: Request, __: bool) -> Verdict:
        raise KeyError("spec")

    async with serving(judge) as client:
        response = await client.ask(review())

    assert (response["allowed"], response["status"]["code"]) == (False, 500)
    assert "KeyError" in response["status"]["message"]


async def test_a_verdict_that_cannot_be_confirmed_is_no_verdict() -> None:
    async def judge(_: Webhook, request: Request, __: bool) -> Verdict:
        if request.name == "slow":
            await asyncio.sleep(60)
        raise errors.ConnectionFailed("get", "/apis/x/v1/queues/a", "the server is away")

    async with serving(judge) as client, standstill() as still:
        status, text = await client.post(review())
        assert (status, "the server is away" in text) == (503, True)
        began = asyncio.get_running_loop().time()
        status, text = await client.post(review(name="slow"), f"{PATH}?timeout=1s")
        took_s = asyncio.get_running_loop().time() - began
        assert (status, took_s < 1.0 + await still.seconds()) == (503, True)


async def test_at_the_end_reviews_under_way_are_answered_and_connections_end() -> None:
    begun, gate = asyncio.Event(), asyncio.Event()

    async def judge(_: Webhook, __: Request, ___: bool) -> Verdict:
        begun.set()
        await gate.wait()
        return Verdict()

    async with serving(judge) as client:
        asked = asyncio.create_task(client.ask(review()))
        await begun.wait()
        client.server.retire()
        closing = asyncio.create_task(client.server.close(30))
        await asyncio.sleep(0.05)
        assert not closing.done()
        gate.set()
        assert (await asked)["allowed"]
        await asyncio.wait_for(closing, 20)


async def test_old_versions_of_tls_are_refused() -> None:
    async with serving() as client:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            context.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", client.server.port, ssl=context)


async def test_16_clients_are_answered_at_once() -> None:
    async with serving(allow) as client:
        await asyncio.gather(*(client.ask(review(uid=f"u-{index}")) for index in range(16)))


# What a client may send on one connection, and the loop that the program uses


def request(body: bytes, path: str = PATH, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, *headers, "", ""]).encode() + body


async def exchanged(client: Client, *pieces: bytes, pause_s: float = 0.0) -> bytes:
    """Send pieces on one connection, and return all that the server sends until it closes."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", client.server.port, ssl=context)
    try:
        for piece in pieces:
            writer.write(piece)
            await asyncio.sleep(pause_s)
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()


async def test_requests_that_are_sent_ahead_are_answered_in_order() -> None:
    async def judge(_: Webhook, asked: Request, __: bool) -> Verdict:
        if asked.name == "slow":
            await asyncio.sleep(0.1)
        return Verdict()

    bodies = [review(uid=f"u-{index}", name="slow" if index == 1 else "a") for index in range(4)]
    async with serving(judge) as client:
        sent = [*(request(body) for body in bodies), request(review(uid="u-4"), PATH, "Connection: close")]
        found = await exchanged(client, b"".join(sent))

        assert re.findall(rb'"uid":"(u-\d)"', found) == [f"u-{index}".encode() for index in range(5)]
        assert client.server.under_way == 0


async def test_a_request_may_come_byte_by_byte() -> None:
    whole = request(review(), f"{PATH}?timeout=3s", "Connection: close", "Expect: 100-continue")
    async with serving() as client:
        found = await exchanged(client, *(whole[at : at + 40] for at in range(0, len(whole), 40)), pause_s=0.001)

    assert found.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")
    assert b'"allowed":true' in found


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000, b"431"),
        (b"GET / HTTP/9.9\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
        (request(b"{}")[:-2].replace(b"Content-Length: 2", b"Transfer-Encoding: chunked") + b"zz\r\n", b"400"),
        (b"GET /jobs/validate HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n", b"405"),
        (request(b"{}") * 40, b"400"),
    ],
    ids=["long head", "version", "length", "two lengths", "chunk", "upgrade", "no reviews, sent ahead"],
)
async def test_what_is_no_proper_request_is_refused_and_ends_the_connection(sent: bytes, status: bytes) -> None:
    async with serving() as client:
        found = await exchanged(client, sent)

        assert found.startswith(b"HTTP/1.1 " + status), found[:200]
        assert client.server.under_way == 0
        assert (await client.ask(review()))["allowed"]


async def test_a_client_that_goes_away_ends_its_review() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def judge(_: Webhook, __: Request, ___: bool) -> Verdict:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return Verdict()

    async with serving(judge, bytes_limit=2 * len(review())) as client:
        for _ in range(5):  # what it has taken is given back, each time
            asked = asyncio.create_task(client.post(review()))
            await asyncio.wait_for(begun.wait(), 5)
            asked.cancel()
            await asyncio.wait_for(ended.wait(), 5)
            begun.clear()
            ended.clear()
        await until(lambda: client.server.under_way == 0)


def test_it_serves_on_the_loop_of_the_program() -> None:
    async def check() -> None:
        async with serving(connections_limit=2, read_timeout_s=1.5) as client:
            assert (await client.ask(review()))["allowed"]
            assert (await client.post(review(), **{"Content-Type": "text/plain"}))[0] == 415
            assert (await client.post(review() + b" " * 3 * 1024 * 1024))[0] == 413
            found = await asyncio.gather(*(exchanged(client, b"") for _ in range(4)), return_exceptions=True)
            assert sum(one == b"" or isinstance(one, ConnectionError) for one in found) >= 2

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(check())
