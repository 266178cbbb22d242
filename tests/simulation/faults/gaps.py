"""Gaps in watches: a client misses changes, and the versions from before are gone when it comes back."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.simulation.faults.kinds import Kind, replied, ruled
from tests.simulation.plan import Strike
from volcano_py.apiserver.faults import Fault

if TYPE_CHECKING:
    from tests.simulation.world import World

_refused: Final = ruled(replied(503), verb="watch")
_lost: Final = ruled(lambda *_: Fault("drop_after"), client="controllers*")
_LAG_S: Final = 8.0


def _gap(world: "World", strike: Strike) -> Callable[[], None]:
    """End the watches of everybody, refuse new ones for a while, and compact the history then.

    This is what a restart of all API servers looks like: their watch caches begin with the present state.
    """
    over = _refused(world, strike)
    assert over is not None
    world.strike(strike.kind)
    stores = (world.servers.store, *(lagging.store for lagging in world.servers.lagging.values()))
    for store in stores:
        for collection in store.collections.values():
            for watcher in tuple(collection.watchers):
                watcher.abort()

    def end() -> None:
        over()
        for store in stores:
            store.compact()

    return end


def _creations_unseen(world: "World", strike: Strike) -> Callable[[], None]:
    """Lose the answers to what controllers create, while a server shows it late."""
    over = _lost(world, strike)
    assert over is not None
    lagging = world.servers.lagging["apiserver-b"]
    lagging.lag_s = _LAG_S

    def end() -> None:
        over()
        lagging.lag_s = 0.0

    return end


KINDS: Final = (
    Kind("gap in watches", _gap, lasts_s=(2.0, 15.0), weight=3),
    Kind(
        "creations unseen",
        _creations_unseen,
        ("create pods", "create pods", "create podgroups*"),
        lasts_s=(5.0, 20.0),
        amount=(0.5, 1.0),
    ),
)
