"""What others do to the cluster: nodes, pods and groups vanish, come back and change; somebody else binds.

| fault | what it does | targets |
|---|---|---|
| node vanishes | deletes a node, later its pods; puts it back, sometimes at once, sometimes with less room | |
| node cordoned, node shrinks, node tainted, node relabelled | changes a node, and changes it back later | |
| pod vanishes | deletes a pod at once, or all pods that have succeeded | |
| pod replaced under its name | deletes a pod that nobody controls, and creates one with its name and another uid | |
| pod leaves its group | changes the annotation that names the PodGroup of a pod, and changes it back later | |
| minimum changes | changes the minMember of a PodGroup | |
| group vanishes | deletes a PodGroup; its owner applies it again | |
| group edited at a bind | changes minMember or queue of a PodGroup, right before a Binding takes effect | |
| foreign pod | puts a pod of another scheduler on a node | |
| foreign binder | puts such a pod on the node that our cycle has chosen, right before our Binding or right after it | |
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tests.simulation import objects
from tests.simulation.draws import Draws
from tests.simulation.faults.kinds import Begin, Kind
from tests.simulation.objects import Obj
from tests.simulation.plan import Strike
from tests.simulation.servers import ASKED
from volcano_py.apiserver.deletion import DeleteOptions
from volcano_py.apiserver.kinds.generic import WriteContext
from volcano_py.apiserver.status import StatusError

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

_FOREIGN: Final = 3
"""The most pods that one foreign binder places."""
_LEAST_CPUS: Final = 2


def _delete(world: "World", resource: str, obj: Obj) -> None:
    meta = obj["metadata"]
    kind = world.servers.registry.resources.named(resource)
    world.servers.registry.delete(kind, meta.get("namespace"), meta["name"], DeleteOptions(grace_seconds=0))


def _patch(world: "World", resource: str, obj: Obj, change: Callable[[Obj], Obj], subresource: str = "") -> None:
    kind = world.servers.registry.resources.named(resource)
    meta = obj["metadata"]
    context = WriteContext(world.servers.registry, version=kind.storage.name, subresource=subresource)
    try:
        world.servers.registry.patch(kind, meta.get("namespace"), meta["name"], change, context)
    except StatusError as error:
        if error.code not in (400, 404, 409):  # 400: another fault has made the object unreadable
            raise


def _some(world: "World", strike: Strike, found: list[Obj]) -> Obj | None:
    if not found:
        return None
    world.strike(strike.kind)
    return Draws(world.seed, f"{strike.kind} {strike.number}").one_of(found)


# Nodes


def _node_vanishes(world: "World", strike: Strike) -> Callable[[], None] | None:
    """Delete a node and, after a while, its pods, as the pod garbage collector does; put it back later."""
    node = _some(world, strike, world.servers.objects(objects.NODES))
    if node is None:
        return None
    _delete(world, objects.NODES, node)
    name, cpus = node["metadata"]["name"], int(node["status"]["allocatable"]["cpu"])
    if Draws(world.seed, f"node {strike.number}").happens(0.3):
        cpus = max(cpus - 2, _LEAST_CPUS)

    def collect() -> None:
        if world.servers.get(objects.NODES, name) is None:
            for pod in world.servers.objects(objects.PODS):
                if pod["spec"].get("nodeName") == name:
                    _delete(world, objects.PODS, pod)

    def end() -> None:
        collect()
        if world.servers.get(objects.NODES, name) is None:
            world.servers.create(objects.node(name, cpus))

    world.later(strike.lasts_s * 0.5, collect)
    return end


def _edited(part: str, value: Callable[[Obj, Draws], Any]) -> Begin:
    """Return a fault that changes a part of a node, and sets it back later."""
    section, _, name = part.partition(".")

    def begin(world: "World", strike: Strike) -> Callable[[], None] | None:
        node = _some(world, strike, world.servers.objects(objects.NODES))
        if node is None:
            return None
        before = node.get(section, {}).get(name)

        def set_to(wanted: Any) -> None:
            def change(current: Obj) -> Obj:
                return {**current, section: {**current.get(section, {}), name: wanted}}

            _patch(world, objects.NODES, node, change, "status" if section == "status" else "")

        set_to(value(node, Draws(world.seed, f"edit {strike.number}")))
        return lambda: set_to(before)

    return begin


def _less(node: Obj, draws: Draws) -> Obj:
    room: Obj = node["status"]["allocatable"]
    return {**room, "cpu": str(draws.whole(1, int(room["cpu"])))}


def _taint(_: Obj, draws: Draws) -> list[Obj]:
    return [{"key": "maintenance", "value": "soon", "effect": draws.one_of(("NoSchedule", "PreferNoSchedule"))}]


def _label(node: Obj, _: Draws) -> Obj:
    return {**node["metadata"]["labels"], "zone": "other"}


# Pods and groups


def _pod_vanishes(world: "World", strike: Strike) -> None:
    """Delete a pod at once, as `kubectl delete --force` does; or all that have succeeded, as Kubernetes cleans up."""
    pods = world.servers.objects(objects.PODS)
    done = [pod for pod in pods if pod["status"].get("phase") == "Succeeded"] if strike.number % 2 else []
    one = _some(world, strike, pods)
    for pod in done or ([] if one is None else [one]):
        _delete(world, objects.PODS, pod)


def _pod_is_replaced(world: "World", strike: Strike) -> None:
    """Delete a pod that nobody controls and create another one with its name."""
    free = [pod for pod in world.servers.objects(objects.PODS) if not pod["metadata"].get("ownerReferences")]
    pod = _some(world, strike, free)
    if pod is not None:
        _delete(world, objects.PODS, pod)
        kept = ("name", "namespace", "annotations", "labels")
        meta = {key: pod["metadata"][key] for key in kept if key in pod["metadata"]}
        spec = {key: value for key, value in pod["spec"].items() if key not in ("nodeName", "priority", "tolerations")}
        world.servers.create(objects.pod_of(meta, spec))


def _leaves(world: "World", strike: Strike) -> Callable[[], None] | None:
    """Let a pod that waits or runs belong to another group, which may not exist."""
    pods = world.servers.objects(objects.PODS)
    pod = _some(world, strike, [pod for pod in pods if objects.GROUP_NAME in pod["metadata"].get("annotations", {})])
    if pod is None:
        return None
    before = pod["metadata"]["annotations"][objects.GROUP_NAME]
    groups = [group["metadata"]["name"] for group in world.servers.objects(objects.GROUPS)]
    other = Draws(world.seed, f"group {strike.number}").one_of([*groups, "no-such-group"])

    def set_to(name: str) -> None:
        def change(current: Obj) -> Obj:
            meta = current["metadata"]
            return {**current, "metadata": {**meta, "annotations": {**meta["annotations"], objects.GROUP_NAME: name}}}

        _patch(world, objects.PODS, pod, change)

    set_to(other)
    return lambda: set_to(before)


def _minimum(world: "World", strike: Strike) -> None:
    group = _some(world, strike, world.servers.objects(objects.GROUPS))
    if group is not None and (before := objects.minimum(group)) is not None:
        wanted = {**group["spec"], "minMember": Draws(world.seed, f"minimum {strike.number}").whole(1, before + 1)}
        _patch(world, objects.GROUPS, group, lambda current: {**current, "spec": wanted})


def _group_vanishes(world: "World", strike: Strike) -> None:
    group = _some(world, strike, world.servers.objects(objects.GROUPS))
    if group is not None:
        _delete(world, objects.GROUPS, group)


def _edited_at_a_bind(world: "World", strike: Strike) -> Callable[[], None]:
    """Change a group whose pod is just being bound, a few times."""
    draws = Draws(world.seed, f"at a bind {strike.number}")
    left = draws.whole(1, 3)

    def told(_: "Asked", key: str, __: str) -> None:
        nonlocal left
        pod = world.servers.get(objects.PODS, key)
        name = "" if pod is None else pod["metadata"].get("annotations", {}).get(objects.GROUP_NAME, "")
        group = world.servers.get(objects.GROUPS, name, key.partition("/")[0])
        if group is None or left == 0 or not draws.happens(strike.amount):
            return
        minimum = objects.minimum(group)
        if minimum is None:
            return
        left -= 1
        world.strike(strike.kind)
        changes: Obj = {"minMember": minimum + 1}
        if draws.happens(0.4):
            changes = {"queue": draws.one_of(("default", "research"))}
        token = ASKED.set(None)
        _patch(world, objects.GROUPS, group, lambda current: {**current, "spec": {**current["spec"], **changes}})
        ASKED.reset(token)

    world.servers.binding.append(told)
    return lambda: world.servers.binding.remove(told)


# Others who bind


def _place_foreign(world: "World", name: str, node: str, cpu: str) -> Callable[[], None]:
    """Create a pod of another scheduler that is bound already; return what deletes it."""
    made = world.servers.create(objects.pod(name, cpu, schedulerName="default-scheduler", nodeName=node))

    def end() -> None:
        if world.servers.get(objects.PODS, name, objects.NAMESPACE) is not None:
            _delete(world, objects.PODS, made)

    return end


def _foreign_pod(world: "World", strike: Strike) -> Callable[[], None] | None:
    """Put a pod of another scheduler on a node, where ours may be about to put some."""
    node = _some(world, strike, world.servers.objects(objects.NODES))
    return None if node is None else _place_foreign(world, f"foreign-{strike.number}", node["metadata"]["name"], "1")


def _foreign_binder(world: "World", strike: Strike) -> Callable[[], None]:
    """Take the room that our cycle has just chosen, a few times."""
    draws = Draws(world.seed, f"binder {strike.number}")
    ends: list[Callable[[], None]] = []

    def place(node: str) -> None:
        if len(ends) < _FOREIGN and world.servers.get(objects.NODES, node) is not None:
            world.strike(strike.kind)
            token = ASKED.set(None)  # the pod comes from the other scheduler, not from our request
            ends.append(_place_foreign(world, f"foreign-{strike.number}-{len(ends)}", node, str(draws.whole(1, 3))))
            ASKED.reset(token)

    def told(_: "Asked", __: str, node: str) -> None:
        if not draws.happens(strike.amount):
            return
        if draws.happens(0.5):
            place(node)
        else:
            world.later(draws.between(0.0, 0.02), place, node)

    world.servers.binding.append(told)

    def end() -> None:
        world.servers.binding.remove(told)
        for over in ends:
            over()

    return end


KINDS: Final = (
    Kind("node vanishes", _node_vanishes, lasts_s=(0.0, 15.0), weight=4),
    Kind("node cordoned", _edited("spec.unschedulable", lambda *_: True), lasts_s=(1.0, 15.0)),
    Kind("node shrinks", _edited("status.allocatable", _less), lasts_s=(2.0, 30.0), weight=3),
    Kind("node tainted", _edited("spec.taints", _taint), lasts_s=(2.0, 30.0)),
    Kind("node relabelled", _edited("metadata.labels", _label), lasts_s=(2.0, 30.0), weight=1),
    Kind("pod vanishes", _pod_vanishes, weight=4),
    Kind("pod replaced under its name", _pod_is_replaced, weight=4),
    Kind("pod leaves its group", _leaves, lasts_s=(2.0, 20.0)),
    Kind("minimum changes", _minimum),
    Kind("group vanishes", _group_vanishes),
    Kind("group edited at a bind", _edited_at_a_bind, lasts_s=(5.0, 25.0), amount=(0.3, 1.0), weight=3),
    Kind("foreign pod", _foreign_pod, lasts_s=(2.0, 20.0), weight=2),
    Kind("foreign binder", _foreign_binder, lasts_s=(5.0, 25.0), amount=(0.2, 1.0), weight=5),
)
