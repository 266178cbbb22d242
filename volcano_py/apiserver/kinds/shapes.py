"""Shapes of the built-in kinds: the fields that the server itself, schedulers and kubelets read."""

from __future__ import annotations

from volcano_py.apiserver.kinds.conform import (
    ListOf,
    MapOf,
    Shape,
    Struct,
    a_quantity,
    an_object,
    anything,
    flag,
    number,
    text,
    whole,
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
_LIMITS = {"type": text} | dict.fromkeys(
    ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"), QUANTITIES
)
LIMIT_RANGE = Struct({"spec": Struct({"limits": ListOf(Struct(_LIMITS))})})
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
"""An OpenAPI schema inside a definition; the shape is recursive."""
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
