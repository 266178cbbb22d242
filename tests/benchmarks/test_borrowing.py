"""The workload of borrowing queues, at a small size."""

import pytest

from benchmarks import borrowing
from volcano_py.framework.evicting import plan_results

SMALL = {"name": "small", "nodes": 10, "jobs": 40, "queues": 4, "borrowers": 2, "conf": "helm-default"}


def test_each_cycle_evicts_as_much_as_one_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_results, "MOST_PLANS", 5)
    (row,) = borrowing.run({"cycles": 3, "cases": [{**SMALL, "evicts": True, "shares": "capacity"}]})
    assert row["plans"] == 5
    assert row["ms_per_plan"] > 0
