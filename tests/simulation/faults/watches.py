"""Watches that end, lag, repeat, or say nothing.

| fault | what it does | targets |
|---|---|---|
| older state | one API server knows what was written seconds ago; its watches, or its lists, too, show that | |
| bookmarks only | watches of one API server bring nothing but bookmarks of the version at which it stands still | |
| watch stalls | nothing arrives over watches, although the connections are open; later all of it comes | resource |
| watches of a process stall | the same for all watches of one process, for longer than the ledger waits | ours |
| compaction | the servers forget their history, so old versions are answered with 410 | |
| watch cut, watch expired | running watches break off, or end with 410 | resource |
| events repeated | running watches bring each of the next events twice | resource |
| watch refused with 410 or 404 | running watches break off, and new ones are refused | resource |
| list refused with 404 | running watches end with 410, and the lists that follow are refused | resource |
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tests.simulation.draws import Draws
from tests.simulation.faults.kinds import Begin, Kind, replied, ruled
from tests.simulation.plan import Strike

if TYPE_CHECKING:
    from tests.simulation.world import World

_RESOURCES: Final = (
    "pods",
    "pods",
    "nodes",
    "podgroups.scheduling.volcano.sh",
    "queues.scheduling.volcano.sh",
    "jobs.batch.volcano.sh",
    "*",
)


def _lag(world: "World", strike: Strike) -> Callable[[], None]:
    lagging = world.servers.lagging["apiserver-b"]
    lagging.lag_s = strike.amount
    lagging.stale_lists = strike.target == "lists"
    world.strike(strike.kind)

    def end() -> None:
        lagging.lag_s, lagging.stale_lists = 0.0, False

    return end


def _bookmarks(world: "World", strike: Strike) -> Callable[[], None]:
    lagging = world.servers.lagging["apiserver-b"]
    lagging.stand_still()
    over = False

    def mark() -> None:
        if not over:
            world.strike(strike.kind)
            lagging.mark()
            world.later(1.0, mark)

    def end() -> None:
        nonlocal over
        over = True
        lagging.go_on()

    mark()
    return end


def _stall(world: "World", strike: Strike) -> Callable[[], None]:
    draws = Draws(world.seed, f"stall {strike.number}")
    stalled = [
        end
        for name in ("apiserver-a", "apiserver-b")
        for end in world.network.ends(world.machines[name].process)
        if end.watched and strike.target in ("*", end.watched, end.peer.process.name) and draws.happens(strike.amount)
    ]
    for end in stalled:
        world.strike(strike.kind)
        end.stall()

    def flow() -> None:
        for end in stalled:
            end.flow()

    return flow


def _compact(world: "World", strike: Strike) -> None:
    world.servers.store.compact()
    for lagging in world.servers.lagging.values():
        lagging.store.compact()
    world.strike(strike.kind)


def _each_watcher(world: "World", strike: Strike, do: Callable[[object], None]) -> None:
    draws = Draws(world.seed, f"watchers {strike.number}")
    for store in (world.servers.store, *(lagging.store for lagging in world.servers.lagging.values())):
        for collection in store.collections.values():
            if strike.target in ("*", collection.name):
                for watcher in tuple(collection.watchers):
                    if draws.happens(strike.amount):
                        world.strike(strike.kind)
                        do(watcher)


def _cut(world: "World", strike: Strike) -> None:
    _each_watcher(world, strike, lambda watcher: watcher.abort())  # type: ignore[attr-defined]


def _expire(world: "World", strike: Strike) -> None:
    _each_watcher(world, strike, lambda watcher: watcher.expire())  # type: ignore[attr-defined]


def _then_refused(begin: Begin, code: int) -> Begin:
    """Return a fault that ends running watches, and refuses what clients do about it."""
    refuse = ruled(replied(code))

    def both(world: "World", strike: Strike) -> Callable[[], None] | None:
        begin(world, replace(strike, kind="watch cut", target=strike.target.partition(" ")[2]))
        return refuse(world, strike)

    return both


def _repeat(world: "World", strike: Strike) -> None:
    _each_watcher(world, strike, lambda watcher: watcher.duplicate(3))  # type: ignore[attr-defined]


KINDS: Final = (
    Kind("older state", _lag, ("watches", "watches", "lists"), (3.0, 30.0), (0.2, 12.0), 5),
    Kind("bookmarks only", _bookmarks, ("",), (3.0, 30.0)),
    Kind("watch stalls", _stall, _RESOURCES, (2.0, 40.0), (0.3, 1.0), 5),
    Kind(
        "watches of a process stall",
        _stall,
        ("scheduler-0", "scheduler-1", "controllers-0"),
        (20.0, 45.0),
        (0.6, 1.0),
        3,
    ),
    Kind("compaction", _compact, weight=1),
    Kind("watch cut", _cut, _RESOURCES, amount=(0.3, 1.0)),
    Kind("watch expired", _expire, _RESOURCES, amount=(0.3, 1.0)),
    Kind("events repeated", _repeat, _RESOURCES, amount=(0.3, 1.0)),
    Kind("watch refused with 410", _then_refused(_cut, 410), ("watch pods", "watch *"), (1.0, 10.0), (0.5, 1.0)),
    Kind(
        "watch refused with 404",
        _then_refused(_cut, 404),
        ("watch pods", "watch nodes", "watch *"),
        (1.0, 6.0),
        (0.5, 1.0),
    ),
    Kind(
        "list refused with 404",
        _then_refused(_expire, 404),
        ("list podgroups.scheduling.volcano.sh", "list pods", "list *"),
        (1.0, 6.0),
        (0.5, 1.0),
    ),
)
