"""Nodes: defaults of their status, and the taint that admission puts on a new node."""

from __future__ import annotations

from dataclasses import dataclass

from volcano_py.apiserver.kinds.generic import Strategy, WriteContext
from volcano_py.apiserver.kinds.quantities import require_quantities
from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.status import bad_request

NOT_READY_TAINT = "node.kubernetes.io/not-ready"


@dataclass(frozen=True, slots=True)
class NodeStrategy(Strategy):
    """How nodes are written."""

    has_status: bool = True
    keeps_status_on_create: bool = True
    taint_new: bool = False
    """Admission TaintNodesByCondition: a new node is not ready until the node lifecycle says otherwise."""

    def default(self, obj: Obj, context: WriteContext) -> None:
        """Allocatable is the capacity unless it is given; quantities must be quantities."""
        for field in ("spec", "status"):
            if not isinstance(obj.setdefault(field, {}), dict):
                raise bad_request(f"json: cannot unmarshal Node.{field}: it must be an object")
        status = obj["status"]
        for field in ("capacity", "allocatable"):
            require_quantities(status.get(field), f"status.{field}")
        if status.get("capacity") and not status.get("allocatable"):
            obj["status"] = {**status, "allocatable": dict(status["capacity"])}

    def take_status(self, obj: Obj, old: Obj, context: WriteContext) -> Obj:
        """Status writes are checked like creations."""
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
