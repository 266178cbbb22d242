"""Faults at a moment that a clock hardly ever hits, and faults of one object among many."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.simulation.draws import Draws
from tests.simulation.faults.kinds import Kind, replied, ruled
from tests.simulation.loop import Process
from tests.simulation.plan import Strike

if TYPE_CHECKING:
    from tests.simulation.world import World

_PROGRAMS: Final = ("scheduler-0", "scheduler-1", "scheduler-0", "scheduler-1", "controllers-0")
_ARMED_S: Final = 60.0
"""For how long a fault waits for its moment."""


def _as_it_dials(world: "World", strike: Strike, do: Callable[[], None]) -> None:
    """Do something to a program when it opens a connection the next time, or the time after that."""
    draws = Draws(world.seed, f"dials {strike.number}")
    left = draws.whole(1, 3)
    until = world.loop.time() + _ARMED_S

    def dialled(process: Process) -> None:
        nonlocal left
        if process is not world.machines[strike.target].process:
            return
        left -= 1
        if left <= 0 or world.loop.time() > until:
            world.network.on_dial.remove(dialled)
            if left == 0 and not world.quiet and world.loop.time() <= until:
                world.strike(strike.kind)
                do()

    world.network.on_dial.append(dialled)


def _pause_as_it_dials(world: "World", strike: Strike) -> None:
    machine = world.machines[strike.target]

    def pause() -> None:
        machine.pause()
        world.later(strike.lasts_s, resume)

    def resume() -> None:
        world.last_fault_at = world.loop.time()
        machine.resume()

    _as_it_dials(world, strike, pause)


def _no_token(world: "World", strike: Strike) -> Callable[[], None]:
    """Let what gives a program its tokens hang; the token that it has stays valid."""
    machine = world.machines[strike.target]
    machine.token_source_hangs += 1
    world.strike(strike.kind)

    def end() -> None:
        machine.token_source_hangs -= 1

    return end


KINDS: Final = (
    Kind("pause as it dials", _pause_as_it_dials, _PROGRAMS, (12.0, 25.0), weight=3),
    Kind("token source hangs", _no_token, _PROGRAMS, (10.0, 60.0)),
    Kind("some cannot be read", ruled(replied(500), chosen=True), ("get pods",), (30.0, 150.0), (0.1, 0.7), 3),
)
