"""Kinds that need only a few rules: namespaces, events, LimitRanges, priority classes, workloads."""

from __future__ import annotations

from dataclasses import dataclass

from volcano_py.apiserver.kinds.conform import Shape
from volcano_py.apiserver.kinds.generic import Strategy, WriteContext
from volcano_py.apiserver.kinds.limits import complete
from volcano_py.apiserver.kinds.shapes import EVENT, LIMIT_RANGE, NAMESPACE, PRIORITY_CLASS, WORKLOAD
from volcano_py.apiserver.metadata import NameRule, label_rule
from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.status import FieldError, forbidden_field, invalid_value, required


@dataclass(frozen=True, slots=True)
class NamespaceStrategy(Strategy):
    """How namespaces are written: the `kubernetes` finalizer keeps a namespace until its content is gone."""

    shape: Shape | None = NAMESPACE
    name_rule: NameRule = label_rule
    has_status: bool = True
    returns_deleted: bool = True

    def prepare_create(self, obj: Obj, context: WriteContext) -> None:
        """Start in phase Active."""
        Strategy.prepare_create(self, obj, context)
        spec = obj.setdefault("spec", {})
        spec["finalizers"] = sorted({"kubernetes", *(spec.get("finalizers") or ())})
        obj["status"] = {"phase": "Active"}

    def prepare_update(self, obj: Obj, old: Obj, context: WriteContext) -> Obj:
        """Finalizers of the spec change only through the finalize subresource."""
        if context.subresource == "finalize":
            return {**old, "spec": obj.get("spec") or {}}
        made = Strategy.prepare_update(self, obj, old, context)
        made["spec"] = {**(made.get("spec") or {}), "finalizers": (old.get("spec") or {}).get("finalizers") or []}
        return made

    def default(self, obj: Obj, context: WriteContext) -> None:
        """Every namespace carries its own name as a label."""
        meta = obj["metadata"]
        if meta.get("name"):
            meta["labels"] = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta["name"]}


@dataclass(frozen=True, slots=True)
class EventStrategy(Strategy):
    """How events are written."""

    shape: Shape | None = EVENT
    create_on_update: bool = True

    def default(self, obj: Obj, context: WriteContext) -> None:
        """Fill in the fields that a real server always shows."""
        obj.setdefault("involvedObject", {})
        obj.setdefault("source", {})
        for name in ("firstTimestamp", "lastTimestamp", "eventTime"):
            obj.setdefault(name, None)
        for name in ("reportingComponent", "reportingInstance"):
            obj.setdefault(name, "")

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """An event lives in the namespace of the object it is about."""
        about = (obj.get("involvedObject") or {}).get("namespace") or ""
        namespace = obj["metadata"].get("namespace") or ""
        if about == namespace or (not about and namespace == "default"):
            return []
        return [invalid_value("involvedObject.namespace", about, "does not match event.namespace")]


@dataclass(frozen=True, slots=True)
class LimitRangeStrategy(Strategy):
    """How LimitRanges are written; new pods keep to them."""

    shape: Shape | None = LIMIT_RANGE

    def default(self, obj: Obj, context: WriteContext) -> None:
        """Bounds are defaults where none is given."""
        complete(obj)


@dataclass(frozen=True, slots=True)
class PriorityClassStrategy(Strategy):
    """How priority classes are written: the value is fixed."""

    shape: Shape | None = PRIORITY_CLASS
    has_generation: bool = True

    def default(self, obj: Obj, context: WriteContext) -> None:
        """The preemption policy defaults to PreemptLowerPriority."""
        obj.setdefault("value", 0)
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """Only the system may use very high values."""
        name, value = obj["metadata"].get("name", ""), obj["value"]
        if value > 1_000_000_000 and not name.startswith("system-"):
            detail = "maximum allowed value of a user defined priority is 1000000000"
            return [forbidden_field("value", detail)]
        return []

    def validate_update(self, obj: Obj, old: Obj, context: WriteContext) -> list[FieldError]:
        """Value and preemption policy never change."""
        fixed = (
            ("value", "may not be changed in an update."),
            ("preemptionPolicy", "may not be changed in an update."),
        )
        return [forbidden_field(name, text) for name, text in fixed if obj.get(name) != old.get(name)]


@dataclass(frozen=True, slots=True)
class WorkloadStrategy(Strategy):
    """How workloads with a pod template are written; only the garbage collector acts on them."""

    shape: Shape | None = WORKLOAD
    has_generation: bool = True
    has_status: bool = True
    needs_selector: bool = True

    def prepare_create(self, obj: Obj, context: WriteContext) -> None:
        """Start with an empty status."""
        Strategy.prepare_create(self, obj, context)
        obj["status"] = {}

    def default(self, obj: Obj, context: WriteContext) -> None:
        """One replica unless the spec says otherwise."""
        spec = obj.setdefault("spec", {})
        if self.needs_selector:
            spec.setdefault("replicas", 1)

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """Check the selector, if the kind requires one, and that the template has containers."""
        spec = obj["spec"]
        errors = [required("spec.selector")] if self.needs_selector and not spec.get("selector") else []
        template = spec.get("template") or {}
        if not (template.get("spec") or {}).get("containers"):
            errors.append(required("spec.template.spec.containers"))
        return errors
