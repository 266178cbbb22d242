"""Gangs that fit only in part: they have no turn, and users read what a turn would say."""

import importlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from tests.reference.strategies import worlds
from tests.reference.world import World, a_job, a_node, a_queue, a_shape, a_task, tasks_of
from tests.scheduler.running import DEFAULT, WITH_BINPACK, WITHOUT_GANG, Outcome, cycle
from volcano_py.framework.placing.partial_fits import PartialFits
from volcano_py.model.objects import JobRecord
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus

ONE, TWO = a_shape(cpu=1), a_shape(cpu=2)
NO_ROOM = "0/2 nodes are unavailable: 2 Insufficient cpu."
CAPACITY = DEFAULT + "  - name: capacity\n"
SLA = DEFAULT.replace("tiers:\n", "tiers:\n- plugins:\n  - name: sla\n    arguments: {sla-waiting-time: 10s}\n")
EVICTING = DEFAULT.replace("enqueue, allocate", "enqueue, allocate, preempt, reclaim")


@pytest.fixture(params=[1000, -1], ids=["each-has-its-turn", "all-are-looked-at-first"], autouse=True)
def few_or_many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let allocate do what it does with few jobs, and what it does with many."""
    monkeypatch.setattr(importlib.import_module("volcano_py.actions.allocate"), "_MANY", request.param)


def gangs(*sizes: int, shape: Shape = ONE, room: tuple[int, int] = (2, 1), **record: object) -> World:
    """Return gangs of these sizes, and two nodes with room for so many pods of one CPU."""
    names = [f"gang-{number}" for number in range(len(sizes))]
    return World(
        nodes=(a_node("n0", cpu=room[0]), a_node("n1", cpu=room[1])),
        jobs=tuple(a_gang(name, size, **record) for name, size in zip(names, sizes, strict=True)),
        tasks=tuple(task for name, size in zip(names, sizes, strict=True) for task in tasks_of(name, size, shape)),
    )


def a_gang(name: str, minimum: int, **record: object) -> JobRecord:
    return a_job(name, min_available=minimum, phase="Inqueue", **record)


def schedulable(outcome: Outcome) -> list[str]:
    """Return the pods that would have a node if their gang were complete."""
    return sorted(pod for pod, reason in outcome.reasons.items() if reason == "Schedulable")


def test_pods_that_would_have_a_node_name_it_and_the_others_say_why_not() -> None:
    outcome = cycle(gangs(4, 5))

    assert outcome.binds == []
    assert schedulable(outcome) == [f"gang-{gang}-{pod}" for gang in (0, 1) for pod in (0, 1, 2)]
    node = {outcome.messages[f"gang-1-{pod}"].split(" to ")[1].split(",")[0] for pod in (0, 1, 2)}
    assert node == {"n0", "n1"}
    assert {outcome.messages[pod] for pod in ("gang-0-3", "gang-1-3", "gang-1-4")} == {NO_ROOM}
    assert outcome.groups["gang-1"].conditions[0].message == (
        "2/5 tasks in gang unschedulable: pod group is not ready, 5 Pending, 5 minAvailable; Pending: 2 "
        f"Unschedulable, 3 Schedulable. Origin reason is gang-1-3: {NO_ROOM}"
    )


def test_a_gang_that_fits_is_placed_between_gangs_that_do_not() -> None:
    outcome = cycle(gangs(4, 3, 4))

    assert outcome.gangs == [["gang-1-0", "gang-1-1", "gang-1-2"]]
    assert schedulable(outcome) == []
    assert {outcome.messages[f"gang-{gang}-0"] for gang in (0, 2)} == {NO_ROOM}


def test_reasons_are_those_of_the_end() -> None:
    outcome = cycle(gangs(4, 2))  # when it is the turn of the first gang, three of its pods would find nodes

    assert [len(gang) for gang in outcome.gangs] == [2]
    assert schedulable(outcome) == ["gang-0-0"]


def test_without_the_plugin_gang_no_job_waits_for_room_for_all_of_its_pods() -> None:
    assert len(cycle(gangs(4, 4), WITHOUT_GANG).binds) == 3


def test_a_gang_of_several_shapes_fits_in_part_as_a_turn_of_it_would() -> None:
    world = gangs(4, 4, 4)
    mixed = [
        a_task(f"gang-{gang}-{pod}", TWO if pod == 1 else ONE, job=f"gang-{gang}")
        for gang in range(3)
        for pod in range(4)
    ]
    outcome = cycle(World(world.nodes, jobs=world.jobs, tasks=tuple(mixed)))

    assert outcome.binds == []
    assert {pod.rpartition("-")[2] for pod in schedulable(outcome)} == {"0"}
    assert outcome.messages["gang-2-1"] == NO_ROOM


def test_what_the_queue_may_hold_counts_like_room() -> None:
    world = gangs(4, 5, room=(20, 20))
    limited = World(world.nodes, queues=(a_queue(capability={"cpu": 3}),), jobs=world.jobs, tasks=world.tasks)
    outcome = cycle(limited, CAPACITY)

    assert outcome.binds == []
    assert schedulable(outcome) == [f"gang-{gang}-{pod}" for gang in (0, 1) for pod in (0, 1, 2)]
    asked = {outcome.messages[f"gang-{gang}-{pod}"] for gang, pod in ((0, 3), (1, 4))}
    assert asked == {
        'queue "default" may not hold more: 4 cpu asked, 0 held, 3 allowed (its capability)',
        'queue "default" may not hold more: 5 cpu asked, 0 held, 3 allowed (its capability)',
    }


def test_each_queue_has_its_own_limit() -> None:
    world = gangs(4, 4, room=(20, 20))
    queues = (a_queue("three", capability={"cpu": 3}), a_queue("two", capability={"cpu": 2}))
    jobs = tuple(replace(job, queue=queue.name) for job, queue in zip(world.jobs, queues, strict=True))
    outcome = cycle(World(world.nodes, queues=queues, jobs=jobs, tasks=world.tasks), CAPACITY)

    assert schedulable(outcome) == ["gang-0-0", "gang-0-1", "gang-0-2", "gang-1-0", "gang-1-1"]


def test_a_gang_with_fewer_pods_than_there_is_room_for_may_still_lack_some() -> None:
    world = gangs(4, 4)
    gated = a_shape(cpu=1, gates=["later"])
    tasks = (*tasks_of("gang-0", 2, ONE), *tasks_of("gang-0", 2, gated, first=2), *tasks_of("gang-1", 4, ONE))
    outcome = cycle(World(world.nodes, jobs=world.jobs, tasks=tasks))

    assert schedulable(outcome) == ["gang-0-0", "gang-0-1", "gang-1-0", "gang-1-1", "gang-1-2"]


def test_a_gang_that_may_keep_promises_for_fewer_pods_than_it_needs_has_its_turn() -> None:
    world = gangs(4, 4, creation=0.0)
    leaving = a_task("leaves", ONE, job="leaves", status=TaskStatus.RELEASING, node="n1")
    promised = World(
        (a_node("n0", cpu=0), a_node("n1", cpu=1)),
        jobs=(*world.jobs, a_gang("leaves", 1)),
        tasks=(*world.tasks, leaving),
    )

    assert "can possibly be assigned to n1" in cycle(promised, SLA, now=100.0).messages["gang-0-0"]
    assert cycle(promised, SLA, now=100.0).messages["gang-1-0"] == NO_ROOM


def test_resources_that_are_being_released_count_as_room() -> None:
    world = gangs(3, 3, room=(1, 2))
    leaving = a_task("leaves", ONE, job="leaves", status=TaskStatus.RELEASING, node="n1")
    outcome = cycle(World(world.nodes, jobs=(*world.jobs, a_gang("leaves", 1)), tasks=(*world.tasks, leaving)))

    told = sum("resource is released" in text for text in outcome.messages.values())
    assert told == 1
    assert outcome.reasons["gang-0-0"] == "Schedulable"


def test_nobody_plans_evictions_for_gangs_that_lack_room_if_nobody_may_be_evicted() -> None:
    assert cycle(gangs(4, 5), EVICTING).report.preemption_attempts == 0


def test_others_are_evicted_for_a_gang_that_lacks_room() -> None:
    world = gangs(4, priority=5)
    low = a_task("low", ONE, job="low", status=TaskStatus.RUNNING, node="n1")
    jobs = (*world.jobs, a_job("low", min_available=0, phase="Running", preemptable=True))
    nodes = (world.nodes[0], a_node("n1", cpu=2))
    tasks = tuple(a_task(f"gang-0-{pod}", ONE, job="gang-0", priority=5) for pod in range(4))
    outcome = cycle(World(nodes, jobs=jobs, tasks=(*tasks, low)), EVICTING)

    assert outcome.report.preemption_attempts > 0


@pytest.mark.parametrize("conf", [WITH_BINPACK, WITHOUT_GANG, CAPACITY, EVICTING])
@settings(max_examples=40, derandomize=True, deadline=None)
@given(world=worlds())
def test_the_turns_that_are_left_out_would_have_given_nothing(conf: str, world: World) -> None:
    outcome = cycle(world, conf)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PartialFits, "too_large", lambda self, shapes, jobs: np.zeros(len(jobs), dtype=bool))
        anew = cycle(world, conf)

    assert (outcome.binds, outcome.memory.nominations) == (anew.binds, anew.memory.nominations)


def test_gangs_that_fit_in_part_cost_no_turn(request: pytest.FixtureRequest) -> None:
    discarded = cycle(gangs(*[4] * 100)).report.jobs_discarded

    # Even if all are to have their turns, they are looked at after the first ones in vain.
    assert discarded == (8 if "each-has-its-turn" in request.node.name else 0)
