"""What users read on pods is true."""

from typing import TYPE_CHECKING

from tests.simulation import objects
from tests.simulation.invariants.invariant import Invariant
from volcano_py.apiserver.store import Event

if TYPE_CHECKING:
    from tests.simulation.servers import Asked


class BoundIsScheduled(Invariant):
    """Nobody writes on a pod that has a node that it has none."""

    name = "a bound pod is scheduled"

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Look at what a scheduler has written on a pod."""
        if resource != objects.PODS or asked is None or asked.resource != "pods/status":
            return
        pod = event.stored.obj
        for condition in pod["status"].get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition["status"] == "False" and pod["spec"].get("nodeName"):
                self.violated(
                    f"{asked.client.name} wrote on {event.stored.key}, which is bound: {condition['message']}"
                )


class WaitingPodsSayWhy(Invariant):
    """At rest, every pod of ours that waits says why: its condition PodScheduled is False and has a message.

    A pod whose PodGroup does not exist is not ours to explain.
    """

    name = "waiting pods say why"

    def at_rest(self) -> None:
        """Look at the conditions of pods without a node."""
        for pod in self.world.servers.objects(objects.PODS):
            meta, spec = pod["metadata"], pod["spec"]
            group = meta.get("annotations", {}).get(objects.GROUP_NAME, "")
            ours = spec.get("schedulerName") == "volcano" and not spec.get("nodeName")
            if not ours or "deletionTimestamp" in meta or pod["status"].get("phase") in ("Succeeded", "Failed"):
                continue
            if self.world.servers.get(objects.GROUPS, group, meta["namespace"]) is None:
                continue
            told = [each for each in pod["status"].get("conditions", ()) if each["type"] == "PodScheduled"]
            if not told or told[0]["status"] != "False" or not told[0].get("message"):
                self.violated(f"pod {meta['name']} waits and says {told}")
