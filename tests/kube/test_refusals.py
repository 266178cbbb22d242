"""Resources that the API server refuses to show are told of in one line, however many they are."""

import pytest
from structlog.testing import capture_logs

from volcano_py.kube import errors
from volcano_py.kube.refusals import Refusals
from volcano_py.kube.resource import NODES, PODS
from volcano_py.runtime.clock import FakeClock

FORBIDDEN = errors.Forbidden("list", PODS.collection(), "no", status=403)
UNKNOWN = errors.Unauthorized("list", PODS.collection(), "who?", status=401)


@pytest.mark.parametrize("error", [FORBIDDEN, UNKNOWN], ids=["403", "401"])
def test_one_line_names_all_resources_and_one_says_that_they_are_shown_again(clock: FakeClock, error: errors.ApiError):
    refusals = Refusals(clock)
    with capture_logs() as lines:
        for _ in range(30):
            for resource in ("pods", "nodes"):
                assert refusals.failed(resource, error)
            clock.advance(2)
        refusals.answered("pods")
        refusals.answered("nodes")
        refusals.answered("nodes")

    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("warning", "the API server refuses to show resources"),
        ("info", "the API server shows all resources again"),
    ]
    assert lines[0]["resources"] == "nodes, pods"
    assert lines[0]["problem"] == str(error)
    assert lines[1]["for_s"] == 60


def test_a_refusal_of_a_moment_is_not_logged(clock: FakeClock):
    refusals = Refusals(clock)
    with capture_logs() as lines:
        refusals.failed("pods", FORBIDDEN)
        clock.advance(1.9)
        refusals.answered("pods")
        clock.advance(10)
        refusals.failed("pods", FORBIDDEN)

    assert lines == []


def test_another_resource_is_news_and_the_same_ones_are_told_of_again_every_five_minutes(clock: FakeClock):
    refusals = Refusals(clock)
    with capture_logs() as lines:
        for second in range(700):
            refusals.failed("pods", FORBIDDEN)
            if second >= 5:
                refusals.failed("nodes", FORBIDDEN)
            clock.advance(1)

    assert [(line["for_s"], line["resources"]) for line in lines] == [
        (2, "pods"),
        (12, "nodes, pods"),
        (312, "nodes, pods"),
        (612, "nodes, pods"),
    ]


def test_every_other_answer_ends_a_refusal(clock: FakeClock):
    refusals = Refusals(clock)
    refusals.failed("nodes", FORBIDDEN)
    clock.advance(2)
    with capture_logs() as lines:
        refusals.failed("nodes", FORBIDDEN)
        assert not refusals.failed("nodes", errors.NotFound("list", NODES.collection(), "no", status=404))

    assert [line["log_level"] for line in lines] == ["warning", "info"]


def test_resources_that_are_left_out_are_collected_into_one_line_for_each_reason(clock: FakeClock):
    missing = errors.NotFound("list", NODES.collection(), "404 page not found", status=404)
    refusals = Refusals(clock)
    with capture_logs() as lines:
        refusals.collecting = True
        for resource in ("pods", "nodes"):
            refusals.left_out(resource, FORBIDDEN)
        refusals.left_out("queues", missing)
        assert lines == []
        refusals.collected()
        refusals.collected()
        refusals.left_out("jobs", missing)

    assert [(line["event"].partition(",")[0], line["resources"]) for line in lines] == [
        ("reading resources is forbidden", "nodes, pods"),
        ("resources are not served", "queues"),
        ("resources are not served", "jobs"),
    ]
