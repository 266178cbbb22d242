"""Answers of servers that refuse, or are none, come with a way out."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest

from tests.cli.vcctl.canned import Canned, call_of
from volcano_py.cli.vcctl import job_reading
from volcano_py.client.api import Obj
from volcano_py.client.problem import ApiProblem, Problem
from volcano_py.kube.resource import Resource

NOW = datetime(2026, 3, 1, tzinfo=UTC)
WEBHOOK = 'Internal error occurred: failed calling webhook "{}": failed to call webhook: connection refused'


class Refusing(Canned):
    """Answers every list with a refusal."""

    def __init__(self, problem: ApiProblem) -> None:
        super().__init__({})
        self._problem = problem

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
