"""What the leader does with certificates, as time passes."""

import asyncio
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry

from volcano_py.admission.certificates import (
    Held,
    Pair,
    Step,
    Unusable,
    bundle,
    generated,
    next_step,
    renewal_time,
    settling,
    taken,
)
from volcano_py.admission.metrics import AdmissionMetrics
from volcano_py.admission.serving import ServedCertificate

NAMES = ("hooks.volcano-system.svc", "hooks", "127.0.0.1")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIFE = timedelta(days=90)


def made(now: datetime = NOW, names: tuple[str, ...] = NAMES) -> Held:
    return taken(Step.CREATE, None, names, now, LIFE)


def issuers(held: Held) -> int:
    return held.authorities.count(b"BEGIN CERTIFICATE")


def test_without_a_certificate_one_is_created_and_kept() -> None:
    assert next_step(None, NAMES, NOW, None) is Step.CREATE
    assert next_step(made(), NAMES, NOW, None) is Step.KEEP


def test_after_two_thirds_of_its_life_the_next_one_is_prepared_and_both_issuers_are_trusted() -> None:
    held = made()
    at = renewal_time(held.serving.leaf)
    assert next_step(held, NAMES, at - timedelta(seconds=1), None) is Step.KEEP
    assert next_step(held, NAMES, at, None) is Step.PREPARE

    prepared = taken(Step.PREPARE, held, NAMES, at, LIFE)

    assert (prepared.serving, issuers(prepared)) == (held.serving, 2)
    assert prepared.following is not None


def test_the_next_one_is_served_when_all_clients_have_trusted_it_for_a_while() -> None:
    held = made()
    at = renewal_time(held.serving.leaf)
    prepared = taken(Step.PREPARE, held, NAMES, at, LIFE)
    wait = settling(held.serving)

    assert next_step(prepared, NAMES, at, None) is Step.KEEP
    assert next_step(prepared, NAMES, at, wait / 2) is Step.KEEP
    assert next_step(prepared, NAMES, at, wait) is Step.PROMOTE
    promoted = taken(Step.PROMOTE, prepared, NAMES, at, LIFE)
    assert (promoted.serving, promoted.following, issuers(promoted)) == (prepared.following, None, 2)
    assert next_step(promoted, NAMES, at, None) is Step.KEEP


def test_an_expired_certificate_is_replaced_at_once() -> None:
    held = made()
    late = NOW + LIFE
    prepared = taken(Step.PREPARE, held, NAMES, renewal_time(held.serving.leaf), LIFE)

    assert next_step(held, NAMES, late, None) is Step.CREATE
    assert next_step(prepared, NAMES, late, None) is Step.PROMOTE


def test_what_a_wrong_clock_has_made_is_replaced_when_the_clock_is_right() -> None:
    ahead = NOW + 10 * LIFE
    assert next_step(made(ahead), NAMES, NOW, None) is Step.CREATE

    held = made()
    prepared = taken(Step.PREPARE, held, NAMES, ahead, LIFE)
    assert next_step(prepared, NAMES, NOW, LIFE) is Step.PREPARE  # and not promoted

    created = taken(Step.CREATE, made(ahead), NAMES, NOW, LIFE)
    assert next_step(created, NAMES, NOW, None) is Step.KEEP


def test_other_names_need_another_certificate() -> None:
    assert next_step(made(), (*NAMES, "10.0.0.1"), NOW, None) is Step.PREPARE


def test_expired_issuers_are_dropped_and_few_are_kept() -> None:
    _, old = generated(NAMES, NOW - LIFE, timedelta(days=1))
    many = [generated(NAMES, NOW, LIFE)[1] for _ in range(8)]

    assert bundle([old, many[0], many[0]], NOW) == many[0]
    assert bundle(many, NOW) == b"".join(many[:5])


def test_what_the_secret_holds_is_read_back() -> None:
    held = made()
    prepared = taken(Step.PREPARE, held, NAMES, NOW, LIFE)

    for one in (held, prepared):
        data = one.data()
        assert Held.of({key: value for key, value in data.items() if value is not None}) == one
    assert held.data()["next.key"] is None


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"tls.key": None}, "it has no tls.key"),
        ({"tls.crt": "%%%"}, "not base64"),
        ({"tls.crt": "Z2FyYmFnZQ=="}, "a certificate cannot be read"),
        ({"tls.key": "Z2FyYmFnZQ=="}, "the key cannot be read"),
        ({"tls.key": made().data()["tls.key"]}, "the key does not belong to the certificate"),
        ({"ca.crt": "Z2FyYmFnZQ=="}, "a certificate cannot be read"),
    ],
)
def test_a_secret_that_does_not_fit_together_is_unusable(changes: dict[str, str | None], part: str) -> None:
    data = {**made().data(), **changes}

    with pytest.raises(Unusable, match=part):
        Held.of({key: value for key, value in data.items() if value is not None})


async def test_another_certificate_is_served_to_new_connections_and_a_bad_one_is_not() -> None:
    served = ServedCertificate(AdmissionMetrics(CollectorRegistry()))
    now = datetime.now(UTC)
    first, second = (generated(("127.0.0.1",), now, LIFE) for _ in range(2))
    served.serve(*first)

    async def ignore(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def trusted(authorities: bytes) -> bool:
        context = ssl.create_default_context(cadata=authorities.decode())
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        except ssl.SSLCertVerificationError:
            return False
        writer.close()
        return True

    server = await asyncio.start_server(ignore, "127.0.0.1", 0, ssl=served.context)
    port = server.sockets[0].getsockname()[1]
    async with server:
        assert await trusted(first[1])
        with pytest.raises(Unusable):
            served.serve(Pair(second[0].certificate, first[0].key), second[1])
        assert await trusted(first[1])
        served.serve(*second)
        assert (await trusted(first[1]), await trusted(second[1])) == (False, True)
