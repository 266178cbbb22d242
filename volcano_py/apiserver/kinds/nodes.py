"""Nodes: defaults of their status, and the taint that admission puts on a new node."""

from __future__ import annotations

from dataclasses import dataclass

from volcano_py.apiserver.kinds.conform import Shape
from volcano_py.apiserver.kinds.generic import Strategy, WriteContext
from volcano_py.apiserver.kinds.shapes import NODE
from volcano_py.apiserver.objects import Obj

NOT_READY_TAINT = "node.kubernetes.io/not-ready"


@dataclass(frozen=True, slots=True)
class NodeStrategy(Strategy):
    """How nodes are written."""

    shape: Shape | None = NODE
    has_status: bool = True
    keeps_status_on_create: bool = True
    taint_new: bool = False
    """Admission plugin TaintNodesByCondition: the node lifecycle lifts a new node's not-ready taint."""

    def default(self, obj: Obj, context: WriteContext) -> None:
        """Allocatable defaults to the capacity."""
        obj.setdefault("spec", {})
        status = obj.setdefault("status", {})
        if status.get("capacity") and not status.get("allocatable"):
            obj["status"] = {**status, "allocatable": dict(status["capacity"])}

    def take_status(self, obj: Obj, old: Obj, context: WriteContext) -> Obj:
        """Status writes get the same defaults as new nodes."""
        made = Strategy.take_status(self, obj, old, context)
        self.default(made, context)
        return made

    def admit(self, obj: Obj, context: WriteContext) -> None:
        """Taint a new node as not ready."""
        if not self.taint_new:
            return
        spec = obj["spec"]
        taints = spec.get("taints") or []
        if not any(taint.get("key") == NOT_READY_TAINT for taint in taints):
            spec["taints"] = [*taints, {"key": NOT_READY_TAINT, "effect": "NoSchedule"}]
