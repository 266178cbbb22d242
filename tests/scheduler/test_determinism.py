"""Same cluster, same conf, same seed: the same decisions, to the last character."""

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.social import social_world
from tests.reference.strategies import worlds
from tests.reference.world import World, a_job, a_node, a_shape, tasks_of
from tests.scheduler.decisions_of_a_cluster import a_cluster, decided
from tests.scheduler.running import WITH_BINPACK, a_policy, cycle

SEEDS = (1, 2, 3)


def test_two_processes_with_different_hash_seeds_decide_the_same() -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.scheduler.decisions_of_a_cluster", *map(str, SEEDS)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("0", "4242")
    ]
    answers = [process.communicate(timeout=60) for process in running]

    assert [errors for _, errors in answers] == ["", ""]
    (one, _), (other, _) = answers
    assert one == other
    assert one.count("Bind(") > 20
    both = [pair for seed in SEEDS for pair in ((seed, a_cluster(seed)), (seed, social_world(seed)))]
    assert one == "".join(decided(cycle(world, a_policy(WITH_BINPACK), seed=seed)) + "\n" for seed, world in both)


@pytest.mark.parametrize("cluster", SEEDS)
def test_decisions_do_not_depend_on_the_order_in_which_the_store_was_filled(cluster: int) -> None:
    policy = a_policy(WITH_BINPACK)
    first = decided(cycle(a_cluster(cluster), policy, seed=7))

    for shuffle in range(4):
        assert decided(cycle(a_cluster(cluster).store(shuffle), policy, seed=7)) == first


@settings(max_examples=50, derandomize=True)
@given(worlds(), st.integers(0, 10**6), st.sampled_from((0, 1, 99)))
def test_decisions_depend_neither_on_history_nor_on_a_warm_policy(world: World, shuffle: int, seed: int) -> None:
    policy = a_policy(WITH_BINPACK)
    cold = decided(cycle(world, policy, seed=seed))
    store = world.store(shuffle)
    warming = [decided(cycle(store, policy, seed=seed)) for _ in range(2)]

    assert warming == [cold, cold]


def test_a_store_after_many_removals_decides_like_a_new_one() -> None:
    world = a_cluster(1)
    store = world.store()
    for shape in (a_shape(gpu=1), a_shape(cpu=7)):
        for task in tasks_of("gone", 20, shape):
            store.set_task(task.record, task.shape, task.status)
        for task in tasks_of("gone", 20, shape):
            store.remove_task(task.record.uid)
    store.set_node(a_node("gone", labels={"zone": "x"}, **{"aa.example/first": 1}))
    store.remove_node("gone")

    assert decided(cycle(store, WITH_BINPACK)) == decided(cycle(world, WITH_BINPACK))


def test_a_seed_chooses_among_equals_and_nothing_else() -> None:
    nodes = (*(a_node(f"n{index}") for index in range(8)), a_node("small", cpu=2, memory="4Gi"))
    world = World(nodes, jobs=(a_job("j"),), tasks=tasks_of("j", 1, a_shape(cpu=1)))
    chosen = {cycle(world, seed=seed).binds[0][1] for seed in range(20)}

    assert len(chosen) > 3
    assert "small" not in chosen
    assert cycle(world, seed=0).binds == [("j-0", "n0")]


def test_decisions_do_not_depend_on_the_time() -> None:
    world = a_cluster(2)

    assert decided(cycle(world, WITH_BINPACK, now=1e9)) == decided(cycle(world, WITH_BINPACK))
