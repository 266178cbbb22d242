"""Bugs in the work of a queue: in production, they cost the turns of one name and nothing else."""

import asyncio
import itertools
import re

import pytest

from tests.kube.working import REFUSED, a_workqueue, settle
from volcano_py.kube import errors
from volcano_py.kube.own_faults import OwnFaults
from volcano_py.runtime.clock import FakeClock
from volcano_py.runtime.supervisor import TaskFailed


async def test_a_bug_in_the_work_ends_its_owner() -> None:
    async def reconcile(key: str) -> None:
        raise ZeroDivisionError

    async def owner() -> None:
        async with a_workqueue(reconcile) as queue:
            queue.add("a")
            await asyncio.sleep(5)

    with pytest.raises(TaskFailed, match="ZeroDivisionError"):
        await owner()


@pytest.fixture
def survives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let queues go on after a bug, as in production."""
    monkeypatch.setattr(OwnFaults, "survived", True)


@pytest.mark.usefixtures("survives")
async def test_a_bug_costs_the_turns_of_one_name_and_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    clock, turns, given_up, results = FakeClock(), [], [], []

    async def reconcile(key: str) -> None:
        turns.append(key)
        if key == "bad":
            raise KeyError("label")

    more = {
        "observe": lambda _, result: results.append(result),
        "on_given_up": lambda key, error: given_up.append((key, error)),
    }
    async with a_workqueue(reconcile, clock, more=more, workers=1, attempts=3) as queue:
        queue.add("bad")
        queue.add("good")
        await settle()
        at_once = list(turns)
        for _ in range(40):
            clock.advance(0.5)
            await settle()

    assert at_once == ["bad", "good"]
    assert turns == ["bad", "good", "bad", "bad"]
    assert results == ["fault", "retried", "done", "fault", "retried", "fault", "given_up"]
    ((key, error),) = given_up
    assert (key, error.maybe_applied) == ("bad", True)
    assert re.search(r"KeyError: 'label' \(test_workqueue_bugs.py:\d+\); this is a fault of ours", str(error))
    said = capsys.readouterr().out
    assert said.count("Traceback") == 1  # a minute passes before the next one
    assert "object=bad" in said


@pytest.mark.usefixtures("survives")
async def test_a_bug_in_a_refill_or_in_the_report_of_a_failure_is_survived() -> None:
    clock, turns, refills = FakeClock(), [], itertools.count()

    async def reconcile(key: str) -> None:
        turns.append(key)
        if key == "refused":
            raise REFUSED

    def refill() -> list[str]:
        if not next(refills):
            raise KeyError("first")
        return ["from the second refill"]

    def report(key: str, error: errors.ApiError) -> None:
        raise KeyError("report")

    more = {"refill": refill, "on_given_up": report}
    async with a_workqueue(reconcile, clock, more=more, attempts=1, refill_every_s=60) as queue:
        queue.add("refused")
        for _ in range(2):
            await settle()
            clock.advance(61)
        await settle()

    assert turns == ["refused", "from the second refill"]
