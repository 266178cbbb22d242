"""An API server that does not answer is told of once, however many ask it."""

import pytest
from structlog.testing import capture_logs

from tests.effects.waiting import until
from tests.kube.fake_api import WIDGETS, FakeApi, Widget
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


def test_one_warning_for_all_in_a_minute_and_one_line_at_the_end(clock: FakeClock):
    outage = Outage(SERVER, clock)
    with capture_logs() as lines:
        for _ in range(30):
            for who in ("pods", "nodes", "queues"):
                assert outage.failed(who, CUT)
            clock.advance(2)
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
    assert (lines[1]["away_s"], lines[1]["failed_attempts"]) == (60, 90)


def test_a_lasting_outage_is_logged_again_every_five_minutes(clock: FakeClock):
    outage = Outage(SERVER, clock)
    with capture_logs() as lines:
        for _ in range(150):
            outage.failed("pods", CUT)
            clock.advance(5)

    assert [line["for_s"] for line in lines] == [5, 305, 605]
    assert lines[-1]["failed_attempts"] == 122


def test_an_interruption_of_a_moment_is_not_logged(clock: FakeClock):
    outage = Outage(SERVER, clock)
    with capture_logs() as lines:
        for _ in range(10):
            for who in ("pods", "nodes"):
                outage.failed(who, CUT)
            clock.advance(1.5)
            for who in ("pods", "nodes"):
                outage.answered(who)

    assert lines == []


def test_an_interruption_that_comes_again_and_again_is_a_warning(clock: FakeClock):
    outage = Outage(SERVER, clock)
    with capture_logs() as lines:
        for _ in range(70):  # a load balancer that cuts each watch after some seconds
            outage.failed("pods", CUT)
            clock.advance(1)
            outage.answered("pods")
            clock.advance(9)

    assert [line["event"] for line in lines] == ["the API server does not answer for a moment, again and again"] * 2
    assert (lines[0]["interruptions"], lines[0]["within_s"]) == (20, 190)
    assert "cannot connect" in lines[0]["problem"]


def test_nothing_is_withheld_for_long_because_of_one_watch_without_answers(clock: FakeClock):
    outage = Outage(SERVER, clock)
    withheld = []
    with capture_logs() as lines:
        for second in range(0, 400, 10):
            outage.failed("pods", CUT)
            if second % 30 == 0:
                outage.heard(200)  # the next watch of nodes is open
            withheld.append(outage.withholds("write given up", CUT))
            clock.advance(10)
        assert not outage.withholds("binds failed")
        outage.answered("pods")

    assert withheld == [True] * 3 + [False] * 37
    assert [(line["event"], line.get("for_s"), line.get("unanswered")) for line in lines] == [
        ("the API server does not answer", 10, None),
        ("the API server does not answer some requests", 30, "pods"),
        ("the API server does not answer some requests", 330, "pods"),
        ("the API server answers again", None, None),
    ]
    assert lines[-1]["withheld"] == "write given up (3)"


def test_answers_before_an_outage_do_not_make_it_partial(clock: FakeClock):
    outage = Outage(SERVER, clock)
    outage.failed("pods", CUT)
    for _ in range(4):
        outage.heard(404)
        clock.advance(10)
    assert not outage.withholds("write given up", CUT)
    outage.answered("pods")
    outage.failed("pods", CUT)

    assert outage.withholds("write given up", CUT)
    for _ in range(4):
        outage.heard(0)
        outage.heard(502)
        clock.advance(25)
    outage.heard(200)  # the first one of the server that is back
    assert outage.withholds("write given up", CUT)


def test_a_reminder_counts_what_is_withheld_so_far(clock: FakeClock):
    outage = Outage(SERVER, clock)
    with capture_logs() as lines:
        for _ in range(62):
            outage.failed("pods", CUT)
            outage.withholds("write given up", CUT)
            clock.advance(5)

    assert [line["withheld"] for line in lines] == ["write given up (1)", "write given up (61)"]


def test_lines_that_follow_from_an_outage_are_withheld_and_counted(clock: FakeClock):
    outage = Outage(SERVER, clock)
    assert not outage.withholds("write given up", CUT)
    outage.failed("pods", CUT)
    with capture_logs() as lines:
        assert outage.withholds("write given up", CUT)
        assert outage.withholds("binds failed", count=3)
        assert outage.withholds("write given up", CUT)
        assert not outage.withholds("write given up", errors.Invalid("patch", WIDGETS.collection(), "no", status=422))
        outage.answered("pods")

    assert not outage.withholds("write given up", CUT)
    assert [line["withheld"] for line in lines] == ["binds failed (3), write given up (2)"]
    assert lines[0]["event"] == "the API server answers again"


FORBIDDEN = errors.Forbidden("list", WIDGETS.collection(), "no", status=403)
STARTING = [
    FORBIDDEN,
    errors.Unauthorized("list", WIDGETS.collection(), "who?", status=401),
    errors.TooManyRequests("list", WIDGETS.collection(), "storage is (re)initializing", status=429),
    errors.ServerError("list", WIDGETS.collection(), "not yet", status=500),
]


@pytest.mark.parametrize("refusal", STARTING, ids=lambda error: str(error.status))
def test_a_server_that_starts_and_refuses_is_still_away(clock: FakeClock, refusal: errors.ApiError):
    outage = Outage(SERVER, clock)
    with capture_logs() as lines:
        for who in ("pods", "nodes"):
            outage.failed(who, CUT)
        clock.advance(20)
        outage.failed("pods", CUT)
        for _ in range(2):
            assert outage.failed("pods", refusal)
            assert outage.withholds("write given up", refusal)
            clock.advance(10)
        outage.answered("pods")
        assert not outage.failed("pods", refusal)  # it was served meanwhile
        outage.answered("nodes")

    assert [line["event"] for line in lines] == ["the API server does not answer", "the API server answers again"]
    assert lines[1]["away_s"] == 40


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


def test_a_refusal_that_lasts_ends_an_outage(clock: FakeClock):
    outage = Outage(SERVER, clock)
    outage.failed("pods", CUT)
    assert outage.failed("pods", FORBIDDEN)
    clock.advance(30)

    assert not outage.failed("pods", FORBIDDEN)
    assert not outage.lasts


def test_a_refusal_of_an_object_ends_an_outage_at_once(clock: FakeClock):
    outage = Outage(SERVER, clock)
    outage.failed("pods", CUT)

    assert not outage.failed("pods", errors.NotFound("list", WIDGETS.collection(), "no", status=404))
    assert not outage.lasts


async def test_reflectors_of_one_process_log_an_outage_together(api: FakeApi, client: ApiClient, clock: FakeClock):
    client.outage = Outage(SERVER, clock)
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


async def test_two_watches_of_one_resource_are_told_apart(api: FakeApi, client: ApiClient, clock: FakeClock):
    client.outage = Outage(SERVER, clock)
    informers = Informers(client, clock=clock)
    informers.add(WIDGETS, Widget, Recorder(), name="blue widgets", label_selector="colour=blue")
    informers.add(WIDGETS, Widget, Recorder(), name="red widgets", label_selector="colour=red")
    for _ in range(2):
        api.fail_next(503, "ServiceUnavailable", "not now")
    with capture_logs():
        async with Supervisor() as supervisor:
            informers.start(supervisor)
            await until(lambda: clock.sleepers == 2)
            informers.outage.answered("blue widgets")
            assert informers.outage.lasts
            informers.outage.answered("red widgets")

    assert not informers.outage.lasts


async def test_answers_to_writes_show_that_only_some_requests_have_none(
    api: FakeApi, client: ApiClient, clock: FakeClock
):
    client.outage = outage = Outage(SERVER, clock)
    outage.failed("pods", CUT)  # a proxy lets no watch through
    for _ in range(3):
        assert outage.withholds("write given up", CUT)
        await client.get(WIDGETS, "a", Widget, namespace="ns")
        clock.advance(10)

    assert not outage.withholds("write given up", CUT)
