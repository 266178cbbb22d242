"""Types of the fields that the server, schedulers and kubelets read in built-in kinds.

A real API server decodes every field into a typed struct and answers 400 when that fails. This is the same for the
fields named here; what is not named is kept as it comes. As in a real server, null is the same as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from volcano_py.apiserver.kinds.quantities import quantity
from volcano_py.apiserver.status import bad_request


class Shape(Protocol):
    """The type of a value. Asking is cheap; only a refusal works out where the fault lies."""

    def accepts(self, value: Any) -> bool:
        """Whether a value (which is not null) has this shape; tidies it up in place."""

    def explain(self, value: Any, path: str) -> None:
        """Raise 400 for the first part of a value that does not have its shape."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A plain value."""

    wanted: str
    accepts: Callable[[Any], bool]

    def explain(self, value: Any, path: str) -> None:
        """Raise 400 if the value is not what is wanted."""
        if not self.accepts(value):
            _refuse(value, path, self.wanted)


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of equal shapes."""

    item: Shape

    def accepts(self, value: Any) -> bool:
        """Every item has the shape."""
        return type(value) is list and all(map(self.item.accepts, value))

    def explain(self, value: Any, path: str) -> None:
        """Raise 400 for the first item that has not."""
        if not isinstance(value, list):
            _refuse(value, path, "a list")
        for index, item in enumerate(value):
            self.item.explain(item, f"{path}[{index}]")


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with any keys, its values of one shape."""

    value: Shape

    def accepts(self, value: Any) -> bool:
        """Every value has the shape. Empty texts stand for null, and quantities become text."""
        if type(value) is not dict:
            return False
        for name, item in value.items():
            if item is None and self.value is text:
                value[name] = ""
            elif not self.value.accepts(item):
                return False
            elif self.value is a_quantity and type(item) is not str:
                value[name] = str(item)
        return True

    def explain(self, value: Any, path: str) -> None:
        """Raise 400 for the first value that has not."""
        if not isinstance(value, dict):
            _refuse(value, path, "an object")
        for name, item in value.items():
            self.value.explain(item, f"{path}[{name}]")


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with known fields; others are left alone."""

    fields: Mapping[str, Shape]

    def accepts(self, value: Any) -> bool:
        """Every known field has its shape; known fields that are null are removed."""
        if type(value) is not dict:
            return False
        nulls: list[str] = []
        for name, item in value.items():
            shape = self.fields.get(name)
            if shape is None:
                continue
            if item is None:
                nulls.append(name)
            elif not shape.accepts(item):
                return False
        for name in nulls:
            del value[name]
        return True

    def explain(self, value: Any, path: str) -> None:
        """Raise 400 for the first field that has not."""
        if not isinstance(value, dict):
            _refuse(value, path, "an object")
        for name, item in value.items():
            shape = self.fields.get(name)
            if shape is not None and item is not None:
                shape.explain(item, f"{path}.{name}" if path else name)


def conform(value: Any, shape: Shape, path: str = "") -> None:
    """Check a value against its shape; 400 names the field. Nulls of known fields are removed in place."""
    if not shape.accepts(value):
        shape.explain(value, path)


def _refuse(value: Any, path: str, wanted: str) -> NoReturn:
    raise bad_request(f"json: cannot unmarshal {path or 'the object'}: {value!r:.80} is not {wanted}")


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _is_quantity(value: Any) -> bool:
    return (type(value) is str or _is_number(value)) and quantity(str(value)) is not None


text = Leaf("a string", lambda value: type(value) is str)
whole = Leaf("a whole number", lambda value: type(value) is int and -(2**63) <= value < 2**63)
number = Leaf("a number", _is_number)
flag = Leaf("true or false", lambda value: type(value) is bool)
anything = Leaf("anything", lambda value: True)
an_object = Leaf("an object", lambda value: type(value) is dict)
a_quantity = Leaf(
    "a quantity such as 500m, 2 or 1Gi: quantities must match the regular expression "
    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    _is_quantity,
)

QUANTITIES = MapOf(a_quantity)
_TEXTS, _TEXT_MAP = ListOf(text), MapOf(text)
_OWNER = {"apiVersion": text, "kind": text, "name": text, "uid": text, "controller": flag, "blockOwnerDeletion": flag}
METADATA = Struct(
    {
        **dict.fromkeys(("name", "generateName", "namespace", "uid", "resourceVersion"), text),
        "labels": _TEXT_MAP,
        "annotations": _TEXT_MAP,
        "finalizers": _TEXTS,
        "ownerReferences": ListOf(Struct(_OWNER)),
    }
)
DELETE_OPTIONS = Struct(
    {
        "gracePeriodSeconds": whole,
        "propagationPolicy": text,
        "orphanDependents": flag,
        "preconditions": Struct({"uid": text, "resourceVersion": text}),
        "dryRun": _TEXTS,
    }
)
_RESOURCES = Struct({"limits": QUANTITIES, "requests": QUANTITIES, "claims": ListOf(Struct({"name": text}))})
_EXPRESSIONS = ListOf(Struct({"key": text, "operator": text, "values": _TEXTS}))
LABEL_SELECTOR = Struct({"matchLabels": _TEXT_MAP, "matchExpressions": _EXPRESSIONS})
_NODE_TERM = Struct({"matchExpressions": _EXPRESSIONS, "matchFields": _EXPRESSIONS})
_POD_TERM = Struct(
    {
        "labelSelector": LABEL_SELECTOR,
        "namespaceSelector": LABEL_SELECTOR,
        "namespaces": _TEXTS,
        "topologyKey": text,
    }
)
_POD_AFFINITY = Struct(
    {
        "requiredDuringSchedulingIgnoredDuringExecution": ListOf(_POD_TERM),
        "preferredDuringSchedulingIgnoredDuringExecution": ListOf(
            Struct({"weight": whole, "podAffinityTerm": _POD_TERM})
        ),
    }
)
_AFFINITY = Struct(
    {
        "nodeAffinity": Struct(
            {
                "requiredDuringSchedulingIgnoredDuringExecution": Struct({"nodeSelectorTerms": ListOf(_NODE_TERM)}),
                "preferredDuringSchedulingIgnoredDuringExecution": ListOf(
                    Struct({"weight": whole, "preference": _NODE_TERM})
                ),
            }
        ),
        "podAffinity": _POD_AFFINITY,
        "podAntiAffinity": _POD_AFFINITY,
    }
)
_CONTAINER = Struct(
    {
        "name": text,
        "image": text,
        "imagePullPolicy": text,
        "command": _TEXTS,
        "args": _TEXTS,
        "env": ListOf(Struct({"name": text, "value": text, "valueFrom": an_object})),
        "ports": ListOf(Struct({"containerPort": whole, "hostPort": whole, "hostIP": text, "protocol": text})),
        "resources": _RESOURCES,
        "restartPolicy": text,
        "volumeMounts": ListOf(Struct({"name": text, "mountPath": text})),
    }
)
_CONDITIONS = ListOf(Struct({"type": text, "status": text, "reason": text, "message": text}))
POD_SPEC = Struct(
    {
        "containers": ListOf(_CONTAINER),
        "initContainers": ListOf(_CONTAINER),
        "nodeName": text,
        "nodeSelector": _TEXT_MAP,
        "affinity": _AFFINITY,
        "tolerations": ListOf(
            Struct({"key": text, "operator": text, "value": text, "effect": text, "tolerationSeconds": whole})
        ),
        "topologySpreadConstraints": ListOf(
            Struct({"maxSkew": whole, "topologyKey": text, "whenUnsatisfiable": text, "labelSelector": LABEL_SELECTOR})
        ),
        "schedulerName": text,
        "priority": whole,
        "priorityClassName": text,
        "preemptionPolicy": text,
        "overhead": QUANTITIES,
        "resources": _RESOURCES,
        "schedulingGates": ListOf(Struct({"name": text})),
        "resourceClaims": ListOf(Struct({"name": text})),
        "volumes": ListOf(Struct({"name": text, "persistentVolumeClaim": an_object, "ephemeral": an_object})),
        "restartPolicy": text,
        "terminationGracePeriodSeconds": whole,
        "activeDeadlineSeconds": whole,
        "hostNetwork": flag,
        "serviceAccountName": text,
        "securityContext": an_object,
        "dnsPolicy": text,
        "enableServiceLinks": flag,
        "automountServiceAccountToken": flag,
    }
)
POD = Struct(
    {
        "spec": POD_SPEC,
        "status": Struct({"phase": text, "reason": text, "nominatedNodeName": text, "conditions": _CONDITIONS}),
    }
)
NODE = Struct(
    {
        "spec": Struct(
            {
                "unschedulable": flag,
                "taints": ListOf(Struct({"key": text, "value": text, "effect": text})),
                "providerID": text,
            }
        ),
        "status": Struct({"capacity": QUANTITIES, "allocatable": QUANTITIES, "conditions": _CONDITIONS}),
    }
)
NAMESPACE = Struct({"spec": Struct({"finalizers": _TEXTS}), "status": Struct({"phase": text})})
EVENT = Struct(
    {
        "involvedObject": Struct(dict.fromkeys(("kind", "namespace", "name", "uid", "apiVersion"), text)),
        "reason": text,
        "message": text,
        "type": text,
        "count": whole,
        "source": Struct({"component": text, "host": text}),
    }
)
PRIORITY_CLASS = Struct({"value": whole, "globalDefault": flag, "preemptionPolicy": text, "description": text})
QUOTA = Struct({"spec": Struct({"hard": QUANTITIES}), "status": Struct({"hard": QUANTITIES, "used": QUANTITIES})})
WORKLOAD = Struct(
    {
        "spec": Struct(
            {
                "replicas": whole,
                "parallelism": whole,
                "completions": whole,
                "selector": an_object,
                "template": Struct({"metadata": an_object, "spec": POD_SPEC}),
            }
        ),
        "status": an_object,
    }
)
LEASE = Struct(
    {
        "spec": Struct(
            {
                "holderIdentity": text,
                "leaseDurationSeconds": whole,
                "leaseTransitions": whole,
                "acquireTime": text,
                "renewTime": text,
            }
        )
    }
)
BUDGET = Struct({"spec": Struct({"selector": LABEL_SELECTOR}), "status": an_object})
PLAIN = Struct({"spec": an_object, "status": an_object})

_schema_fields: dict[str, Shape] = {}
SCHEMA = Struct(_schema_fields)
"""An OpenAPI schema inside a definition; it contains itself."""
_schema_fields.update(
    {
        **dict.fromkeys(("type", "format", "pattern"), text),
        "default": anything,
        "enum": ListOf(anything),
        "required": _TEXTS,
        "properties": MapOf(SCHEMA),
        "items": SCHEMA,
        **dict.fromkeys(("minimum", "maximum", "multipleOf"), number),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), whole),
        **dict.fromkeys(("nullable", "exclusiveMinimum", "exclusiveMaximum", "uniqueItems"), flag),
        **{name: ListOf(SCHEMA) for name in ("allOf", "anyOf", "oneOf")},
        "not": SCHEMA,
        "x-kubernetes-preserve-unknown-fields": flag,
        "x-kubernetes-int-or-string": flag,
        "x-kubernetes-embedded-resource": flag,
        "x-kubernetes-list-type": text,
        "x-kubernetes-list-map-keys": _TEXTS,
    }
)
DEFINITION = Struct(
    {
        "spec": Struct(
            {
                "group": text,
                "scope": text,
                "names": Struct(
                    {
                        **dict.fromkeys(("plural", "singular", "kind", "listKind"), text),
                        "shortNames": _TEXTS,
                        "categories": _TEXTS,
                    }
                ),
                "versions": ListOf(
                    Struct(
                        {
                            "name": text,
                            "served": flag,
                            "storage": flag,
                            "schema": Struct({"openAPIV3Schema": SCHEMA}),
                            "subresources": MapOf(an_object),
                            "additionalPrinterColumns": ListOf(an_object),
                            "selectableFields": ListOf(Struct({"jsonPath": text})),
                        }
                    )
                ),
                "conversion": Struct({"strategy": text}),
            }
        ),
        "status": an_object,
    }
)
