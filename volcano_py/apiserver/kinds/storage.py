"""Kinds of storage: claims, volumes, storage classes, and what CSI drivers say.

A real API server also protects claims and volumes in use by finalizers, which its controllers remove. Here are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.apiserver.kinds.conform import ListOf, MapOf, Shape, Struct, a_quantity, an_object, flag, text, whole
from volcano_py.apiserver.kinds.generic import Strategy, WriteContext
from volcano_py.apiserver.kinds.quantities import quantity
from volcano_py.apiserver.kinds.shapes import LABEL_SELECTOR, QUANTITIES
from volcano_py.apiserver.metadata import subdomain_rule
from volcano_py.apiserver.objects import Obj, timestamp
from volcano_py.apiserver.status import FieldError, forbidden_field, invalid_value, required, unsupported_value

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_VOLUME_MODES: Final = ("Block", "Filesystem")
_TEXTS, _TEXT_MAP = ListOf(text), MapOf(text)
_IMMUTABLE: Final = "field is immutable"
_CLAIM_IMMUTABLE: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_EXPRESSIONS = ListOf(Struct({"key": text, "operator": text, "values": _TEXTS}))
_NODE_SELECTOR = Struct(
    {"nodeSelectorTerms": ListOf(Struct({"matchExpressions": _EXPRESSIONS, "matchFields": _EXPRESSIONS}))}
)
_REFERENCE = Struct(
    dict.fromkeys(("kind", "apiVersion", "namespace", "name", "uid", "resourceVersion", "fieldPath"), text)
)
_CLAIM = Struct(
    {
        "spec": Struct(
            {
                "accessModes": _TEXTS,
                "resources": Struct({"limits": QUANTITIES, "requests": QUANTITIES}),
                "selector": LABEL_SELECTOR,
                "volumeName": text,
                "storageClassName": text,
                "volumeMode": text,
                "volumeAttributesClassName": text,
                "dataSource": an_object,
                "dataSourceRef": an_object,
            }
        ),
        "status": Struct({"phase": text, "accessModes": _TEXTS, "capacity": QUANTITIES}),
    }
)
_SOURCES: Final = (
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "csi",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "glusterfs",
    "hostPath",
    "iscsi",
    "local",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
)
_VOLUME = Struct(
    {
        "spec": Struct(
            {
                "capacity": QUANTITIES,
                "accessModes": _TEXTS,
                "claimRef": _REFERENCE,
                "persistentVolumeReclaimPolicy": text,
                "storageClassName": text,
                "mountOptions": _TEXTS,
                "volumeMode": text,
                "nodeAffinity": Struct({"required": _NODE_SELECTOR}),
                "volumeAttributesClassName": text,
                **dict.fromkeys(_SOURCES, an_object),
            }
        ),
        "status": Struct({"phase": text, "message": text, "reason": text, "lastPhaseTransitionTime": text}),
    }
)
_TOPOLOGY = Struct({"matchLabelExpressions": ListOf(Struct({"key": text, "values": _TEXTS}))})
_CLASS = Struct(
    {
        "provisioner": text,
        "parameters": _TEXT_MAP,
        "reclaimPolicy": text,
        "mountOptions": _TEXTS,
        "allowVolumeExpansion": flag,
        "volumeBindingMode": text,
        "allowedTopologies": ListOf(_TOPOLOGY),
    }
)
_CSI_NODE = Struct(
    {
        "spec": Struct(
            {
                "drivers": ListOf(
                    Struct(
                        {"name": text, "nodeID": text, "topologyKeys": _TEXTS, "allocatable": Struct({"count": whole})}
                    )
                )
            }
        )
    }
)
_CSI_DRIVER = Struct(
    {
        "spec": Struct(
            {
                **dict.fromkeys(
                    ("attachRequired", "podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"), flag
                ),
                "fsGroupPolicy": text,
                "volumeLifecycleModes": _TEXTS,
                "tokenRequests": ListOf(Struct({"audience": text, "expirationSeconds": whole})),
                "nodeAllocatableUpdatePeriodSeconds": whole,
            }
        )
    }
)
_CAPACITY = Struct(
    {
        "nodeTopology": LABEL_SELECTOR,
        "storageClassName": text,
        "capacity": a_quantity,
        "maximumVolumeSize": a_quantity,
    }
)
_ATTACHMENT = Struct(
    {
        "spec": Struct(
            {
                "attacher": text,
                "nodeName": text,
                "source": Struct({"persistentVolumeName": text, "inlineVolumeSpec": an_object}),
            }
        ),
        "status": Struct({"attached": flag, "attachmentMetadata": _TEXT_MAP}),
    }
)


@dataclass(frozen=True, slots=True)
class ClaimStrategy(Strategy):
    """How persistent volume claims are written."""

    shape: Shape | None = _CLAIM
    has_status: bool = True
    returns_deleted: bool = True

    def prepare_create(self, obj: Obj, context: WriteContext) -> None:
        """Start in phase Pending."""
        Strategy.prepare_create(self, obj, context)
        obj["status"] = {"phase": "Pending"}

    def default(self, obj: Obj, context: WriteContext) -> None:
        """Claims are for file systems."""
        obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")

    def admit(self, obj: Obj, context: WriteContext) -> None:
        """A claim that names no class gets the default class: the youngest of those that are marked so."""
        annotations = obj["metadata"].get("annotations") or {}
        if obj["spec"].get("storageClassName") is None and _BETA_CLASS not in annotations:
            name = _default_class(context)
            if name:
                obj["spec"]["storageClassName"] = name

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """Check what the claim asks for."""
        spec = obj["spec"]
        errors = _mode_errors(spec, required("spec.accessModes", "at least 1 access mode is required"))
        size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
        if size is None:
            errors.append(required("spec.resources[storage]"))
        elif (quantity(size) or 0) <= 0:
            errors.append(invalid_value("spec.resources[storage]", size, "must be greater than zero"))
        return errors + _one_of(spec, "volumeMode", _VOLUME_MODES, "spec.volumeMode")

    def validate_update(self, obj: Obj, old: Obj, context: WriteContext) -> list[FieldError]:
        """The volume and the class are set once; a bound claim may ask for more."""
        spec, before = dict(obj["spec"]), dict(old["spec"])
        if not before.get("volumeName"):
            spec["volumeName"] = before.get("volumeName")
        if before.get("storageClassName") is None:
            spec["storageClassName"] = before.get("storageClassName")
        if (old.get("status") or {}).get("phase") == "Bound":
            for field in ("resources", "volumeAttributesClassName"):
                spec[field] = before.get(field)
        return [forbidden_field("spec", _CLAIM_IMMUTABLE)] if _set(spec) != _set(before) else []


@dataclass(frozen=True, slots=True)
class VolumeStrategy(Strategy):
    """How persistent volumes are written."""

    shape: Shape | None = _VOLUME
    has_status: bool = True
    returns_deleted: bool = True

    def prepare_create(self, obj: Obj, context: WriteContext) -> None:
        """Start in phase Pending."""
        Strategy.prepare_create(self, obj, context)
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": timestamp()}

    def default(self, obj: Obj, context: WriteContext) -> None:
        """Volumes are kept when their claim is gone, and are file systems."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
        spec.setdefault("volumeMode", "Filesystem")

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """Check what the volume offers, and that it has one source."""
        spec = obj["spec"]
        errors = _mode_errors(spec, required("spec.accessModes"))
        if not spec.get("capacity"):
            errors.append(required("spec.capacity"))
        if list(spec.get("capacity") or {}) != ["storage"]:
            errors.append(unsupported_value("spec.capacity", spec.get("capacity"), ("storage",)))
        policy = "persistentVolumeReclaimPolicy"
        errors += _one_of(spec, policy, ("Delete", "Recycle", "Retain"), f"spec.{policy}")
        sources = [name for name in _SOURCES if spec.get(name) is not None]
        if not sources:
            errors.append(required("spec", "must specify a volume type"))
        errors += [forbidden_field(f"spec.{name}", "may not specify more than 1 volume type") for name in sources[1:]]
        return errors + _one_of(spec, "volumeMode", _VOLUME_MODES, "spec.volumeMode")

    def validate_update(self, obj: Obj, old: Obj, context: WriteContext) -> list[FieldError]:
        """The source, the mode and a node affinity that is set stay."""
        spec, before = obj["spec"], old["spec"]
        errors = []
        if any(spec.get(name) != before.get(name) for name in _SOURCES):
            what = "spec.persistentvolumesource"
            errors.append(forbidden_field(what, f"{what} is immutable after creation"))
        if spec.get("volumeMode") != before.get("volumeMode"):
            errors.append(invalid_value("volumeMode", spec.get("volumeMode"), _IMMUTABLE))
        if before.get("nodeAffinity") and spec.get("nodeAffinity") != before["nodeAffinity"]:
            detail = f"{_IMMUTABLE}, except for updating from beta label to GA"
            errors.append(invalid_value("nodeAffinity", spec.get("nodeAffinity"), detail))
        return errors


@dataclass(frozen=True, slots=True)
class StorageClassStrategy(Strategy):
    """How storage classes are written: only what concerns new volumes in general may change."""

    shape: Shape | None = _CLASS
    returns_deleted: bool = True

    def default(self, obj: Obj, context: WriteContext) -> None:
        """Volumes are deleted with their claim, and claims are bound at once."""
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """Check who makes the volumes, and how."""
        errors = [] if obj.get("provisioner") else [required("provisioner")]
        errors += _one_of(obj, "reclaimPolicy", ("Delete", "Retain"), "reclaimPolicy")
        return errors + _one_of(obj, "volumeBindingMode", ("Immediate", "WaitForFirstConsumer"), "volumeBindingMode")

    def validate_update(self, obj: Obj, old: Obj, context: WriteContext) -> list[FieldError]:
        """These fields stay."""
        fixed = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
        return [
            invalid_value(name, obj.get(name), _IMMUTABLE)
            for name in fixed
            if (obj.get(name) or "") != (old.get(name) or "")
        ]


@dataclass(frozen=True, slots=True)
class CsiNodeStrategy(Strategy):
    """How CSINodes are written."""

    shape: Shape | None = _CSI_NODE
    returns_deleted: bool = True

    def default(self, obj: Obj, context: WriteContext) -> None:
        """An empty list of drivers, and null instead of no topology keys."""
        for driver in obj.setdefault("spec", {}).setdefault("drivers", []):
            driver.setdefault("topologyKeys", None)

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """Each driver has a name and knows the node by an id."""
        return [
            required(f"spec.drivers[{index}].{field}")
            for index, driver in enumerate(obj["spec"]["drivers"])
            for field in ("name", "nodeID")
            if not driver.get(field)
        ]


@dataclass(frozen=True, slots=True)
class CsiDriverStrategy(Strategy):
    """How CSIDrivers are written."""

    shape: Shape | None = _CSI_DRIVER
    returns_deleted: bool = True

    def default(self, obj: Obj, context: WriteContext) -> None:
        """Fill in what a driver can do unless it says otherwise."""
        spec = obj.setdefault("spec", {})
        spec.setdefault("attachRequired", True)
        for name in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
            spec.setdefault(name, False)
        spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
        spec.setdefault("volumeLifecycleModes", ["Persistent"])


@dataclass(frozen=True, slots=True)
class CapacityStrategy(Strategy):
    """How CSIStorageCapacities are written."""

    shape: Shape | None = _CAPACITY
    returns_deleted: bool = True

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """The class is named."""
        name = obj.get("storageClassName") or ""
        problem = subdomain_rule(name)
        return [invalid_value("storageClassName", name, problem)] if problem else []

    def validate_update(self, obj: Obj, old: Obj, context: WriteContext) -> list[FieldError]:
        """Where and for which class never changes."""
        fixed = ("nodeTopology", "storageClassName")
        return [invalid_value(name, obj.get(name), _IMMUTABLE) for name in fixed if obj.get(name) != old.get(name)]


@dataclass(frozen=True, slots=True)
class AttachmentStrategy(Strategy):
    """How VolumeAttachments are written."""

    shape: Shape | None = _ATTACHMENT
    has_status: bool = True
    returns_deleted: bool = True

    def prepare_create(self, obj: Obj, context: WriteContext) -> None:
        """Start as not attached."""
        Strategy.prepare_create(self, obj, context)
        obj["status"] = {"attached": False}

    def validate(self, obj: Obj, context: WriteContext) -> list[FieldError]:
        """Say who attaches what where."""
        spec = obj.get("spec") or {}
        source = spec.get("source") or {}
        errors = [] if spec.get("attacher") else [required("spec.attacher")]
        if (source.get("persistentVolumeName") is None) == (source.get("inlineVolumeSpec") is None):
            detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
            errors.append(required("spec.source", detail))
        problem = subdomain_rule(spec.get("nodeName") or "")
        if problem:
            errors.append(invalid_value("spec.nodeName", spec.get("nodeName") or "", problem))
        return errors

    def validate_update(self, obj: Obj, old: Obj, context: WriteContext) -> list[FieldError]:
        """What is attached where never changes."""
        return [] if obj.get("spec") == old.get("spec") else [invalid_value("spec", obj.get("spec"), _IMMUTABLE)]


def _default_class(context: WriteContext) -> str:
    marked = [
        (one["metadata"].get("creationTimestamp", ""), one["metadata"]["name"])
        for one in context.reader.objects("storageclasses.storage.k8s.io")
        if (one["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
    ]
    newest = max((created for created, _ in marked), default="")
    return min((name for created, name in marked if created == newest), default="")


def _mode_errors(spec: Obj, missing: FieldError) -> list[FieldError]:
    modes = spec.get("accessModes") or []
    if not modes:
        return [missing]
    errors = [unsupported_value("spec.accessModes", mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        detail = "may not use ReadWriteOncePod with other access modes"
        errors.append(forbidden_field("spec.accessModes", detail))
    return errors


def _one_of(obj: Obj, field: str, allowed: Sequence[str], path: str) -> list[FieldError]:
    value = obj.get(field)
    return [] if value in allowed else [unsupported_value(path, value, allowed)]


def _set(spec: Obj) -> dict[str, Any]:
    """Return the fields that are set."""
    return {name: value for name, value in spec.items() if value not in (None, "", {}, [])}
