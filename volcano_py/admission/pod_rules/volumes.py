"""Volumes: one source each, with what the source needs."""

from collections.abc import Callable, Mapping
from typing import Final

from volcano_py.admission import names
from volcano_py.admission.amounts import amount
from volcano_py.admission.contract import Obj
from volcano_py.admission.pod_rules.flaws import (
    Flaws,
    duplicate,
    each,
    forbidden,
    invalid,
    not_supported,
    one_of,
    required,
)
from volcano_py.admission.pod_rules.metadata import metadata
from volcano_py.admission.pod_rules.references import IN_VOLUME, field_reference, resource_reference
from volcano_py.admission.pod_rules.selectors import label_selector
from volcano_py.admission.reading import number, part, parts, text, texts

_HOST_PATHS: Final = ("DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")
_ACCESS: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_MODES: Final = ("Block", "Filesystem")
_PULL: Final = ("Always", "IfNotPresent", "Never")
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "gcePersistentDisk": ("pdName",),
    "awsElasticBlockStore": ("volumeID",),
    "gitRepo": ("repository",),
    "nfs": ("server", "path"),
    "iscsi": ("targetPortal", "iqn"),
    "glusterfs": ("endpoints", "path"),
    "persistentVolumeClaim": ("claimName",),
    "rbd": ("image",),
    "flexVolume": ("driver",),
    "cinder": ("volumeID",),
    "azureFile": ("secretName", "shareName"),
    "vsphereVolume": ("volumePath",),
    "quobyte": ("registry", "volume"),
    "azureDisk": ("diskName", "diskURI"),
    "photonPersistentDisk": ("pdID",),
    "portworxVolume": ("volumeID",),
    "scaleIO": ("gateway", "system", "volumeName"),
    "storageos": (),
    "flocker": (),
    "fc": (),
    "cephfs": (),
    "image": ("reference",),
    "csi": ("driver",),
    "configMap": ("name",),
    "secret": ("secretName",),
    "emptyDir": (),
    "hostPath": ("path",),
    "downwardAPI": (),
    "projected": (),
    "ephemeral": (),
}
"""Every source of volumes, and its fields that may not be empty."""


def volumes(spec: Obj, path: str) -> Flaws:
    """Judge the volumes of a pod."""
    seen: set[str] = set()
    for index, volume in enumerate(parts(spec, "volumes")):
        at, name = f"{path}[{index}]", text(volume, "name")
        if not name:
            yield required(f"{at}.name")
        else:
            yield from each(f"{at}.name", name, names.label(name))
        if name in seen:
            yield duplicate(f"{at}.name", name)
        seen.add(name)
        yield from _source(volume, at)


def sources(spec: Obj) -> Mapping[str, str]:
    """Return the kind of source of each volume by its name."""
    return {
        text(volume, "name"): next((kind for kind in _NEEDED if isinstance(volume.get(kind), dict)), "emptyDir")
        for volume in parts(spec, "volumes")
    }


def _source(volume: Obj, path: str) -> Flaws:
    given = [kind for kind in _NEEDED if isinstance(volume.get(kind), dict)]
    for kind in given[1:]:
        yield forbidden(f"{path}.{kind}", "may not specify more than 1 volume type")
    for kind in given[:1]:
        source, at = part(volume, kind), f"{path}.{kind}"
        for field in _NEEDED[kind]:
            if not text(source, field):
                yield required(f"{at}.{field}")
        if judge := _MORE.get(kind):
            yield from judge(source, at)


def _empty_dir(source: Obj, path: str) -> Flaws:
    size = amount(source.get("sizeLimit"))
    if size is not None and size < 0:
        yield forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _host_path(source: Obj, path: str) -> Flaws:
    yield from no_backsteps(text(source, "path"), f"{path}.path")
    yield from one_of(f"{path}.type", text(source, "type"), _HOST_PATHS)


def _nfs(source: Obj, path: str) -> Flaws:
    if not text(source, "path").startswith("/"):
        yield invalid(f"{path}.path", text(source, "path"), "must be an absolute path")


def _files(source: Obj, path: str) -> Flaws:
    """Judge the files of a ConfigMap or Secret."""
    yield from _mode(source, f"{path}.defaultMode", "defaultMode")
    for index, item in enumerate(parts(source, "items")):
        yield from _item(item, f"{path}.items[{index}]")


def _item(item: Obj, path: str) -> Flaws:
    if not text(item, "key"):
        yield required(f"{path}.key")
    yield from _target(item, path)
    yield from _mode(item, f"{path}.mode", "mode")


def _target(item: Obj, path: str) -> Flaws:
    target = text(item, "path")
    if not target:
        yield required(f"{path}.path")
    yield from relative(target, f"{path}.path")
    if target.startswith(".."):
        yield invalid(f"{path}.path", target, "must not start with '..'")


def _mode(owner: Obj, path: str, field: str) -> Flaws:
    mode = number(owner, field)
    if mode is not None and not 0 <= mode <= 0o777:
        yield invalid(path, mode, "must be a number between 0 and 0777 (octal), both inclusive")


def _downward(source: Obj, path: str) -> Flaws:
    yield from _mode(source, f"{path}.defaultMode", "defaultMode")
    for item in parts(source, "items"):
        yield from _downward_file(item, path)


def _downward_file(item: Obj, path: str) -> Flaws:
    yield from _target(item, path)
    has_field, has_resource = (isinstance(item.get(kind), dict) for kind in ("fieldRef", "resourceFieldRef"))
    if has_field:
        yield from field_reference(part(item, "fieldRef"), f"{path}.fieldRef", IN_VOLUME)
        if has_resource:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif has_resource:
        yield from resource_reference(part(item, "resourceFieldRef"), f"{path}.resourceFieldRef", in_volume=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _mode(item, f"{path}.mode", "mode")


def _projected(source: Obj, path: str) -> Flaws:
    yield from _mode(source, f"{path}.defaultMode", "defaultMode")
    seen: set[str] = set()
    for index, one in enumerate(parts(source, "sources")):
        at = f"{path}.sources[{index}]"
        given = [kind for kind in _PROJECTIONS if isinstance(one.get(kind), dict)]
        if len(given) > 1:
            yield forbidden(at, "may not specify more than 1 volume type per source")
        for kind in given[:1]:
            found, where = part(one, kind), f"{at}.{kind}"
            yield from _projection(kind, found, where)
            targets = [text(item, "path") for item in parts(found, "items")]
            if kind in ("serviceAccountToken", "clusterTrustBundle"):
                targets = [text(found, "path")]
            for target in targets:
                if target and target in seen:
                    yield invalid(path, target, "conflicting duplicate paths")
                seen.add(target)


_PROJECTIONS: Final = (
    "secret",
    "configMap",
    "downwardAPI",
    "serviceAccountToken",
    "clusterTrustBundle",
    "podCertificate",
)


def _projection(kind: str, source: Obj, path: str) -> Flaws:
    if kind in ("secret", "configMap"):
        if not text(source, "name"):
            yield required(f"{path}.name")
        yield from _files(source, path)
    elif kind == "downwardAPI":
        yield from _downward(source, path)
    elif kind == "serviceAccountToken":
        seconds = number(source, "expirationSeconds")
        if seconds is not None and seconds < 600:
            yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        if seconds is not None and seconds > 1 << 32:
            yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
        yield from _target(source, path)
    elif kind == "clusterTrustBundle":
        name, signer = text(source, "name"), text(source, "signerName")
        if bool(name) == bool(signer):
            detail = (
                "at most one of name and signerName may be set" if name else "one of name and signerName is required"
            )
            yield invalid(path, name, detail)
        yield from _target(source, path)


def _csi(source: Obj, path: str) -> Flaws:
    driver = text(source, "driver")
    if driver:
        yield from each(f"{path}.driver", driver, names.subdomain(driver.lower()))
    secret = source.get("nodePublishSecretRef")
    if isinstance(secret, dict) and not text(secret, "name"):
        yield required(f"{path}.nodePublishSecretRef.name")


def _ephemeral(source: Obj, path: str) -> Flaws:
    at = f"{path}.volumeClaimTemplate"
    if not isinstance(source.get("volumeClaimTemplate"), dict):
        yield required(at)
        return
    template = part(source, "volumeClaimTemplate")
    yield from metadata(part(template, "metadata"), f"{at}.metadata")
    yield from claim_spec(part(template, "spec"), f"{at}.spec")


def claim_spec(spec: Obj, path: str) -> Flaws:
    """Judge the spec of a volume claim."""
    modes = texts(spec, "accessModes")
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    for mode in modes:
        if mode not in _ACCESS:
            yield not_supported(f"{path}.accessModes", mode, _ACCESS)
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        yield forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes")
    yield from label_selector(part(spec, "selector"), f"{path}.selector")
    at = f"{path}.resources[storage]"
    written = part(spec, "resources", "requests").get("storage")
    size = amount(written)
    if size is None:
        yield required(at)
    elif size <= 0:
        yield invalid(at, str(written), "must be greater than zero")
    name = text(spec, "storageClassName")
    if name:
        yield from each(f"{path}.storageClassName", name, names.subdomain(name))
    yield from one_of(f"{path}.volumeMode", text(spec, "volumeMode"), _MODES)


def _image(source: Obj, path: str) -> Flaws:
    yield from one_of(f"{path}.pullPolicy", text(source, "pullPolicy"), _PULL)


def relative(target: str, path: str) -> Flaws:
    """Judge a path that stays below a folder."""
    if target.startswith("/"):
        yield invalid(path, target, "must be a relative path")
    yield from no_backsteps(target, path)


def no_backsteps(target: str, path: str) -> Flaws:
    """Judge a path that leads only downwards."""
    if ".." in target.split("/"):
        yield invalid(path, target, "must not contain '..'")


_MORE: Final[Mapping[str, Callable[[Obj, str], Flaws]]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "nfs": _nfs,
    "configMap": _files,
    "secret": _files,
    "downwardAPI": _downward,
    "projected": _projected,
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
"""What else is judged of a source."""
