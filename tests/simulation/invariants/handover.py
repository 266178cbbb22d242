"""How a lease passes from one process to the next."""

from typing import TYPE_CHECKING, Final

from tests.simulation import objects
from tests.simulation.invariants.invariant import Invariant
from tests.simulation.loop import Process, State
from volcano_py.apiserver.store import Event

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

_ENDS_S: Final = 30.0
"""A process that hears of its lost lease ends at once; one that hears nothing ends after its renew deadline of 10 s."""
_OF_A_LEADER: Final = frozenset({("create", "pods/binding"), ("delete", "pods")})
"""Requests whose outcome the next leader must be able to see when it begins."""


class FormerHolderEnds(Invariant):
    """A process whose lease another one has taken ends, and never leads again.

    It has decided on what it knew before the other one led. Time in which it was stopped does not count.
    """

    name = "who lost the lease ends"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._holder: dict[str, Process] = {}
        self._lost: dict[Process, float] = {}  # for how many seconds it has been running since

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Look who takes a lease from whom."""
        if resource != objects.LEASES or asked is None:
            return
        if event.type == "DELETED" or not event.stored.obj["spec"].get("holderIdentity"):
            self._holder.pop(event.stored.key, None)
            return
        before = self._holder.get(event.stored.key)
        self._holder[event.stored.key] = asked.client
        if before is not None and before is not asked.client:
            self._lost[before] = 0.0
        if asked.client in self._lost:
            self.violated(f"{asked.client.name} leads again although another one has led meanwhile")

    def now(self) -> None:
        """Look for former holders that still run."""
        for process, seconds in list(self._lost.items()):
            if process.state is State.DEAD:
                del self._lost[process]
            elif process.state is State.RUNS:
                self._lost[process] = seconds + 1.0
                if seconds > _ENDS_S:
                    self.violated(f"{process.name} lost its lease {seconds:.0f} s ago and still runs")


class ReleasedAtLast(Invariant):
    """A leader that ends in order releases its lease when its binds and evictions are answered, and not before.

    The next leader begins with what the API server shows it. Looked at are requests whose answer the leader awaits.
    """

    name = "the lease is released at last"

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Look what is still under way when a lease is released."""
        if resource != objects.LEASES or asked is None or event.type == "DELETED":
            return
        if event.stored.obj["spec"].get("holderIdentity"):
            return
        for one in self.world.servers.open:
            awaited = one.connection is not None and not one.connection.is_closing()
            if one.client is asked.client and (one.verb, one.resource) in _OF_A_LEADER and awaited:
                self.violated(f"{one.client.name} has released its lease while {one.verb} {one.resource} is under way")
