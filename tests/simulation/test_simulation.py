"""Simulations always go the same way, hold, and leave nothing behind."""

import gc
import weakref
from dataclasses import replace
from typing import Any

import aiohttp.connector
import msgspec
import pytest

from tests.simulation import programs, world
from tests.simulation.__main__ import elsewhere
from tests.simulation.drawing import draw_plan
from tests.simulation.draws import Draws
from tests.simulation.faults import FAULTS, Rule
from tests.simulation.invariants.binds import OneBinding
from tests.simulation.loop import HarnessError
from tests.simulation.plan import FULL, SHORT
from tests.simulation.world import simulate
from volcano_py.kube.own_faults import OwnFaults
from volcano_py.writing.write_queue import WriteQueue

SHORT_SEEDS = range(12)
FULL_SEED = 0
SEED = 3
MOST_LEFT = 2000
"""Objects that a simulation may leave: caches of the programs' modules."""


@pytest.mark.parametrize("seed", SHORT_SEEDS)
def test_a_short_schedule_holds(seed: int) -> None:
    """No invariant is violated, and pods got nodes."""
    outcome = simulate(draw_plan(seed, SHORT))
    assert not outcome.violations
    assert outcome.bound


@pytest.mark.parametrize("seed", SHORT_SEEDS[:4])
def test_a_schedule_with_narrow_queues_drops_writes_and_holds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not fit in a queue is decided again."""
    dropped: list[str] = []
    put = WriteQueue.put

    def noted(queue: WriteQueue[Any, Any], *given: Any) -> bool:
        if not (taken := put(queue, *given)):
            dropped.append(queue.name)
        return taken

    monkeypatch.setattr(WriteQueue, "put", noted)
    assert not simulate(replace(draw_plan(seed, SHORT), narrow=True)).violations
    assert dropped


def test_a_full_schedule_holds() -> None:
    """The same, longer."""
    assert not simulate(draw_plan(FULL_SEED, FULL)).violations


def test_a_seed_always_goes_the_same_way() -> None:
    """Here, told as a story, and in another process with other hashes of strings."""
    plan = draw_plan(SEED, SHORT)
    first = simulate(plan)
    assert simulate(plan, told=True).digest == first.digest == elsewhere(SEED, "short")
    assert simulate(draw_plan(SEED + 1, SHORT)).digest != first.digest


def test_idle_connections_do_not_age_by_the_real_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow machine keeps the same connections as a fast one."""
    asked: list[float] = []

    def real_clock() -> float:
        asked.append(0.0)
        return 0.0

    monkeypatch.setattr(aiohttp.connector, "monotonic", real_clock)
    simulate(draw_plan(SEED, SHORT))
    assert not asked
    assert vars(aiohttp.connector)["monotonic"] is real_clock


def test_nothing_is_left_behind(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """No object of a world outlives it, nothing is printed, and memory stays flat."""
    worlds: list[weakref.ref[world.World]] = []
    begin = world.World.__init__

    def remembered(self: world.World, *arguments: object) -> None:
        worlds.append(weakref.ref(self))
        begin(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(world.World, "__init__", remembered)
    definitions = msgspec.json.encode(programs._definitions())
    simulate(draw_plan(SEED, SHORT))
    established = msgspec.json.encode(programs._established)
    gc.collect()
    before = len(gc.get_objects())
    simulate(draw_plan(SEED, SHORT))
    assert [one() for one in worlds] == [None, None]
    assert len(gc.get_objects()) - before < MOST_LEFT
    assert msgspec.json.encode(programs._definitions()) == definitions
    assert msgspec.json.encode(programs._established) == established
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("where", [(Rule, "judge"), (OneBinding, "changed"), (OneBinding, "at_rest")])
def test_bugs_of_the_simulation_itself_are_raised(where: tuple[type, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the seed, although a server would make an answer of them."""

    def broken(*_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(*where, broken)
    refused = FAULTS["409"].strike(0, 1.0, Draws(0, "refused"))
    with pytest.raises(HarnessError, match=r"seed 0 \(short\).*a bug"):
        simulate(replace(draw_plan(0, SHORT), strikes=(refused,)))


def test_what_programs_survive_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where no test switches survival off: the simulation runs from the command line, too."""

    def broken(*_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(OwnFaults, "survived", True)
    monkeypatch.setattr("volcano_py.controllers.queue.decision.judge", broken)

    outcome = simulate(replace(draw_plan(0, SHORT), strikes=()))

    assert [violation.invariant for violation in outcome.violations] == ["no process fails"]
    assert "a bug" in outcome.violations[0].text
    assert OwnFaults.survived
