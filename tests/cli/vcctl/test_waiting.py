"""`vcctl job wait` outlives a restart of the API server; it does not wait for one that never answered."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.cli.vcctl.canned import Canned, call_of
from volcano_py.cli.vcctl import waiting
from volcano_py.client.api import Obj
from volcano_py.client.problem import ApiProblem, Problem, Unreachable
from volcano_py.kube.resource import Resource

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
REFUSED = Unreachable("the API server http://x cannot be reached (Connection refused)")
BROKEN = Unreachable("the answer of the API server broke off")
BUSY = ApiProblem(503, "ServiceUnavailable", "apiserver is shutting down")
FORBIDDEN = ApiProblem(403, "Forbidden", "jobs is forbidden")


def job(phase: str) -> Obj:
    return {"metadata": {"name": "train", "namespace": "a"}, "status": {"state": {"phase": phase}}}


class Restarting(Canned):
    """Answers lists in turn, the last answer again and again; a watch breaks off."""

    def __init__(self, *answers: Obj | Problem) -> None:
        super().__init__({})
        self._answers = list(answers)

    def list(self, kind: Resource, namespace: str = "", **query: str) -> list[Obj]:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Problem):
            raise answer
        return [answer]

    def watch(self, kind: Resource, namespace: str = "", **query: str) -> Iterator[tuple[str, Obj]]:
        raise BROKEN
        yield


class FakeTime:
    """Time that passes only while the command sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def waited(api: Restarting, timeout: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(waiting, "_PAUSE_S", 0.01)
    monkeypatch.setattr(waiting, "time", FakeTime())
    out = io.StringIO()
    call = call_of(f"job wait train -n a --for=phase=Completed --timeout={timeout}", api, out, NOW)
    assert waiting.wait_job(call) == 0
    return out.getvalue()


@pytest.mark.parametrize("trouble", [REFUSED, BUSY], ids=["refused", "busy"])
def test_a_server_that_restarts_is_waited_for(trouble: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    api = Restarting(job("Running"), trouble, trouble, trouble, job("Running"), job("Completed"))

    assert waited(api, "30s", monkeypatch) == "job a/train: condition met\n"


def test_a_server_that_stays_away_is_named_at_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Problem, match="Connection refused"):
        waited(Restarting(job("Running"), REFUSED), "200ms", monkeypatch)


@pytest.mark.parametrize("answers", [(REFUSED, job("Completed")), (job("Running"), FORBIDDEN, job("Completed"))])
def test_what_does_not_pass_ends_the_wait(answers: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Problem, match=r"refused|forbidden"):
        waited(Restarting(*answers), "30s", monkeypatch)
