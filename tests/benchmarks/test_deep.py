"""The workload of deep queues, at a small size."""

import pytest

from benchmarks import deep

SMALL = {"name": "small", "nodes": 20, "jobs": 30, "k": 5, "shapes": 4, "queues": 2, "conf": "helm-default"}


@pytest.mark.parametrize("evicts", [True, False])
def test_one_waiting_gang_is_placed_in_every_cycle(evicts: bool) -> None:
    (row,) = deep.run({"repeat": 2, "cases": [{**SMALL, "evicts": evicts, "shown": False}]})
    assert row["cpu_ms"] > 0
    assert (row["preempt_ms"] > 0) is evicts


def test_a_gang_may_end_in_steps() -> None:
    (row,) = deep.run({"repeat": 2, "cases": [{**SMALL, "queues": 1, "shown": True, "steps": 2}]})
    assert row["cpu_ms"] > 0


@pytest.mark.parametrize("shown", [True, False])
def test_what_was_said_is_not_said_again(shown: bool) -> None:
    (row,) = deep.run({"repeat": 2, "cases": [{**SMALL, "shown": shown}]})
    assert SMALL["k"] <= row["decisions"] < SMALL["jobs"]  # about the gang that is placed, not about those that wait
