"""The invariant of eviction plans: it fails where it should, and only there."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.fabricated import Fabricated, ref
from tests.simulation.insight import Basis
from volcano_py.model.decisions import Decision, Evict, Nominate
from volcano_py.model.objects import JobKey

GI = 2.0**30


def decide(world: Fabricated, basis: Basis, *batches: tuple[Decision, ...]) -> set[str]:
    """Let one cycle decide these batches, and return which invariants find something wrong."""
    shown = replace(world.shown(), basis=lambda: basis)
    for batch in batches:
        world.world.decided(world.one, shown, batch)
    return world.found() & {"plans make room"}


def evict(pod: Mapping[str, Any]) -> Evict:
    return Evict(ref(pod), "node-0", None, "preempt", "", JobKey("default", "big"))


@pytest.mark.parametrize(("idle", "size"), [(0, "1"), (1, "2"), (0, "2"), (1, "3")])
def test_a_plan_whose_pods_do_not_fit_is_found(world: Fabricated, idle: int, size: str) -> None:
    """What the victim leaves counts, and what was idle before; nothing else."""
    victim, waits = world.pod("victim"), world.pod("waits", size, group="big")
    basis = Basis({"node-0": (1000.0 * idle, 64 * GI, 10.0)}, {}, {"default/big": 1})
    found = decide(world, basis, (evict(victim), Nominate(ref(waits), "node-0")))
    assert bool(found) == (int(size) > idle + 1)


def test_room_that_an_earlier_plan_of_the_cycle_has_taken_does_not_count(world: Fabricated) -> None:
    victims = [world.pod("first"), world.pod("second")]
    waits = [world.pod("one", "2", group="big"), world.pod("two", "2", group="big")]
    basis = Basis({"node-0": (1000.0, 64 * GI, 10.0)}, {}, {"default/big": 1})
    plans = [(evict(victim), Nominate(ref(pod), "node-0")) for victim, pod in zip(victims, waits, strict=True)]
    assert not decide(world, basis, plans[0])
    assert decide(world, basis, *plans) == {"plans make room"}


@pytest.mark.parametrize("minimum", [1, 2, 3, 4])
def test_a_plan_that_leaves_its_beneficiary_incomplete_is_found(world: Fabricated, minimum: int) -> None:
    """One pod is nominated since an earlier cycle, and two are nominated by this plan."""
    victim, before = world.pod("victim"), world.pod("before", group="big")
    waits = [world.pod(name, group="big") for name in ("one", "two")]
    basis = Basis({"node-0": (1000.0, 64 * GI, 10.0)}, {before["metadata"]["uid"]: "node-1"}, {"default/big": minimum})
    found = decide(world, basis, (evict(victim), *(Nominate(ref(pod), "node-0") for pod in waits)))
    assert bool(found) == (minimum > 3)


def test_an_eviction_for_no_job_has_no_plan(world: Fabricated) -> None:
    """Neither has one of a cycle whose snapshot is not known."""
    victim = world.pod("victim")
    nobody = Evict(ref(victim), "node-0", None, "shuffle", "", None)
    assert not decide(world, Basis({}, {}, {}), (nobody,))
    world.world.decided(world.one, world.shown(), (evict(victim),))
    assert not world.found() & {"plans make room"}
