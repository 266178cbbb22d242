"""Whole cycles against a reference that goes one task and one node at a time."""

import pytest
from hypothesis import given, settings

from tests.reference.allocation import Rules, expected_binds
from tests.reference.social import social_world
from tests.reference.strategies import worlds
from tests.reference.world import World
from tests.scheduler.running import DEFAULT, WITH_BINPACK, WITHOUT_GANG, a_policy, cycle


@pytest.mark.parametrize(
    ("conf", "rules"),
    [
        pytest.param(DEFAULT, Rules(), id="spreading"),
        pytest.param(WITH_BINPACK, Rules(binpack=1), id="spreading-and-packing"),
        pytest.param(WITHOUT_GANG, Rules(gang=False), id="without-gang"),
    ],
)
@settings(max_examples=70, derandomize=True)
@given(world=worlds())
def test_a_cycle_binds_what_one_by_one_greedy_binds(conf: str, rules: Rules, world: World) -> None:
    assert cycle(world, a_policy(conf)).binds == expected_binds(world, rules)


@pytest.mark.parametrize(
    ("conf", "rules"),
    [
        pytest.param(DEFAULT, Rules(), id="spreading"),
        pytest.param(WITH_BINPACK, Rules(binpack=1), id="spreading-and-packing"),
        pytest.param(WITHOUT_GANG, Rules(gang=False), id="without-gang"),
    ],
)
def test_tasks_with_inter_pod_terms_are_placed_as_by_one_by_one_greedy(conf: str, rules: Rules) -> None:
    policy, placed = a_policy(conf), 0
    for number in range(120):
        world = social_world(number)
        binds = cycle(world, policy).binds
        assert binds == expected_binds(world, rules), f"social_world({number})"
        placed += len(binds)
    assert placed > 300
