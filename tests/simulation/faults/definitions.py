"""Definitions that are removed, and objects that cannot be read.

| fault | what it does | targets |
|---|---|---|
| definition removed | deletes a definition and with it all its objects; later it is put back | definitions |
| unreadable object | stores an object with a field of a wrong type, past validation, for a while | kinds |
"""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.simulation import objects, programs
from tests.simulation.draws import Draws
from tests.simulation.faults.kinds import Kind
from tests.simulation.objects import Obj
from tests.simulation.plan import Strike
from tests.simulation.servers import DEFINITIONS
from volcano_py.apiserver.deletion import DeleteOptions

if TYPE_CHECKING:
    from tests.simulation.world import World

_GONE_S: Final = 0.5
"""Between two looks whether a deleted definition is gone."""


def _removed(world: "World", strike: Strike) -> Callable[[], None]:
    registry = world.servers.registry
    if world.servers.get(DEFINITIONS, strike.target) is not None:
        world.strike(strike.kind)
        registry.delete(registry.resources.named(DEFINITIONS), None, strike.target, DeleteOptions())

    def end() -> None:
        found = world.servers.get(DEFINITIONS, strike.target)
        if found is not None and "deletionTimestamp" in found["metadata"]:
            world.later(_GONE_S, end)
            return
        programs.serve_definitions(world.servers)
        if strike.target == objects.QUEUES:
            world.worker.put_queues()

    return end


def _unreadable(world: "World", strike: Strike) -> Callable[[], None]:
    """Store a new object, or spoil one that exists."""
    draws = Draws(world.seed, f"unreadable {strike.number}")
    resource = objects.PODS if strike.target == "pod" else objects.GROUPS
    registry = world.servers.registry
    kind = registry.resources.find(
        "" if strike.target == "pod" else "scheduling.volcano.sh", resource.partition(".")[0]
    )
    if kind is None:  # its definition is removed now
        return lambda: None
    found = [one for one in world.servers.objects(resource) if not _is_spoilt(one)]  # by a strike that lasts still
    existing = draws.one_of(found) if found and draws.happens(0.6) else None
    name = f"unreadable-{strike.number}" if existing is None else existing["metadata"]["name"]
    space = objects.NAMESPACE if existing is None else existing["metadata"]["namespace"]
    made = registry.inject(_spoilt(_fresh(strike.target, name) if existing is None else existing))
    uid = made.obj["metadata"]["uid"]
    world.strike(strike.kind)

    def end() -> None:
        now = world.servers.get(resource, name, space)
        if now is None or now["metadata"]["uid"] != uid:
            return
        if existing is None:
            registry.delete(kind, space, name, DeleteOptions(grace_seconds=0))
        else:
            field = "tolerations" if strike.target == "pod" else "minMember"
            spec = {**now["spec"], field: existing["spec"].get(field)}
            registry.inject(
                {**copy.deepcopy(now), "spec": {key: part for key, part in spec.items() if part is not None}}
            )

    return end


def _fresh(kind: str, name: str) -> Obj:
    if kind == "pod":
        return {**objects.pod(name, "1"), "status": {"phase": "Pending"}}
    return objects.group(name, 1, "default", "1")


def _wrong(obj: Obj) -> Obj:
    return {"tolerations": "all"} if obj["kind"] == "Pod" else {"minMember": "many"}


def _spoilt(obj: Obj) -> Obj:
    return {**obj, "spec": {**obj["spec"], **_wrong(obj)}}


def _is_spoilt(obj: Obj) -> bool:
    return _wrong(obj).items() <= obj["spec"].items()


KINDS: Final = (
    Kind("definition removed", _removed, (objects.GROUPS, objects.QUEUES, objects.JOBS), (1.0, 10.0)),
    Kind("unreadable object", _unreadable, ("pod", "pod", "group"), lasts_s=(2.0, 20.0), weight=3),
)
