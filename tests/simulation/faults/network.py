"""Partitions, silence, slowness and bytes that are not what was sent.

| fault | what it does | targets |
|---|---|---|
| partition | lets no packet pass between a client and one API server | pairs |
| isolation | lets no packet pass between a client and both API servers | clients |
| half-open connections | open connections of a client go silent for ever; nobody is told | clients |
| slow network | adds up to two seconds to every piece from and to a machine | clients, API servers |
| garbled answers | changes bytes of answers and watch lines | clients |
| cut answers | ends answers and watch lines in their middle, and closes the connection | clients |
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.simulation.draws import Draws
from tests.simulation.faults.kinds import Kind
from tests.simulation.network import End
from tests.simulation.plan import Strike

if TYPE_CHECKING:
    from tests.simulation.world import World

_CLIENTS: Final = ("scheduler-0", "scheduler-1", "controllers-0")
SERVERS: Final = ("apiserver-a", "apiserver-b")
_SHORTEST: Final = 40
"""Pieces below this have no body that could be spoiled."""


def _partition(world: "World", strike: Strike) -> Callable[[], None]:
    one, _, other = strike.target.partition(" ")
    world.network.partition(one, other)
    world.strike(strike.kind)
    return lambda: world.network.heal(one, other)


def isolate(world: "World", strike: Strike) -> Callable[[], None]:
    """Cut a machine off from both API servers."""
    for server in SERVERS:
        world.network.partition(strike.target, server)
    world.strike(strike.kind)

    def end() -> None:
        for server in SERVERS:
            world.network.heal(strike.target, server)

    return end


def silence(world: "World", strike: Strike) -> None:
    """Let open connections of a machine go silent, as a balancer does that has forgotten them."""
    draws = Draws(world.seed, f"silence {strike.number}")
    for end in world.network.ends(world.machines[strike.target].process):
        if draws.happens(strike.amount):
            end.silent = True
            world.strike(strike.kind)


def slow_down(world: "World", strike: Strike) -> Callable[[], None]:
    """Let every piece from and to a machine travel longer."""
    world.network.slow_down(strike.target, strike.amount)
    world.strike(strike.kind)
    return lambda: world.network.slow_down(strike.target, 0.0)


Spoil = Callable[[End, bytes, Draws], bytes]


def _spoiling(spoil: Spoil) -> "Callable[[World, Strike], Callable[[], None]]":
    """Return a fault that does something to a part of the pieces that a client is sent."""

    def begin(world: "World", strike: Strike) -> Callable[[], None]:
        draws = Draws(world.seed, f"{strike.kind} {strike.number}")

        def tamper(end: End, data: bytes) -> bytes:
            if end.peer.process.name != strike.target or len(data) < _SHORTEST or not draws.happens(strike.amount):
                return data
            world.strike(strike.kind)
            return spoil(end, data, draws)

        world.network.tampers.append(tamper)

        def over() -> None:
            if tamper in world.network.tampers:
                world.network.tampers.remove(tamper)

        return over

    return begin


def _garbled(_: End, data: bytes, draws: Draws) -> bytes:
    at = draws.whole(20, len(data) - 8)
    return data[:at] + b"\x00}{\xff" + data[at + 4 :]


def _cut(end: End, data: bytes, draws: Draws) -> bytes:
    end._loop.call_soon(end.abort, context=end._context)  # after what is written now
    return data[: draws.whole(1, len(data) - 1)]


_PAIRS: Final = tuple(f"{client} {server}" for client in _CLIENTS for server in SERVERS)

KINDS: Final = (
    Kind("partition", _partition, _PAIRS, (2.0, 40.0)),
    Kind("isolation", isolate, _CLIENTS, (2.0, 40.0), weight=3),
    Kind("half-open connections", silence, _CLIENTS, amount=(0.3, 1.0), weight=4),
    Kind("slow network", slow_down, (*_CLIENTS, *SERVERS), (2.0, 20.0), (0.05, 2.0)),
    Kind("garbled answers", _spoiling(_garbled), _CLIENTS, (1.0, 10.0), (0.02, 0.3)),
    Kind("cut answers", _spoiling(_cut), _CLIENTS, (1.0, 10.0), (0.02, 0.4)),
)
