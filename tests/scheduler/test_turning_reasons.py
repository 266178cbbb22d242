"""A job whose reason changes its kind again and again is told about it once a minute, not in every cycle."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from tests.reference.world import Task, World, a_job, a_node, a_queue, a_shape, tasks_of
from tests.scheduler.running import Outcome, a_policy, cycle
from tests.scheduler.test_settling import carry_out
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.told import Told
from volcano_py.model.statuses import TaskStatus
from volcano_py.scheduler import telling
from volcano_py.scheduler.telling import RENEWED_S, TURNS

SMALL, CORDONED = "Insufficient cpu", "were unschedulable"


class Flipping:
    """Gangs that wait for a node that is too small, or cordoned. What is decided shows at once, while it ``writes``."""

    def __init__(self, *gangs: str, writes: bool = True) -> None:
        names = gangs or ("waits",)
        self.world = World(
            nodes=[a_node("n0", cpu="1"), a_node("full", cpu="0")],
            queues=[a_queue("default")],
            jobs=[a_job(name, min_available=2, phase="Inqueue", creation=float(at)) for at, name in enumerate(names)],
            tasks=[task for name in names for task in tasks_of(name, 30, a_shape(cpu="2"))],
        )
        there = replace(self.world, tasks=[task for name in names for task in self.members(name)[:2]])
        self.store, self.memory, self.writes = there.store(), Memory(), writes
        self._policy = a_policy()

    def members(self, gang: str = "waits") -> list[Task]:
        """Return the pods of a gang; the first two are there from the beginning."""
        return [task for task in self.world.tasks if task.record.job == gang]

    def let(self, why: str) -> None:
        """Make this the reason why the gangs wait."""
        self.store.set_node(a_node("n0", cpu="8", unschedulable=True) if why == CORDONED else a_node("n0", cpu="1"))

    def told(self, why: str, *, at_s: float, memory: Memory | None = None) -> Outcome:
        """Run a cycle at this time in which the gangs wait for this reason."""
        self.let(why)
        outcome = cycle(self.store, self._policy, memory=memory or self.memory, now=at_s)
        if memory is None:
            self.memory = outcome.memory
            if self.writes:
                carry_out(self.world, self.store, outcome)
        return outcome

    def turned(self) -> "Flipping":
        """Let the reason change its kind as often as is told at once, once a second."""
        self.told(SMALL, at_s=0.0)
        for number, why in zip(range(TURNS), kinds(CORDONED), strict=False):
            assert set(said(self.told(why, at_s=1.0 + number))) == {why}
        return self

    def shown(self, gang: str = "waits") -> set[str]:
        """Return the reasons that the first two pods and the PodGroup of a gang show."""
        places = [self.store.task(task.record.uid) for task in self.members(gang)[:2]]
        (job,) = (job for job in self.world.jobs if job.key.name == gang)
        record = self.store.job(job.key)
        assert record is not None
        texts = [place.record.condition for place in places if place is not None]
        return {reason(text) for text in (*texts, *(one.message for one in record.conditions))}


def kinds(first: str) -> Iterator[str]:
    """Yield the two kinds in turn."""
    other = {SMALL: CORDONED, CORDONED: SMALL}
    while True:
        yield first
        first = other[first]


def reason(text: str) -> str:
    """Return which of the two reasons a text gives; the node "full" is always too small."""
    assert SMALL in text
    return CORDONED if CORDONED in text else SMALL


def said(outcome: Outcome) -> list[str]:
    """Return the reasons that pods and PodGroups were given in a cycle."""
    texts = [*outcome.messages.values(), *(c.message for one in outcome.groups.values() for c in one.conditions)]
    return [reason(text) for text in texts]


def test_the_first_changes_are_told_at_once_and_the_next_one_when_texts_are_due() -> None:
    gang = Flipping().turned()
    last_s = float(TURNS)

    for second, why in zip(range(1, 9), kinds(SMALL), strict=False):
        assert said(gang.told(why, at_s=last_s + second)) == []

    assert said(gang.told(SMALL, at_s=last_s + RENEWED_S)) == [SMALL] * 3
    assert said(gang.told(CORDONED, at_s=last_s + RENEWED_S + 1)) == []
    assert said(gang.told(CORDONED, at_s=last_s + 2 * RENEWED_S)) == [CORDONED] * 3


def test_until_then_another_kind_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    gang, find, changed = Flipping().turned(), telling.Telling._find_changed, list[bool]()
    monkeypatch.setattr(
        telling.Telling, "_find_changed", lambda self: (changed.append(bool(find(self).any())), find(self))[1]
    )

    for second, why in zip((1.0, 2.0, RENEWED_S), kinds(SMALL), strict=False):
        gang.told(why, at_s=TURNS + second)

    assert changed == [False, False, True]


def test_a_job_that_shows_the_kind_that_holds_may_change_again_at_once() -> None:
    gang = Flipping().turned()
    last_s = float(TURNS)

    assert said(gang.told(CORDONED, at_s=last_s + RENEWED_S)) == []  # the texts are due, and say the same

    assert said(gang.told(SMALL, at_s=last_s + RENEWED_S + 1)) == [SMALL] * 3
    assert said(gang.told(CORDONED, at_s=last_s + RENEWED_S + 2)) == []


def test_a_change_that_waits_is_told_though_nothing_else_happens() -> None:
    gang = Flipping().turned()

    delayed = gang.told(SMALL, at_s=TURNS + 1.0)

    assert said(delayed) == []
    assert delayed.report.repeats_until <= TURNS + RENEWED_S


@pytest.mark.parametrize("news", [TaskStatus.PENDING, TaskStatus.SUCCEEDED])
def test_other_news_about_a_job_do_not_put_off_a_change_that_waits(news: TaskStatus) -> None:
    gang = Flipping().turned()

    for second in range(1, int(RENEWED_S) + 1):
        if second == 30:
            task = gang.members()[2]
            gang.store.set_task(task.record, task.shape, news, "full" if news is TaskStatus.SUCCEEDED else "")
        gang.told(SMALL, at_s=TURNS + float(second))
        assert gang.shown() == ({CORDONED} if second < RENEWED_S else {SMALL})


def test_news_about_one_pod_do_not_put_off_the_numbers_of_another() -> None:
    big, far = a_shape(cpu="2"), a_shape(cpu="1", node_selector={"disk": "ssd"})
    world = World(
        nodes=[a_node("n0", cpu="1"), a_node("full", cpu="0")],
        queues=[a_queue("default")],
        jobs=[a_job("waits", min_available=1, phase="Inqueue")],
        tasks=[*tasks_of("waits", 1, big, role="big"), *tasks_of("waits", 1, far, role="far")],
    )
    store, policy, memory = world.store(), a_policy(), Memory()

    def told(at_s: float) -> set[str]:
        nonlocal memory
        outcome = cycle(store, policy, memory=memory, now=at_s)
        memory = outcome.memory
        carry_out(world, store, outcome)
        return set(outcome.messages)

    assert told(0.0) == {"waits-big-0", "waits-far-0"}
    store.set_node(a_node("more", cpu="1"))
    assert told(10.0) == set()
    store.set_node(a_node("n0", cpu="1", unschedulable=True))
    assert told(RENEWED_S - 1) == {"waits-far-0"}

    assert told(RENEWED_S + 1) == {"waits-big-0"}


def test_a_change_that_waits_does_not_wait_behind_jobs_of_which_only_numbers_may_differ(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"calm-{number}" for number in range(9)]
    gangs, last_s = Flipping(*names, "waits").turned(), float(TURNS)
    turns = np.where([key is not None and key.name == "waits" for key in gangs.memory.texts.keys], TURNS, 0)
    gangs.memory = replace(gangs.memory, texts=replace(gangs.memory.texts, turns=turns))
    monkeypatch.setattr(telling, "_RENEWED_AT_ONCE", 1)
    gangs.told(SMALL, at_s=last_s + 1)
    assert (gangs.shown("waits"), gangs.shown("calm-0")) == ({CORDONED}, {SMALL})
    earlier = np.where(turns == TURNS, last_s + 1, last_s)  # the others were told earlier, and are due first
    gangs.memory = replace(gangs.memory, texts=replace(gangs.memory.texts, renewed=earlier))

    gangs.told(SMALL, at_s=last_s + RENEWED_S + 1)

    assert gangs.shown("waits") == {SMALL}


def test_a_status_that_is_on_its_way_is_awaited_meanwhile() -> None:
    gang = Flipping().turned()
    gang.writes = False
    last_s = float(TURNS) + RENEWED_S
    assert said(gang.told(SMALL, at_s=last_s)) == [SMALL] * 3

    for second, why in zip(range(1, 50), kinds(CORDONED), strict=False):
        assert said(gang.told(why, at_s=last_s + second)) == []
    assert said(gang.told(SMALL, at_s=last_s + RENEWED_S)) == []


@pytest.mark.parametrize("seed", range(12))
def test_a_cycle_without_caches_decides_and_remembers_the_same_while_reasons_turn(seed: int) -> None:
    rng, gangs, at_s, rested = Random(seed), Flipping("a", "b", writes=False), 0.0, 0
    late: list[Outcome] = []
    for number in range(60):
        at_s += rng.choice((1.0, 1.0, 1.0, 5.0, 30.0, RENEWED_S + 1))
        task = rng.choice(gangs.world.tasks)
        if rng.random() < 0.3 and gangs.store.task(task.record.uid) is None:
            gangs.store.set_task(task.record, task.shape, TaskStatus.PENDING)
        elif rng.random() < 0.3 and gangs.store.task(task.record.uid) is not None:
            gangs.store.move_task(task.record.uid, TaskStatus.SUCCEEDED, "full")
        why = rng.choice((SMALL, CORDONED))
        anew = gangs.told(why, at_s=at_s, memory=replace(gangs.memory, told=Told()))
        kept = gangs.told(why, at_s=at_s)
        assert kept.decisions == anew.decisions, number
        assert kept.memory == anew.memory, number
        rested += int((kept.memory.texts.turns == TURNS).any())
        late.append(kept)
        if rng.random() < 0.5:
            for one in late:
                carry_out(gangs.world, gangs.store, one)
            late.clear()
    assert rested
