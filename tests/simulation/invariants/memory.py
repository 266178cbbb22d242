"""No program forgets what it was shown and what is still there."""

from typing import TYPE_CHECKING, Any, Final

from tests.simulation import objects
from tests.simulation.invariants.invariant import Invariant
from tests.simulation.loop import State

if TYPE_CHECKING:
    from tests.simulation.machines import Machine
    from tests.simulation.world import World

_RESOURCES: Final = (objects.PODS, objects.NODES, objects.GROUPS, objects.QUEUES, objects.JOBS)


class NothingIsForgotten(Invariant):
    """An object that a watch has shown stays known as long as it exists.

    An answer that says otherwise by mistake (one 404 of a proxy) must not empty a cache: gangs would lose their
    minimum. Only a list of an older state may leave an object out. Rests on what reflectors have delivered.
    """

    name = "nothing is forgotten"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._known: dict[tuple[object, str], dict[str, str]] = {}
        self._events: dict[tuple[object, str], int] = {}

    def now(self) -> None:
        """Compare what each program knows with what it knew a second ago and what exists."""
        for machine in self.world.machines.values():
            if machine.alive and machine.process.state is State.RUNS:
                self._look(machine)

    def _look(self, machine: "Machine") -> None:
        for name, reflector in _reflectors(machine.running):
            if self._events.get((reflector, name)) == reflector.delivery.events:
                continue
            self._events[reflector, name] = reflector.delivery.events
            resource = reflector._resource.label
            if resource not in _RESOURCES:
                continue
            known = {key: uid for key, (uid, _) in reflector.delivery.known.items()}
            before = self._known.get((reflector, name), {})
            self._known[reflector, name] = known
            if self.world.servers.stale_lists_in_force() or reflector._selectors:
                continue
            for key, uid in before.items():
                left_out = key in reflector.delivery.quarantined
                if key not in known and self._exists(resource, key, uid) and not left_out:
                    self.violated(f"{machine.name} has forgotten {resource} {key}, which exists")

    def _exists(self, resource: str, key: str, uid: str) -> bool:
        namespace, _, name = key.rpartition("/")
        found = self.world.servers.get(resource, name, namespace or None)
        return found is not None and found["metadata"]["uid"] == uid


def _reflectors(program: Any) -> list[tuple[str, Any]]:
    """Return the reflectors of a scheduler or a controller manager, by name."""
    watches = getattr(program, "_watches", program)
    informers = getattr(watches, "informers", None) or getattr(watches, "_informers", None)
    return [] if informers is None else list(informers._reflectors.items())
