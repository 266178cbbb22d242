"""Writes of the leader that the API server refuses are tried again every second, and logged once a minute."""

import asyncio
import base64
from datetime import timedelta
from typing import Any

from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from tests.effects.waiting import until
from volcano_py.admission.injection import Configuration, ConfigurationView, Injector
from volcano_py.admission.metrics import AdmissionMetrics
from volcano_py.admission.options import webhook_names
from volcano_py.admission.own_certificates import OwnCertificates
from volcano_py.admission.paths import WEBHOOKS
from volcano_py.admission.serving import ServedCertificate
from volcano_py.api.meta import ObjectMeta
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS, Resource
from volcano_py.runtime.clock import FakeClock

PATHS = webhook_names(tuple(WEBHOOKS))


class Refusing(ApiClient):
    """A client without the right to write."""

    def __init__(self) -> None:
        super().__init__(Credentials("http://127.0.0.1:1"))
        self.asked = 0  # to create
        self.patches = 0
        self.refusal: errors.ApiError = errors.Forbidden("patch", "/apis", "no", status=403)

    async def patch(self, *_: Any, **__: Any) -> Any:
        self.patches += 1
        raise self.refusal

    async def create(self, resource: Resource, *_: Any, **__: Any) -> Any:
        self.asked += 1
        raise errors.Forbidden("create", resource.collection("ns"), "no", status=403)


def injector(client: ApiClient, clock: FakeClock) -> Injector:
    views = {MUTATING_WEBHOOKS: ConfigurationView(), VALIDATING_WEBHOOKS: ConfigurationView()}
    for view in views.values():
        for name in PATHS:
            view.by_name[name] = Configuration(ObjectMeta(name=name), [{"name": "it", "clientConfig": {}}])
    return Injector(client, PATHS, views, "", clock)


async def test_configurations() -> None:
    clock = FakeClock()
    refused = injector(Refusing(), clock)
    with capture_logs() as lines:
        for _ in range(90):
            assert not await refused.inject(b"bundle")
            clock.advance(1)

    assert [line["event"] for line in lines] == ["a webhook configuration cannot be written; trying again"] * 2
    assert lines[1]["not_printed"] == 60 * len(PATHS) - 1


async def test_a_configuration_that_is_refused_unchanged_is_a_warning() -> None:
    clock, client = FakeClock(), Refusing()
    client.refusal = errors.Invalid("patch", "/apis", "a policy forbids it", status=422)
    refused = injector(client, clock)
    with capture_logs() as lines:
        for _ in range(30):
            await refused.inject(b"bundle")
            clock.advance(1)

    changed = [line for line in lines if line["log_level"] == "info"]
    assert [line["name"] for line in changed] == list(PATHS)
    assert [line["event"] for line in lines if line["log_level"] == "warning"] == [
        "a webhook configuration cannot be written; trying again"
    ]


async def test_a_configuration_is_not_written_before_the_api_server_wants_it_although_its_watch_brings_changes() -> (
    None
):
    """Found by simulation: whoever applied the configurations again made the injector write at once."""
    clock, client = FakeClock(), Refusing()
    client.refusal = errors.TooManyRequests("patch", "/apis", "busy", status=429, retry_after_s=3.0)
    busy = injector(client, clock)

    assert not await busy.inject(b"bundle")
    for _ in range(29):
        clock.advance(0.1)
        assert not await busy.inject(b"bundle")
    assert client.patches == len(PATHS)
    clock.advance(0.2)
    assert not await busy.inject(b"bundle")

    assert client.patches == 2 * len(PATHS)


async def test_a_proxy_that_asks_to_wait_for_a_day_is_asked_again_after_a_minute() -> None:
    clock, client = FakeClock(), Refusing()
    client.refusal = errors.ServerError("patch", "/apis", "maintenance", status=503, retry_after_s=86400.0)
    away = injector(client, clock)

    patches = []
    for seconds in (0, 59, 2):
        clock.advance(seconds)
        assert not await away.inject(b"bundle")
        patches.append(client.patches // len(PATHS))

    assert patches == [1, 1, 2]


async def test_the_secret() -> None:
    clock, client = FakeClock(), Refusing()
    own = OwnCertificates(
        ("ns", "secret"),
        ("localhost",),
        timedelta(days=1),
        served=ServedCertificate(AdmissionMetrics(CollectorRegistry())),
        injector=injector(client, clock),
        client=client,
        clock=clock,
    )
    with capture_logs() as lines:
        leading = asyncio.create_task(own.lead())
        for turn in range(1, 5):
            await until(lambda turn=turn: client.asked >= turn)
            own.changed.set()
        leading.cancel()

    assert [line["event"] for line in lines] == [
        "writing the certificate",
        "the Secret of the certificate cannot be written; trying again",
    ]


class Overtaken(Refusing):
    """A client whose answers arrive after the watch has shown what somebody else has applied since."""

    def __init__(self) -> None:
        super().__init__()
        self.shows: dict[str, Configuration] = {}

    async def patch(self, resource: Resource, name: str, *_: Any, **__: Any) -> Any:
        self.patches += 1
        self.shows[name] = Configuration(ObjectMeta(name=name), [{"name": "it", "clientConfig": {}}])
        written = {"name": "it", "clientConfig": {"caBundle": base64.b64encode(b"bundle").decode()}}
        return Configuration(ObjectMeta(name=name), [written])


async def test_a_configuration_that_is_applied_again_before_the_answer_gets_its_bundle_back() -> None:
    client = Overtaken()
    written = injector(client, FakeClock())
    client.shows = written._views[MUTATING_WEBHOOKS].by_name
    written._paths = {name: path for name, path in PATHS.items() if WEBHOOKS[path].mutates}

    await written.inject(b"bundle")
    await written.inject(b"bundle")

    assert client.patches == 2 * len(written._paths)
