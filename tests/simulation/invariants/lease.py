"""Who leads goes on leading as long as nothing hinders it."""

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from tests.simulation import objects
from tests.simulation.invariants.invariant import Invariant
from tests.simulation.loop import Process, State
from volcano_py.apiserver.store import Event

if TYPE_CHECKING:
    from tests.simulation.machines import Machine
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

_LEASE_S: Final = 15.0
_SERVERS: Final = ("apiserver-a", "apiserver-b")


class LeaseIsKept(Invariant):
    """A leader loses its lease only if it, or its way to the API servers, is in trouble."""

    name = "the lease is kept"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._holder: dict[str, tuple[Process, float]] = {}
        self._hindered_at: dict[str, float] = {}

    def now(self) -> None:
        """Look who is hindered, and who has not renewed its lease although nothing hinders it."""
        at = self.world.loop.time()
        servers = [self.world.machines[name] for name in _SERVERS]
        everybody = not all(map(_runs, servers)) or bool(self.world.network.tampers)
        for machine in self.world.machines.values():
            if everybody or self._hindered(machine, servers):
                self._hindered_at[machine.name] = at
        for group, (process, kept_at) in self._holder.items():
            silent_s = at - max(kept_at, self._hindered_at.get(process.name, 0.0))
            if process.state is State.RUNS and silent_s > _LEASE_S:
                self.violated(f"{process.name} leads the {group} and has not renewed its lease for {silent_s:.0f} s")

    def answered(self, asked: "Asked", status: int) -> None:
        """A refusal hinders, too."""
        if asked.resource.startswith("leases") and status >= 400:
            self._hindered_at[asked.client.name] = self.world.loop.time()

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Look at who takes a lease from whom."""
        if resource != objects.LEASES or asked is None or event.type == "DELETED":
            return
        group = asked.client.name.partition("-")[0]
        before = self._holder.get(group, (None, 0.0))[0]
        if not event.stored.obj["spec"].get("holderIdentity"):
            self._holder.pop(group, None)
            return
        self._holder[group] = (asked.client, self.world.loop.time())
        if before is None or before is asked.client or before.name == asked.client.name:
            return
        at = self.world.loop.time()
        untroubled_s = at - self._hindered_at.get(before.name, 0.0)
        if before.state is State.RUNS and untroubled_s > _LEASE_S + 3.0:
            self.violated(
                f"{asked.client.name} has taken the lease of {before.name}, which nothing has hindered"
                f" for {untroubled_s:.0f} s"
            )

    def _hindered(self, machine: "Machine", servers: "list[Machine]") -> bool:
        network = self.world.network
        if not _runs(machine) or any(not network.connected(machine.process, one.process) for one in servers):
            return True
        if any(network.slow(name) for name in (machine.name, *_SERVERS)):
            return True
        if any(end.silent for end in network.ends(machine.process)):
            return True
        return any(
            fnmatchcase("leases.coordination.k8s.io", rule.resource) and fnmatchcase(machine.name, rule.client)
            for rule in self.world.rules
        )


def _runs(machine: "Machine") -> bool:
    return machine.alive and machine.process.state is State.RUNS
