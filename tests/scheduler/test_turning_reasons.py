"""A job whose reason changes its kind again and again is told about it once a minute, not in every cycle."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.reference.world import World, a_job, a_node, a_queue, a_shape, tasks_of
from tests.scheduler.running import Outcome, a_policy, cycle
from tests.scheduler.test_settling import carry_out
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.told import Told
from volcano_py.scheduler.telling import RENEWED_S, TURNS

SMALL, CORDONED = "Insufficient cpu", "were unschedulable"


class Flipping:
    """A gang that waits for a node that is too small, or cordoned; what is decided shows at once."""

    def __init__(self, *, keeps: bool = True, writes: bool = True) -> None:
        self._world = World(
            nodes=[a_node("n0", cpu="1")],
            queues=[a_queue("default")],
            jobs=[a_job("waits", min_available=2, phase="Inqueue")],
            tasks=tasks_of("waits", 2, a_shape(cpu="2")),
        )
        self._store, self._policy, self._memory = self._world.store(), a_policy(), Memory()
        self._keeps, self.writes = keeps, writes

    def told(self, why: str, *, at_s: float) -> Outcome:
        """Run a cycle at this time in which the gang waits for this reason."""
        self._store.set_node(a_node("n0", cpu="8", unschedulable=True) if why == CORDONED else a_node("n0", cpu="1"))
        outcome = cycle(self._store, self._policy, memory=self._memory, now=at_s)
        self._memory = outcome.memory if self._keeps else replace(outcome.memory, told=Told())
        if self.writes:
            carry_out(self._world, self._store, outcome)
        return outcome

    def turned(self) -> "Flipping":
        """Let the reason change its kind as often as is told at once, once a second."""
        self.told(SMALL, at_s=0.0)
        for number, why in zip(range(TURNS), kinds(CORDONED), strict=False):
            assert said(self.told(why, at_s=1.0 + number)) == why
        return self


def kinds(first: str) -> Iterator[str]:
    """Yield the two kinds in turn."""
    other = {SMALL: CORDONED, CORDONED: SMALL}
    while True:
        yield first
        first = other[first]


def said(outcome: Outcome) -> str | None:
    """Return which reason both pods and the PodGroup were given, None if nothing was written."""
    if not outcome.decisions:
        return None
    texts = [*outcome.messages.values(), *(one.conditions[-1].message for one in outcome.groups.values())]
    assert len(texts) == 3, texts
    (found,) = {why for why in (SMALL, CORDONED) for text in texts if why in text}
    return found


@pytest.mark.parametrize("keeps", [True, False])
def test_the_first_changes_are_told_at_once_and_the_next_one_when_texts_are_due(keeps: bool) -> None:
    gang = Flipping(keeps=keeps).turned()
    last_s = float(TURNS)

    whys = kinds(SMALL)
    for second in range(1, 9):
        assert said(gang.told(next(whys), at_s=last_s + second)) is None

    assert said(gang.told(SMALL, at_s=last_s + RENEWED_S)) == SMALL
    assert said(gang.told(CORDONED, at_s=last_s + RENEWED_S + 1)) is None
    assert said(gang.told(CORDONED, at_s=last_s + 2 * RENEWED_S)) == CORDONED


def test_a_job_that_shows_the_kind_that_holds_may_change_again_at_once() -> None:
    gang = Flipping().turned()
    last_s = float(TURNS)

    assert said(gang.told(CORDONED, at_s=last_s + RENEWED_S)) is None  # the texts are due, and say the same

    assert said(gang.told(SMALL, at_s=last_s + RENEWED_S + 1)) == SMALL
    assert said(gang.told(CORDONED, at_s=last_s + RENEWED_S + 2)) is None


def test_a_change_that_waits_is_told_though_nothing_else_happens() -> None:
    gang = Flipping().turned()

    delayed = gang.told(SMALL, at_s=TURNS + 1.0)

    assert said(delayed) is None
    assert delayed.report.repeats_until <= TURNS + RENEWED_S


def test_what_is_on_its_way_is_awaited_meanwhile() -> None:
    gang = Flipping().turned()
    gang.writes = False
    last_s = float(TURNS) + RENEWED_S
    assert said(gang.told(SMALL, at_s=last_s)) == SMALL

    for second, why in zip(range(1, 9), kinds(SMALL), strict=False):
        outcome = gang.told(why, at_s=last_s + second)
        assert outcome.messages == {}
