"""Shrinking, on made-up predicates; plans as text; stories."""

from dataclasses import replace

import pytest

from tests.simulation import regressions
from tests.simulation.drawing import draw_plan
from tests.simulation.plan import FULL, SHORT, Order, Plan, Size, read, written
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


def _wide_plan() -> Plan:
    """Return a plan in which a job of another namespace has all that only wide plans have."""
    plan = next(each for seed in range(50) if (each := draw_plan(seed, FULL)).orders)
    job = next(work for work in plan.work if work.kind == "vcjob")
    more = replace(
        job,
        pods=4,
        tasks=2,
        space="team",
        called=99,
        plugins=("env", "svc"),
        ordered=True,
        claim=True,
        held_s=2.0,
        scales=((1.0, 3, 2), (2.0, 5, 5)),
    )
    return replace(plan, work=tuple(more if work is job else work for work in plan.work))


def test_what_only_wide_plans_have_is_left_out_if_it_is_not_needed() -> None:
    plan = _wide_plan()
    number = next(work.number for work in plan.work if work.claim and work.ordered and work.called == 99)

    small = shrink(plan, lambda tried: any(work.number == number for work in tried.work))

    assert not small.orders
    assert not small.queues
    (work,) = small.work
    assert (work.space, work.called, work.plugins, work.scales) == ("default", None, (), ())
    assert (work.ordered, work.claim, work.held_s) == (False, False, 0.0)


def test_an_order_keeps_its_queue_and_the_queue_above() -> None:
    plan = _wide_plan()
    plan = replace(plan, orders=(Order(7, 1.0, "CloseQueue", "research"), *plan.orders[:1]))

    small = shrink(plan, lambda tried: any(order.number == 7 for order in tried.orders))

    assert [str(order).strip() for order in small.orders] == ["1.000 s  CloseQueue research"]
    assert [queue.name for queue in small.queues] == ["division", "research"]


def test_a_story_tells_what_only_wide_plans_have() -> None:
    plan = _wide_plan()

    told = tell(Outcome(plan, "", (), (), (), 0, 0.0))

    assert "vcjob-99 in team: 4 pods" in told
    assert "plugins env and svc, the second task waits for the first, with a volume" in told
    assert "finalizers are taken away after 2.0 s; 3 pods, at least 2, after 1.0 s; 5 pods, at least 5" in told
    assert f"The orders to queues:\n  {min(plan.orders, key=lambda order: order.at)}" in told
    assert "below division" in told


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
