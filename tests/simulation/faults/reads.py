"""Single reads whose answers are out of date when they arrive.

Schedulers read a pod when its watch is late: because a bind is overdue, or because the answer to it was lost. While the
answer to that read travels, the watch may catch up and show more than the answer does.

| fault | what it does | targets |
|---|---|---|
| gone as it is read | stalls a watch from a bind to the next read of a pod, and deletes that pod before the answer | |
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from tests.simulation import objects
from tests.simulation.draws import Draws
from tests.simulation.faults.kinds import Kind, Rule, in_force
from tests.simulation.faults.meanwhile import delete
from tests.simulation.network import End
from tests.simulation.plan import Strike
from volcano_py.apiserver.faults import Fault
from volcano_py.model.decisions import Bind, Decision

if TYPE_CHECKING:
    from tests.simulation.loop import Process
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

_GONE_S: Final = (0.0, 1.0)
"""How long after the read its pod is deleted."""
_SHOWN_S: Final = (0.0, 1.0)
"""How long after that the watch catches up."""
_ANSWERED_S: Final = (0.05, 4.0)
"""How long after the read its answer is sent."""


class _StalledWatch:
    """The watch of pods of one process, also when it is opened again: nothing arrives over it until it catches up."""

    def __init__(self, world: "World", strike: Strike, process: "Process") -> None:
        self._process = process
        self._stalled: list[End] = []
        for end in world.network.ends(process):
            if end.peer.watched == objects.PODS:
                self._stall(end.peer)
        self._over = in_force(world, Rule(world, strike, self._opened, "watch", objects.PODS, process.name))

    def _opened(self, _: "World", __: Strike, asked: "Asked") -> None:
        if asked.client is self._process and asked.connection is not None:
            self._stall(asked.connection.peer)

    def _stall(self, end: End) -> None:
        end.stall()
        self._stalled.append(end)

    def catch_up(self) -> None:
        """Let everything arrive."""
        self._over()
        while self._stalled:
            self._stalled.pop().flow()


def _gone_as_it_is_read(world: "World", strike: Strike) -> Callable[[], None]:
    """Stall the watch of a scheduler that binds pods until it reads one; delete that one before the answer is sent."""
    draws = Draws(world.seed, f"{strike.kind} {strike.number}")
    watches: list[_StalledWatch] = []

    def decided(process: "Process", batch: Sequence[Decision]) -> None:
        if any(isinstance(decision, Bind) for decision in batch):
            wait_no_longer()
            watches.append(_StalledWatch(world, strike, process))

    def wait_no_longer() -> None:
        if decided in world.upon_decisions:
            world.upon_decisions.remove(decided)

    def catch_up() -> None:
        for watch in watches:
            watch.catch_up()

    def read(_: "World", __: Strike, asked: "Asked") -> Fault | None:
        namespace, name = asked.key.split("/")
        if world.servers.get(objects.PODS, name, namespace) is None:
            return None
        wait_no_longer()
        asked.after = lambda: answer_late(namespace, name)
        return Fault("delay", delay_s=0.0)

    async def answer_late(namespace: str, name: str) -> None:
        gone_s = draws.between(*_GONE_S)
        world.later(gone_s, delete, world, objects.PODS, name, namespace)
        world.later(gone_s + draws.between(*_SHOWN_S), catch_up)
        await asyncio.sleep(draws.between(*_ANSWERED_S))

    over = in_force(world, Rule(world, strike, read, "get", objects.PODS, "scheduler-*", times=1))
    world.upon_decisions.append(decided)

    def end() -> None:
        wait_no_longer()
        over()
        catch_up()

    return end


KINDS: Final = (Kind("gone as it is read", _gone_as_it_is_read, lasts_s=(35.0, 70.0), weight=5),)
