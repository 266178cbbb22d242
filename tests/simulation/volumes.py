"""Makes the volume of each claim, as the provisioner of a cluster does."""

from typing import TYPE_CHECKING, Final

from tests.simulation import objects
from tests.simulation.draws import Draws
from tests.simulation.objects import Obj
from volcano_py.apiserver.deletion import DeleteOptions
from volcano_py.apiserver.kinds.generic import WriteContext
from volcano_py.apiserver.store import Collection, Event

if TYPE_CHECKING:
    from tests.simulation.world import World

_MADE_S: Final = (0.1, 4.0)


class Provisioner:
    """Binds every claim to a volume of its own after a while, and deletes the volume together with the claim."""

    def __init__(self, world: "World") -> None:
        self._world = world
        world.servers.store.listeners.append(self._changed)

    def _changed(self, collection: Collection, event: Event) -> None:
        if collection.name != objects.CLAIMS:
            return
        claim = event.stored.obj
        if event.type == "ADDED":
            draws = Draws(self._world.seed, f"volume of {event.stored.key}")
            self._world.later(draws.between(*_MADE_S), self._make, claim)
        elif event.type == "DELETED":
            self._world.later(0.0, self._remove, objects.volume_name(claim))

    def _make(self, claim: Obj) -> None:
        servers, meta = self._world.servers, claim["metadata"]
        now = servers.get(objects.CLAIMS, meta["name"], meta["namespace"])
        if now is None or now["metadata"]["uid"] != meta["uid"]:
            return
        servers.create(objects.volume(claim))
        kind = servers.registry.resources.named(objects.CLAIMS)
        for part, subresource in (("spec", ""), ("status", "status")):
            more: Obj = {"volumeName": objects.volume_name(claim)} if part == "spec" else {"phase": "Bound"}
            context = WriteContext(servers.registry, version=kind.storage.name, subresource=subresource)
            servers.registry.patch(
                kind,
                meta["namespace"],
                meta["name"],
                lambda obj, part=part, more=more: {**obj, part: {**obj.get(part, {}), **more}},  # type: ignore[misc]
                context,
            )
        self._world.last_fault_at = self._world.loop.time()  # its pods may be placed now

    def _remove(self, name: str) -> None:
        registry = self._world.servers.registry
        if self._world.servers.get(objects.VOLUMES, name) is not None:
            registry.delete(registry.resources.named(objects.VOLUMES), None, name, DeleteOptions())
