"""Wide plans: how many there are, what they have, and what stays as it is."""

import pytest

from tests.simulation import drawing
from tests.simulation.drawing import draw_plan
from tests.simulation.plan import SHORT, Plan

SEEDS = range(150)


@pytest.fixture(scope="module")
def wide() -> list[Plan]:
    """The wide plans of some seeds."""
    return [plan for seed in SEEDS if (plan := draw_plan(seed, SHORT)).orders]


def test_a_third_of_the_plans_is_wide(wide: list[Plan]) -> None:
    assert 0.25 < len(wide) / len(SEEDS) < 0.42


def test_all_that_only_wide_plans_have_is_drawn(wide: list[Plan]) -> None:
    work = [one for plan in wide for one in plan.work]

    assert {plugin for one in work for plugin in one.plugins} == {"env", "ssh", "svc"}
    assert {order.action for plan in wide for order in plan.orders} == {"CloseQueue", "OpenQueue"}
    assert {order.queue for plan in wide for order in plan.orders} == {"default", "division", "research"}
    assert {one.space for one in work} == {"default", "team"}
    for name in ("called", "ordered", "claim", "held_s", "scales"):
        assert any(getattr(one, name) for one in work), name


def test_names_are_unique_in_a_namespace_and_some_are_in_both(wide: list[Plan]) -> None:
    assert all(len({work.key for work in plan.work}) == len(plan.work) for plan in wide)
    assert any(len({work.name for work in plan.work}) < len(plan.work) for plan in wide)


def test_nodes_faults_and_times_of_a_wide_plan_are_those_of_the_plan_that_is_not(
    wide: list[Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "_WIDE", 0.0)
    for plan in wide:
        other = draw_plan(plan.seed, SHORT)
        assert (other.nodes, other.strikes, other.conf) == (plan.nodes, plan.strikes, plan.conf)
        assert [(one.at, one.kind, one.pods) for one in other.work] == [
            (one.at, one.kind, one.pods) for one in plan.work
        ]
        assert not other.orders
