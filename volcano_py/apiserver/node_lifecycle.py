"""Node lifecycle: the not-ready, unreachable and unschedulable taints follow the node's state.

Heartbeats are not watched: a node is what its Ready condition says.
"""

from __future__ import annotations

from collections.abc import Hashable

from volcano_py.apiserver.kinds.nodes import NOT_READY_TAINT
from volcano_py.apiserver.objects import Obj, timestamp
from volcano_py.apiserver.reconciler import Reconciler
from volcano_py.apiserver.store import Collection, Event

_UNREACHABLE = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
_OWN = (NOT_READY_TAINT, _UNREACHABLE, _UNSCHEDULABLE)


def wanted_taints(node: Obj) -> list[Obj]:
    """The taints that a node's conditions and spec call for; all other taints are kept."""
    spec = node.get("spec") or {}
    taints = spec.get("taints") or []
    wanted = [taint for taint in taints if taint.get("key") not in _OWN]
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = next((item.get("status") for item in conditions if item.get("type") == "Ready"), None)
    pairs: list[tuple[str, str]] = []
    if ready is None:
        pairs.append((NOT_READY_TAINT, "NoSchedule"))
    elif ready != "True":
        key = _UNREACHABLE if ready == "Unknown" else NOT_READY_TAINT
        pairs.extend(((key, "NoSchedule"), (key, "NoExecute")))
    if spec.get("unschedulable"):
        pairs.append((_UNSCHEDULABLE, "NoSchedule"))
    for key, effect in pairs:
        present = next((old for old in taints if old.get("key") == key and old.get("effect") == effect), None)
        wanted.append(present or {"key": key, "effect": effect, "timeAdded": timestamp()})
    return wanted


class NodeLifecycle(Reconciler):
    """Keeps the taints of every node as `wanted_taints` says."""

    name = "node-lifecycle"

    def observe(self, collection: Collection, event: Event) -> None:
        """Note every node that is new or changed."""
        if collection.name == "nodes" and event.type != "DELETED":
            self.enqueue(event.stored.key)

    def reconcile(self, item: Hashable) -> None:
        """Write the taints if they differ."""
        nodes = self.registry.resources.named("nodes")
        stored = self.registry.collection(nodes).get(str(item))
        if stored is None:
            return
        spec = stored.obj.get("spec") or {}
        wanted = wanted_taints(stored.obj)
        if wanted == (spec.get("taints") or []):
            return
        spec = {**spec, "taints": wanted}
        if not wanted:
            del spec["taints"]
        self.registry.replace(nodes, stored, {**stored.obj, "metadata": dict(stored.obj["metadata"]), "spec": spec})
