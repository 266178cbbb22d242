"""An API server that does not answer is told of once, however many ask it."""

from structlog.testing import capture_logs

from tests.kube.fake_api import WIDGETS, FakeApi, Widget, until
from tests.kube.reflecting import Recorder
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.informer import Informers
from volcano_py.kube.outage import Outage
from volcano_py.kube.resource import Resource
from volcano_py.runtime.clock import FakeClock
from volcano_py.runtime.supervisor import Supervisor

CUT = errors.ConnectionFailed("watch", WIDGETS.collection(), "cannot connect to https://here: refused")
SERVER = "https://here"


def test_one_warning_for_all_and_one_line_at_the_end(clock: FakeClock):
    outage = Outage(SERVER, clock)
    with capture_logs() as lines:
        for _ in range(3):
            for who in ("pods", "nodes", "queues"):
                assert outage.failed(who, CUT)
            clock.advance(10)
        for who in ("pods", "nodes"):
            outage.answered(who)
        assert outage.lasts
        outage.answered("queues")
        outage.answered("queues")

    assert not outage.lasts
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("warning", "the API server does not answer"),
        ("info", "the API server answers again"),
    ]
    assert lines[0]["server"] == SERVER
    assert "cannot connect" in lines[0]["problem"]
    assert (lines[1]["away_s"], lines[1]["failed_attempts"]) == (30, 9)


def test_a_lasting_outage_is_logged_at_most_once_a_minute(clock: FakeClock):
    outage = Outage(SERVER, clock)
    with capture_logs() as lines:
        for _ in range(50):
            outage.failed("pods", CUT)
            clock.advance(5)

    assert [line["for_s"] for line in lines] == [0, 60, 120, 180, 240]
    assert lines[-1]["failed_attempts"] == 49


def test_errors_that_count_as_an_outage():
    path = WIDGETS.collection()
    unanswered = [
        errors.Timeout("list", path, "no answer"),
        errors.ConnectionFailed("list", path, "refused"),
        *(errors.ServerError("list", path, "gateway", status=code) for code in (502, 503)),
        errors.Timeout("list", path, "gateway", status=504),
    ]
    answers = [
        errors.Forbidden("list", path, "no", status=403),
        errors.Gone("watch", path, "old", status=410),
        errors.ServerError("list", path, "etcd", status=500),
        errors.TooManyRequests("list", path, "later", status=429),
        errors.UnexpectedAnswer("list", path, "not a list"),
    ]

    assert all(Outage(SERVER, FakeClock()).failed("pods", error) for error in unanswered)
    assert not any(Outage(SERVER, FakeClock()).failed("pods", error) for error in answers)


def test_a_refusal_counts_as_the_end_of_an_outage(clock: FakeClock):
    outage = Outage(SERVER, clock)
    outage.failed("pods", CUT)

    assert not outage.failed("pods", errors.Forbidden("list", WIDGETS.collection(), "no", status=403))
    assert not outage.lasts


async def test_reflectors_of_one_process_log_an_outage_together(api: FakeApi, client: ApiClient, clock: FakeClock):
    informers = Informers(client, clock=clock)
    kinds = [Resource("test.example", "v1", f"widgets{number}", "Widget") for number in range(5)]
    for kind in kinds:
        informers.add(kind, Widget, Recorder())
    for _ in range(20):
        api.fail_next(503, "ServiceUnavailable", "not now")
    with capture_logs() as lines:
        async with Supervisor() as supervisor:
            informers.start(supervisor)
            for _ in range(4):
                await until(lambda: clock.sleepers == 5)
                clock.advance(10)
            await until(lambda: len(api.watches) == 5)
            await until(lambda: not informers.outage.lasts)

    told = [line for line in lines if line["log_level"] in ("warning", "error") or "again" in line["event"]]
    assert [line["event"] for line in told] == ["the API server does not answer", "the API server answers again"]
    assert told[1]["failed_attempts"] == 20
    quiet = [line for line in lines if line["log_level"] == "debug" and line["event"] == "list failed"]
    assert len(quiet) == 20
