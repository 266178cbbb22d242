"""Pods: defaults, admission, validation, and what may still change once a pod exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from volcano_py.apiserver.kinds.conform import Shape
from volcano_py.apiserver.kinds.generic import Strategy, WriteContext
from volcano_py.apiserver.kinds.limits import admit_limits
from volcano_py.apiserver.kinds.quantities import negative_errors, quantity
from volcano_py.apiserver.kinds.shapes import POD
from volcano_py.apiserver.objects import Obj, dig
from volcano_py.apiserver.status import (
    FieldError,
    forbidden,
    forbidden_field,
    invalid_value,
    required,
    unsupported_value,
)

_SPEC_DEFAULTS: tuple[tuple[str, Any], ...] = (
    ("restartPolicy", "Always"),
    ("terminationGracePeriodSeconds", 30),
    ("dnsPolicy", "ClusterFirst"),
    ("serviceAccountName", "default"),
    ("schedulerName", "default-scheduler"),
    ("enableServiceLinks", True),
)
_CONTAINER_DEFAULTS: tuple[tuple[str, Any], ...] = (
    ("terminationMessagePath", "/dev/termination-log"),
    ("terminationMessagePolicy", "File"),
)
_NOT_READY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_COMPUTE = ("cpu", "memory")
_IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


@dataclass(frozen=True, slots=True)
class PodStrategy(Strategy):
    """How pods are written."""

    shape: Shape | None = POD
    has_generation: bool = True
    has_status: bool = True
    returns_deleted: bool = True

    def prepare_create(self, obj: Obj, context: WriteContext) -> None:
        """Default the pod, run admission and start its status."""
        self.default(obj, context)
        self.admit(obj, context)
        obj["status"] = {"phase": "Pending", "qosClass": qos_class(obj["spec"])}
        if obj["spec"].get("schedulingGates"):
            obj["status"]["conditions"] = [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                    "lastProbeTime": None,
                    "lastTransitionTime": None,
                }
            ]

    def default(self, obj: Obj, context: WriteContext) -> None:
        """Fill in the defaults that a scheduler sees on a real server."""
        spec = obj.setdefault("spec", {})
        for name, value in _SPEC_DEFAULTS:
            if spec.get(name, "") == "":
                spec[name] = value
        spec.setdefault("securityContext", {})
        for container, _ in containers_of(spec):
            _default_container(container)
        if spec.get("resources"):
            _default_requests(spec["resources"])

    def admit(self, obj: Obj, context: WriteContext) -> None:
        """LimitRanger, Priority and DefaultTolerationSeconds admission."""
        if not context.subresource:
            admit_limits(obj, context)
        _admit_priority(obj, context)
        _admit_tolerations(obj["spec"])

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """Check what schedulers and kubelets rely on."""
        if context.subresource:
            return []
        return validate_spec(obj["spec"], "spec")

    def validate_update(self, obj: Obj, old: Obj, context: WriteContext) -> list[FieldError]:
        """A pod's spec is immutable except for a few fields."""
        if context.subresource or _frozen(obj["spec"], old["spec"]) == _frozen(old["spec"], old["spec"]):
            return _toleration_errors(obj["spec"], old["spec"])
        return [forbidden_field("spec", _IMMUTABLE)]

    def grace_seconds(self, obj: Obj, asked: int | None) -> int | None:
        """A bound pod gets its grace period; a pod without a node, or one that has ended, is removed at once."""
        spec = obj["spec"]
        if not spec.get("nodeName") or dig(obj, "status", "phase") in ("Succeeded", "Failed"):
            return 0
        grace = asked
        if grace is None:
            grace = spec.get("terminationGracePeriodSeconds", 30)
        return 1 if grace < 0 else grace


def containers_of(spec: Obj) -> list[tuple[Obj, str]]:
    """Containers and init containers with their paths."""
    return [
        (item, f"spec.{field}[{index}]")
        for field in ("containers", "initContainers")
        for index, item in enumerate(spec.get(field) or ())
    ]


def _default_container(container: Obj) -> None:
    for name, value in _CONTAINER_DEFAULTS:
        container.setdefault(name, value)
    image = container.get("image") or ""
    latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    resources = container.setdefault("resources", {})
    if resources:
        _default_requests(resources)


def _default_requests(resources: Obj) -> None:
    limits = resources.get("limits")
    if limits:
        resources["requests"] = {**limits, **(resources.get("requests") or {})}


def _admit_priority(obj: Obj, context: WriteContext) -> None:
    spec, name = obj["spec"], obj["metadata"].get("name", "")
    class_name = spec.get("priorityClassName") or ""
    policy = "PreemptLowerPriority"
    if class_name:
        priority_class = context.reader.peek("priorityclasses.scheduling.k8s.io", class_name)
        if priority_class is None:
            raise forbidden("", "pods", name, f"no PriorityClass with name {class_name} was found")
        value = priority_class.get("value", 0)
        policy = priority_class.get("preemptionPolicy") or policy
    else:
        value, class_name, policy = _global_default(context)
        if class_name:
            spec["priorityClassName"] = class_name
    asked = spec.get("priority")
    if asked is not None and asked != value:
        why = (
            f"the integer value of priority ({asked}) must not be provided in pod spec; "
            f"priority admission controller computed {value} from the given PriorityClass name"
        )
        raise forbidden("", "pods", name, why)
    spec["priority"] = value
    spec.setdefault("preemptionPolicy", policy)


def _global_default(context: WriteContext) -> tuple[int, str, str]:
    best: tuple[int, str, str] | None = None
    for item in context.reader.objects("priorityclasses.scheduling.k8s.io"):
        if item.get("globalDefault"):
            found = (item.get("value", 0), item["metadata"]["name"], item.get("preemptionPolicy") or "")
            if best is None or found[0] < best[0]:
                best = found
    if best is None:
        return 0, "", "PreemptLowerPriority"
    return best[0], best[1], best[2] or "PreemptLowerPriority"


def _admit_tolerations(spec: Obj) -> None:
    tolerations = list(spec.get("tolerations") or [])
    for key in _NOT_READY:
        tolerated = any(
            item.get("key") in (key, None, "") and item.get("effect") in ("NoExecute", None, "") for item in tolerations
        )
        if not tolerated:
            tolerations.append({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    if tolerations:
        spec["tolerations"] = tolerations


def qos_class(spec: Obj) -> str:
    """Quality of service, from requests and limits of all containers."""
    requests: dict[str, Any] = {}
    guaranteed, any_set = True, False
    for container, _ in containers_of(spec):
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        for name in _COMPUTE:
            limit, request = quantity(str(limits.get(name, "0"))), quantity(str(requests.get(name, "0")))
            any_set = any_set or bool(limit) or bool(request)
            guaranteed = guaranteed and bool(limit) and limit == request
    if not any_set:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def validate_spec(spec: Obj, path: str) -> list[FieldError]:
    """Return what is wrong with a pod spec."""
    errors: list[FieldError] = []
    if not spec.get("containers"):
        errors.append(required(f"{path}.containers"))
    names: set[str] = set()
    for container, where in containers_of(spec):
        name = container.get("name")
        if not name:
            errors.append(required(f"{where}.name"))
        elif name in names:
            errors.append(FieldError(f"{where}.name", "FieldValueDuplicate", f'Duplicate value: "{name}"'))
        names.add(str(name))
        if not container.get("image"):
            errors.append(required(f"{where}.image"))
        errors.extend(_resource_errors(container["resources"], f"{where}.resources"))
    policies = ("Always", "OnFailure", "Never")
    if spec["restartPolicy"] not in policies:
        errors.append(unsupported_value(f"{path}.restartPolicy", spec["restartPolicy"], sorted(policies)))
    return errors


def _resource_errors(resources: Obj, path: str) -> list[FieldError]:
    if not resources:
        return []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    errors = negative_errors(limits, f"{path}.limits") + negative_errors(requests, f"{path}.requests")
    for name, request in requests.items():
        limit = limits.get(name)
        if limit is not None and (quantity(request) or 0) > (quantity(limit) or 0):
            detail = f"must be less than or equal to {name} limit of {limit}"
            errors.append(invalid_value(f"{path}.requests", request, detail))
    return errors


def _frozen(spec: Obj, old: Obj) -> Obj:
    """The part of a spec that may not change, in a comparable form."""
    fixed = {
        key: value
        for key, value in spec.items()
        if key not in ("containers", "initContainers", "activeDeadlineSeconds", "tolerations", "schedulingGates")
        and value not in (None, [], {})
    }
    if old.get("schedulingGates"):
        fixed.pop("nodeSelector", None)  # may be narrowed while the pod has scheduling gates
        fixed.pop("affinity", None)
    gates = [gate.get("name") for gate in spec.get("schedulingGates") or []]
    had = [gate.get("name") for gate in old.get("schedulingGates") or []]
    fixed["schedulingGates"] = [gate for gate in gates if gate not in had]
    for field in ("containers", "initContainers"):
        fixed[field] = [
            {key: value for key, value in item.items() if key not in ("image", "imagePullPolicy")}
            for item in spec.get(field) or []
        ]
    return fixed


def _toleration_errors(spec: Obj, old: Obj) -> list[FieldError]:
    now = spec.get("tolerations") or []
    if all(item in now for item in old.get("tolerations") or []):
        return []
    return [forbidden_field("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]
