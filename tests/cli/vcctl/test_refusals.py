"""Answers of servers that refuse, or are none, come with a way out."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest

from tests.cli.vcctl.canned import Canned, call_of
from volcano_py.cli.vcctl import job_reading, job_writing
from volcano_py.client.api import Obj
from volcano_py.client.problem import ApiProblem, Problem
from volcano_py.kube.resource import VCJOBS, Resource

NOW = datetime(2026, 3, 1, tzinfo=UTC)
WEBHOOK = 'Internal error occurred: failed calling webhook "{}": failed to call webhook: connection refused'


JOB = {"metadata": {"name": "train", "namespace": "a", "uid": "1"}, "spec": {}, "status": {}}


class Refusing(Canned):
    """Answers every list, and every new object, with a refusal."""

    def __init__(self, problem: ApiProblem) -> None:
        super().__init__({VCJOBS: [JOB]})
        self._problem = problem

    def create(self, kind: Resource, obj: Obj, namespace: str = "") -> Obj:
        raise self._problem

    def list(self, kind: Resource, namespace: str = "", **query: str) -> list[Obj]:
        raise self._problem


@pytest.mark.parametrize(
    ("status", "said", "way"),
    [
        (302, "the API server answered 302 Found", "it may be no API server: check --master"),
        (400, "the selector is wrong", ""),
        (401, "Unauthorized", "or your token has expired"),
        (429, "Too many requests", "try again later"),
        (429, "Too many requests, please try again later.", ""),
        (500, "etcdserver: request timed out", "try again later"),
        (500, WEBHOOK.format("mutatejob.volcano.sh"), '"kubectl -n volcano-system get pods" says whether the webhook'),
        (500, WEBHOOK.format("check.example.com"), "try again later"),
    ],
)
def test_a_refusal_has_a_way_out(status: int, said: str, way: str) -> None:
    with pytest.raises(Problem) as found:
        job_reading.list_jobs(call_of("job list", Refusing(ApiProblem(status, "", said)), io.StringIO(), NOW))

    text, _, shown = str(found.value).partition("; ")
    assert text == said
    assert way in shown
    assert bool(way) == bool(shown)


def test_a_job_whose_events_must_not_be_read_is_shown_without_them() -> None:
    out = io.StringIO()
    forbidden = ApiProblem(403, "Forbidden", "events is forbidden: User cannot list", about="events")

    assert job_reading.view_job(call_of("job view train -n a", Refusing(forbidden), out, NOW)) == 0

    lines = out.getvalue().splitlines()
    assert lines[0].split() == ["Name:", "train"]
    assert lines[-1] == (
        "Events: cannot be read: events is forbidden: User cannot list; "
        '"kubectl auth can-i --list" shows your rights on events'
    )


def test_events_that_fail_otherwise_end_the_view_of_a_job() -> None:
    with pytest.raises(Problem, match="try again later"):
        job_reading.view_job(call_of("job view train -n a", Refusing(ApiProblem(500, "", "x")), io.StringIO(), NOW))


def test_the_resource_that_was_refused_is_named() -> None:
    problem = ApiProblem(403, "Forbidden", "commands.bus.volcano.sh is forbidden", about="commands.bus.volcano.sh")

    with pytest.raises(Problem, match=r"shows your rights on commands\.bus\.volcano\.sh$"):
        job_writing.suspend_job(call_of("job suspend train -n a", Refusing(problem), io.StringIO(), NOW))
