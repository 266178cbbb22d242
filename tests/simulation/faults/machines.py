"""Processes that are killed, paused, replaced or restarted, and clocks that jump.

| fault | what it does | targets |
|---|---|---|
| kill | ends a process as SIGKILL does, or with its machine, at any of its awaits; starts it again later | ours |
| kill of both schedulers | the same for both at once | |
| zone fails | kills the leading scheduler with its machine, and lets connections of the other one go half-open | |
| kill at a write | ends a process before the effect of a write, before its answer, or soon after it | writes |
| orderly end | SIGTERM; the kubelet starts the program again | ours |
| rolling update | starts a second process, then asks the first one to end | ours |
| pause | stops a process, often for longer than its lease lasts | ours |
| pause at a write | the same, after the effect of a write and before its answer | writes |
| restart of an API server | kills one, or both; the state survives | API servers |
| pause of an API server | stops one | API servers |
| clock jump | sets a wall clock wrong, by seconds or by an hour | ours, the API servers |
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.simulation.draws import Draws
from tests.simulation.faults.kinds import Begin, Kind, Rule, in_force
from tests.simulation.insight import works
from tests.simulation.machines import PATIENCE_S, Machine
from tests.simulation.plan import Strike
from volcano_py.apiserver.faults import Fault

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

_OURS: Final = ("scheduler-0", "scheduler-1", "scheduler-0", "scheduler-1", "controllers-0")
_SERVERS: Final = ("apiserver-a", "apiserver-b", "both")
_SCHEDULERS: Final = ("scheduler-0", "scheduler-1")
_WRITES: Final = (
    *("create pods/binding", "create pods/binding", "create pods/binding", "delete pods", "create pods"),
    *("* podgroups.scheduling.volcano.sh*", "* jobs.batch.volcano.sh/status", "* leases.coordination.k8s.io"),
)
_MOST_ROUNDS: Final = 40


def _machines(world: "World", strike: Strike) -> list[Machine]:
    both = {"both": ("apiserver-a", "apiserver-b"), "": _SCHEDULERS}
    return [world.machines[name] for name in both.get(strike.target, (strike.target,))]


def _after_rounds(world: "World", rounds: int, do: Callable[[], None]) -> None:
    """Do something after some rounds of the loop: between two awaits that happen at one time."""
    if rounds > 0:
        world.loop.call_soon(_after_rounds, world, rounds - 1, do)
    else:
        do()


def _start(machine: Machine) -> None:
    if not machine.alive:
        machine.start()


def kill(world: "World", strike: Strike) -> Callable[[], None]:
    """Kill machines, and start them again at the end."""
    machines = _machines(world, strike)
    draws = Draws(world.seed, f"kill {strike.number}")
    for machine in machines:
        world.strike(strike.kind)
        _after_rounds(world, draws.whole(0, _MOST_ROUNDS), lambda m=machine: m.kill(silently=strike.amount > 0.5))  # type: ignore[misc]

    def end() -> None:
        for machine in machines:
            _start(machine)

    return end


def _zone(world: "World", strike: Strike) -> Callable[[], None] | None:
    leading = [machine for machine in world.schedulers() if works(machine)]
    if not leading:
        return None
    world.strike(strike.kind)
    draws = Draws(world.seed, f"zone {strike.number}")
    for machine in world.schedulers():
        if machine not in leading:
            for end in world.network.ends(machine.process):
                end.silent = end.silent or draws.happens(strike.amount)
    for machine in leading:
        machine.kill(silently=True)

    def end() -> None:
        for machine in leading:
            _start(machine)

    return end


def _at_a_write(do: "Callable[[World, Strike, Machine], None]") -> Begin:
    """Return a fault that strikes the client of the next write that matches: before, within or after it."""

    def begin(world: "World", strike: Strike) -> Callable[[], None]:
        draws = Draws(world.seed, f"{strike.kind} {strike.number}")
        when = draws.one_of(("before", "within", "within", "after"))
        later_s, rounds = draws.between(0.0, 0.004), draws.whole(0, _MOST_ROUNDS)
        skipped = draws.whole(0, 3)

        def make(world: "World", strike: Strike, asked: "Asked") -> Fault | None:
            nonlocal skipped
            machine = world.machines.get(asked.client.name)
            if machine is None or machine.process is not asked.client or asked.verb == "watch":
                return None  # the answer to a watch ends minutes later, when all faults are over
            skipped -= 1
            if skipped >= 0:
                return None
            if when == "before":
                do(world, strike, machine)
                return Fault("drop_before")

            async def after() -> None:
                if when == "within":
                    do(world, strike, machine)
                else:
                    world.later(later_s, _after_rounds, world, rounds, lambda: do(world, strike, machine))

            asked.after = after
            return Fault("delay", delay_s=0.0)

        rule = Rule(world, strike, make, times=1)
        rule.verb, _, rule.resource = strike.target.partition(" ")
        return in_force(world, rule)

    return begin


def _killed(world: "World", strike: Strike, machine: Machine) -> None:
    machine.kill()
    world.later(Draws(world.seed, f"again {strike.number}").between(0.5, 20.0), _start, machine)


def _paused(world: "World", strike: Strike, machine: Machine) -> None:
    machine.pause()
    world.later(Draws(world.seed, f"again {strike.number}").between(1.0, 30.0), machine.resume)


def pause(world: "World", strike: Strike) -> Callable[[], None]:
    """Stop machines until the end."""
    machines = _machines(world, strike)
    for machine in machines:
        machine.pause()
        world.strike(strike.kind)

    def end() -> None:
        for machine in machines:
            machine.resume()

    return end


def terminate(world: "World", strike: Strike) -> None:
    """Ask a program to end; kill it when it does not."""
    machine = world.machines[strike.target]
    process = machine.process
    if machine.terminate():
        world.strike(strike.kind)

        def insist() -> None:
            if machine.process is process and machine.alive:
                machine.kill()
                machine.start()

        world.later(PATIENCE_S, insist)


def _replace(world: "World", strike: Strike) -> None:
    if world.machines[strike.target].replace(strike.amount):
        world.strike(strike.kind)


def _jump(world: "World", strike: Strike) -> None:
    clock = world.origin_clock if strike.target == "apiservers" else world.machines[strike.target].clock
    clock.ahead_s += strike.amount
    world.strike(strike.kind)


_CLOCKS: Final = ("scheduler-0", "scheduler-1", "controllers-0", "apiservers")

KINDS: Final = (
    Kind("kill", kill, _OURS, (0.5, 20.0), (0.0, 1.0), 4),
    Kind("kill of both schedulers", kill, ("",), (0.5, 10.0), (0.0, 1.0), 1),
    Kind("zone fails", _zone, ("",), (5.0, 25.0), (0.5, 1.0), 4),
    Kind("kill at a write", _at_a_write(_killed), _WRITES, (10.0, 20.0), weight=6),
    Kind("orderly end", terminate, _OURS, weight=3),
    Kind("rolling update", _replace, _OURS, amount=(0.5, 6.0), weight=3),
    Kind("pause", pause, _OURS, (1.0, 40.0), weight=4),
    Kind("pause at a write", _at_a_write(_paused), _WRITES, (10.0, 20.0), weight=4),
    Kind("restart of an API server", kill, _SERVERS, (0.2, 8.0), (0.0, 0.6), 3),
    Kind("pause of an API server", pause, _SERVERS, (1.0, 12.0)),
    Kind("clock jump", _jump, _CLOCKS, amount=(-4000.0, 4000.0)),
    Kind("small clock jump", _jump, _CLOCKS, amount=(-20.0, 20.0)),
)
