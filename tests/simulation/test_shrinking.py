"""Shrinking, on made-up predicates; plans as text; stories."""

from dataclasses import replace

import pytest

from tests.simulation import regressions
from tests.simulation.drawing import draw_plan
from tests.simulation.plan import FULL, SHORT, Plan, Size, read, written
from tests.simulation.shrinking import difference, shrink
from tests.simulation.story import tell
from tests.simulation.world import Outcome, Violation


def test_only_what_is_needed_is_left() -> None:
    """Two faults and one piece of work are needed, so these are left, and as small as may be."""
    plan = draw_plan(1, FULL)
    faults = {plan.strikes[1].number, plan.strikes[-1].number}
    work = plan.work[7].number

    def still(tried: Plan) -> bool:
        return faults <= {strike.number for strike in tried.strikes} and work in {one.number for one in tried.work}

    small = shrink(plan, still)
    assert {strike.number for strike in small.strikes} == faults
    assert [one.number for one in small.work] == [work]
    assert [one.pods for one in small.work] == [1]
    assert len(small.nodes) == 1
    assert small.conf == "helm-default"
    assert all(strike.lasts_s <= 0.5 for strike in small.strikes)
    assert "2 of" in difference(plan, small)


def test_what_is_left_keeps_its_times_and_targets() -> None:
    """A fault that stays is the same one, except that it may be shorter."""
    plan = draw_plan(2, FULL)
    kept = plan.strikes[-1]
    small = shrink(plan, lambda tried: kept.number in {strike.number for strike in tried.strikes})
    assert [replace(strike, lasts_s=kept.lasts_s) for strike in small.strikes] == [kept]


def test_the_number_of_runs_is_bounded() -> None:
    """The best plan so far is the answer."""
    plan, runs = draw_plan(3, FULL), []

    def still(tried: Plan) -> bool:
        runs.append(tried)
        return len(tried.work) >= 3

    small = shrink(plan, still, most_runs=10)
    assert len(runs) == 10
    assert len(small.work) < len(plan.work)


def test_nothing_is_tried_twice() -> None:
    """A plan that did not violate the invariant is not run again."""
    runs: list[Plan] = []

    def still(tried: Plan) -> bool:
        runs.append(tried)
        return False

    plan = draw_plan(4, SHORT)
    assert shrink(plan, still) == plan
    assert len(runs) == len(set(runs))


@pytest.mark.parametrize("size", [SHORT, FULL])
def test_a_plan_can_be_written_and_read(size: Size) -> None:
    """It is the same one afterwards."""
    for seed in range(20):
        plan = draw_plan(seed, size)
        assert read(written(plan)) == plan


def test_a_regression_can_be_kept(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file tells why it is there, and has the plan."""
    monkeypatch.setattr(regressions, "FOLDER", tmp_path)
    plan = draw_plan(5, SHORT)
    file = regressions.keep(plan, "a bind was lost")
    assert file.name == "short-5.json"
    assert regressions.all_of_them() == [regressions.Regression("a bind was lost", plan)]


def test_a_story_has_all_that_a_reader_needs() -> None:
    """Cluster, work, faults, what happens, the violation, and how to run it again."""
    plan = draw_plan(6, SHORT)
    violation = Violation("one leader", "scheduler-1 wrote pods default/gang-3-0 too late", 4.5)
    story = tell(Outcome(plan, "", (violation,), (), (), 3, 10.0), "1 of 2 faults")
    for part in ("Seed 6 (short): one leader", "The cluster:", "The work:", violation.text, written(plan), "1 of 2"):
        assert part in story
    assert all(str(strike) in story for strike in plan.strikes)
