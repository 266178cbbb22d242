"""The invariant of evictions: it fails where it should, and only there."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.simulation import objects
from tests.simulation.fabricated import Fabricated
from tests.simulation.faults import FAULTS
from tests.simulation.insight import Shown
from tests.simulation.invariants import evictions
from tests.simulation.plan import Order, Strike


def bind(world: Fabricated, pod: Mapping[str, Any], node: str = "node-0") -> None:
    """Let a pod be bound to a node."""
    world.decide(world.one, pod, node)
    world.bind(world.one, pod, node)


def evict(world: Fabricated, victim: Mapping[str, Any], shown: Shown | None = None) -> None:
    """Let the pod "victim" on node-0 be evicted for the group "big"."""
    world.evict(world.one, victim, "node-0", "big", shown)
    with world.asks(world.one, "delete", "pods"):
        world.remove(objects.PODS, "default/victim")


@pytest.mark.parametrize("answer", [201, 403, 409, None])
def test_an_eviction_whose_beneficiary_is_not_placed_is_found(world: Fabricated, answer: int | None) -> None:
    """A bind that a fault refuses shows that the eviction helped; one of a pod that has a node does not."""
    victim, waits = world.pod("victim"), world.pod("waits", group="big")
    world.servers.create(objects.group("big", 1, "default", "1"))
    bind(world, victim)
    evict(world, victim)
    if answer is not None:
        world.decide(world.one, waits, "node-0")
    if answer == 201:
        world.bind(world.one, waits, "node-0")
    elif answer is not None:
        with world.asks(world.one, "create", "pods/binding", key="default/waits") as asked:
            world.world._answered(asked, answer)
    assert world.rest("evictions help") == (set() if answer in (201, 403) else {"evictions help"})


@pytest.mark.parametrize("priority", ["low", "high"])
def test_only_who_has_a_higher_priority_may_get_the_room_instead(world: Fabricated, priority: str) -> None:
    for name, value in (("low", 10), ("high", 1000)):
        world.servers.create(objects.priority_class(name, value))
    victim = world.pod("victim")
    world.pod("waits", group="big", priority="low")
    other = world.pod("other", group="others", priority=priority)
    world.at(5.0)
    world.servers.create(objects.group("big", 1, "default", "1"))
    bind(world, victim)
    evict(world, victim)
    world.decide(world.one, other, "node-0")
    world.bind(world.one, other, "node-0")
    assert world.rest("evictions help") == (set() if priority == "high" else {"evictions help"})


@pytest.mark.parametrize("running", [True, False])
def test_the_room_may_go_to_a_group_that_is_made_again_while_its_pods_run(world: Fabricated, running: bool) -> None:
    """Its queue seemed to hold less until then (full seed 940279)."""
    victim, member = world.pod("victim"), world.pod("member", group="again")
    world.pod("waits", group="big")
    world.servers.create(objects.group("big", 1, "default", "1"))
    for pod, node in ((victim, "node-0"), (member, "node-1")):
        if running or pod is victim:
            world.decide(world.one, pod, node)
            world.bind(world.one, pod, node)
    evict(world, victim)
    world.servers.create(objects.group("again", 1, "default", "1"))
    assert world.rest("evictions help") == (set() if running else {"evictions help"})


@pytest.mark.parametrize("queue", ["default", "other"])
@pytest.mark.parametrize("later", [True, False])
def test_the_queue_may_deserve_less_when_pods_of_another_queue_come(world: Fabricated, later: bool, queue: str) -> None:
    """They count as asked from then on, whether they get a node or not (full seed 980083)."""
    victim = world.pod("victim")
    world.pod("waits", group="big")
    world.servers.create(objects.group("big", 1, "default", "1"))
    world.servers.create(objects.group("others", 1, queue, "1"))
    if not later:
        world.pod("other", group="others")
    world.at(5.0)
    bind(world, victim)
    evict(world, victim)
    if later:
        world.pod("other", group="others")
    assert world.rest("evictions help") == (set() if later and queue == "other" else {"evictions help"})


@pytest.mark.parametrize("later", [True, False])
def test_a_gang_may_not_be_complete_any_more_when_pods_of_it_end(world: Fabricated, later: bool) -> None:
    """The room was for the last of them (short seed 16000726)."""
    victim, member = world.pod("victim"), world.pod("member", group="big")
    world.pod("waits", group="big")
    world.servers.create(objects.group("big", 2, "default", "1"))
    bind(world, victim)
    bind(world, member, "node-1")
    world.at(5.0)
    if not later:
        world.put(objects.PODS, member, status={"phase": "Failed"})
    world.at(6.0)
    evict(world, victim)
    world.at(7.0)
    if later:
        world.put(objects.PODS, member, status={"phase": "Failed"})
    assert world.rest("evictions help") == (set() if later else {"evictions help"})


@pytest.mark.parametrize("known", [True, False])
def test_the_queue_may_deserve_less_when_pods_of_another_queue_are_shown(world: Fabricated, known: bool) -> None:
    """The watch of the scheduler was late (short seed 23003761)."""
    victim = world.pod("victim")
    world.pod("waits", group="big")
    for name, queue in (("big", "default"), ("others", "other")):
        world.servers.create(objects.group(name, 1, queue, "1"))
    before = world.shown()
    world.pod("other", group="others")
    world.at(5.0)
    bind(world, victim)
    evict(world, victim, None if known else before)
    assert world.rest("evictions help") == ({"evictions help"} if known else set())


@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_a_scheduler_cannot_know_of_an_end_that_it_was_not_shown(world: Fabricated, known: bool, gone: bool) -> None:
    """Its watch was late (short seed 23003248)."""
    victim, member = world.pod("victim"), world.pod("member", group="big")
    world.pod("waits", group="big")
    world.servers.create(objects.group("big", 2, "default", "1"))
    bind(world, victim)
    bind(world, member, "node-1")
    before = world.shown()
    world.at(5.0)
    world.put(objects.PODS, world.current(objects.PODS, "member"), status={"phase": "Failed"})
    if gone:
        world.remove(objects.PODS, "default/member")
    world.at(6.0)
    evict(world, victim, None if known else before)
    assert world.rest("evictions help") == ({"evictions help"} if known else set())


@pytest.mark.parametrize("minimum", [2, 6])
def test_a_gang_that_needs_more_than_before_may_not_be_placed(world: Fabricated, minimum: int) -> None:
    """Its owner has raised the minimum while the room was made (short seed 17000521)."""
    victim = world.pod("victim")
    world.pod("waits", group="big")
    world.servers.create(objects.group("big", 2, "default", "1"))
    bind(world, victim)
    evict(world, victim)
    group = world.servers.get(objects.GROUPS, "big", objects.NAMESPACE)
    assert group is not None
    world.put(objects.GROUPS, group, spec={**group["spec"], "minMember": minimum}, status={"phase": "Inqueue"})
    assert world.rest("evictions help") == (set() if minimum == 6 else {"evictions help"})


@pytest.mark.parametrize("at", [4.0, 8.0])
def test_a_queue_that_is_closed_later_takes_nobody(world: Fabricated, at: float) -> None:
    """The scheduler died, and its successor found the queue closed (short seed 16006129)."""
    world.world.plan = replace(world.world.plan, orders=(Order(0, at, "CloseQueue", "default"),))
    victim = world.pod("victim")
    world.pod("waits", group="big")
    world.servers.create(objects.group("big", 1, "default", "1"))
    world.decide(world.one, victim, "node-0")
    world.bind(world.one, victim, "node-0")
    world.at(6.0)
    evict(world, victim)
    assert world.rest("evictions help") == (set() if at > 6.0 else {"evictions help"})


@pytest.mark.parametrize("kind", ["node shrinks", "zone fails", "slow network"])
@pytest.mark.parametrize("at", [1.0, 5.5])
def test_a_later_fault_may_take_away_the_room_or_the_plan(world: Fabricated, kind: str, at: float) -> None:
    world.world.plan = replace(world.world.plan, strikes=(Strike(0, at, kind),))
    victim = world.pod("victim")
    world.pod("waits", group="big")
    world.servers.create(objects.group("big", 1, "default", "1"))
    bind(world, victim)
    world.at(6.0)
    evict(world, victim)
    excused = at > 5.0 and kind != "slow network"
    assert world.rest("evictions help") == (set() if excused else {"evictions help"})


def test_the_faults_that_excuse_evictions_exist() -> None:
    assert FAULTS.keys() >= evictions._ROOM


def test_an_eviction_that_nobody_decided_is_found(world: Fabricated) -> None:
    world.pod("victim")
    with world.asks(world.one, "delete", "pods"):
        world.remove(objects.PODS, "default/victim")
    assert world.found() == {"evictions help"}
