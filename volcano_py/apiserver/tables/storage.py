"""The rows of claims, volumes, storage classes, and what CSI drivers say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from volcano_py.apiserver.kinds.storage import DEFAULT_CLASS
from volcano_py.apiserver.objects import Obj, dig
from volcano_py.apiserver.tables.layout import NAME_COLUMN, Layout, born, column, layout

_UNSET = "<unset>"
_SHORT_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}  # in the order in which kubectl shows them
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def _claim(obj: Obj) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    volume = spec.get("volumeName") or ""
    capacity = (status.get("capacity") or {}).get("storage", "") if volume else ""
    modes = _modes(status) if volume else ""
    return [
        _phase(obj),
        volume,
        capacity,
        modes,
        *_class_and_attributes(obj),
        born(obj),
        spec.get("volumeMode", _UNSET),
    ]


def _volume(obj: Obj) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    ref = spec.get("claimRef") or {}
    bound = f"{ref.get('namespace', '')}/{ref.get('name', '')}" if ref else ""
    capacity = (spec.get("capacity") or {}).get("storage", "")
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    which = [capacity, _modes(spec), policy, _phase(obj), bound, *_class_and_attributes(obj)]
    return [*which, status.get("reason", ""), born(obj), spec.get("volumeMode", _UNSET)]


def _phase(obj: Obj) -> str:
    return "Terminating" if "deletionTimestamp" in obj["metadata"] else (obj.get("status") or {}).get("phase", "")


def _modes(obj: Obj) -> str:
    modes = obj.get("accessModes") or []
    return ",".join(short for name, short in _SHORT_MODES.items() if name in modes)


def _class_and_attributes(obj: Obj) -> list[Any]:
    annotations = obj["metadata"].get("annotations") or {}
    name = annotations.get(_BETA_CLASS) or dig(obj, "spec", "storageClassName") or ""
    return [name, dig(obj, "spec", "volumeAttributesClassName") or _UNSET]


def _storage_class(obj: Obj) -> list[Any]:
    meta = obj["metadata"]
    default = (meta.get("annotations") or {}).get(DEFAULT_CLASS) == "true"
    return [
        f"{meta['name']} (default)" if default else meta["name"],
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy", "Delete"),
        obj.get("volumeBindingMode", "Immediate"),
        bool(obj.get("allowVolumeExpansion")),
        born(obj),
    ]


def _csi_driver(obj: Obj) -> list[Any]:
    spec = obj.get("spec") or {}
    tokens = [str(item.get("audience", "")) for item in spec.get("tokenRequests") or []]
    return [
        *(str(bool(spec.get(name))).lower() for name in ("attachRequired", "podInfoOnMount", "storageCapacity")),
        ",".join(tokens) or _UNSET,
        str(bool(spec.get("requiresRepublish"))).lower(),
        ",".join(spec.get("volumeLifecycleModes") or []),
        born(obj),
    ]


def _attachment(obj: Obj) -> list[Any]:
    spec = obj.get("spec") or {}
    volume = dig(spec, "source", "persistentVolumeName") or ""
    attached = str(bool(dig(obj, "status", "attached"))).lower()
    return [spec.get("attacher", ""), volume, spec.get("nodeName", ""), attached, born(obj)]


_CLASS_NAMES = "Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age"

STORAGE: Mapping[str, Layout] = {
    "persistentvolumeclaims": layout(
        "Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, +VolumeMode", _claim
    ),
    "persistentvolumes": layout(
        "Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age, "
        "+VolumeMode",
        _volume,
    ),
    "storageclasses.storage.k8s.io": Layout(
        (NAME_COLUMN, *(column(name) for name in _CLASS_NAMES.split(", "))), _storage_class
    ),
    "csinodes.storage.k8s.io": layout("Drivers, Age", lambda obj: [len(dig(obj, "spec", "drivers") or []), born(obj)]),
    "csidrivers.storage.k8s.io": layout(
        "AttachRequired, PodInfoOnMount, StorageCapacity, TokenRequests, RequiresRepublish, Modes, Age", _csi_driver
    ),
    "volumeattachments.storage.k8s.io": layout("Attacher, PV, Node, Attached, Age", _attachment),
}
