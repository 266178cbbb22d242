"""PodGroups: one per owner, in a phase that fits their pods."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.simulation import objects
from tests.simulation.invariants.invariant import Invariant
from volcano_py.apiserver.store import Event

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World


class OneGroupPerOwner(Invariant):
    """Nobody has two PodGroups at a time; at rest every pod of ours has one, and its annotation names it.

    The owner of a plain pod's group is its controller, else the pod itself. Who names a group when he creates a pod, as
    in a copy of another pod, has to care for it himself. A group that somebody deletes is not made again for a pod that
    names it already, as in Volcano.
    """

    name = "one group per owner"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._there: dict[str, str] = {}  # owner's uid -> key of the group
        self._named: set[str] = set()  # uids of pods whose creator has named a group
        self._deleted: set[str] = set()  # keys of groups that were deleted

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Look at groups that come and go."""
        if resource == objects.PODS and event.type == "ADDED":
            meta = event.stored.obj["metadata"]
            if objects.GROUP_NAME in meta.get("annotations", {}) and (asked is None or not owner_of(meta)):
                self._named.add(meta["uid"])
        if resource != objects.GROUPS or event.type == "MODIFIED":
            return
        owner, key = owner_of(event.stored.obj["metadata"]), event.stored.key
        if event.type == "DELETED":
            self._deleted.add(key)
        if not owner:
            return
        if event.type == "DELETED":
            if self._there.get(owner) == key:
                del self._there[owner]
        elif owner in self._there:
            self.violated(f"PodGroup {key} is the second one of its owner; the first is {self._there[owner]}")
        else:
            self._there[owner] = key

    def at_rest(self) -> None:
        """Look for the groups of pods."""
        for pod in self.world.truth.pods.values():
            if not pod.there or pod.scheduler != "volcano" or pod.ended or pod.uid in self._named:
                continue
            if not pod.job:
                self.violated(f"pod {pod.key} has no PodGroup")
            elif pod.group not in self._deleted and self.world.servers.get(objects.GROUPS, pod.group) is None:
                self.violated(f"PodGroup {pod.job} of pod {pod.key} does not exist")


class GroupPhases(Invariant):
    """At rest, the phase of a PodGroup fits its pods.

    A group without a pod on a node is not Running, and one whose minimum is on nodes is neither Pending nor Inqueue.
    """

    name = "phases of groups fit"

    def at_rest(self) -> None:
        """Compare groups with pods."""
        placed: Counter[str] = Counter(pod.group for pod in self.world.truth.pods.values() if pod.there and pod.node)
        for group in self.world.servers.objects(objects.GROUPS):
            name, phase = objects.short_key(group["metadata"]), (group.get("status") or {}).get("phase") or "Pending"
            on_nodes = placed[f"{group['metadata']['namespace']}/{group['metadata']['name']}"]
            if phase == "Running" and not on_nodes:
                self.violated(f"PodGroup {name} is Running and none of its pods is on a node")
            if phase in ("Pending", "Inqueue") and on_nodes >= max(1, group["spec"].get("minMember", 1)):
                self.violated(f"PodGroup {name} is {phase} and {on_nodes} of its pods are on nodes")


def owner_of(meta: Mapping[str, Any]) -> str:
    """Return the uid of the controller of an object, "" without one."""
    return next((str(owner["uid"]) for owner in meta.get("ownerReferences", ()) if owner.get("controller")), "")
