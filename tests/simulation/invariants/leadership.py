"""One leader at a time."""

from typing import TYPE_CHECKING

from tests.simulation import objects
from tests.simulation.invariants.invariant import Invariant
from volcano_py.apiserver.store import Event

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World


class OneLeader(Invariant):
    """Nothing that is sent after another's acquisition of the lease was accepted takes effect."""

    name = "one leader"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._holder: dict[str, tuple[str, float]] = {}  # group of processes -> holder's process, since

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Follow the leases, and look at every other write."""
        if asked is None:
            return
        who, group = asked.client, asked.client.name.partition("-")[0]
        if group not in ("scheduler", "controllers"):
            return  # webhooks run alone and without a lease; users need none
        if resource == objects.LEASES:
            holder = event.stored.obj["spec"].get("holderIdentity", "")
            known = self._holder.get(group)
            process = f"{who.name} {id(who)}"
            if holder and (known is None or known[0] != process):
                self._holder[group] = (process, self.world.loop.time())
            return
        known = self._holder.get(group)
        if known is None:
            self.violated(f"{who.name} writes {resource} {event.stored.key} before anybody leads")
        elif known[0] != f"{who.name} {id(who)}" and asked.sent_at > known[1]:
            late = asked.sent_at - known[1]
            self.violated(
                f"{who.name} wrote {resource} {event.stored.key} {late:.3f} s after another one had the lease"
            )
