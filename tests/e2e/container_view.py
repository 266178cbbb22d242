"""What a container sees: its environment and its files, as a kubelet lays them out from the pod and other objects."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

Obj = Mapping[str, Any]

CONFIG_MAP, SECRET, CLAIM = "configmaps", "secrets", "persistentvolumeclaims"
REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
KEYED = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
DEFAULT_MODE = 0o644


class Need(NamedTuple):
    """An object that a pod refers to, by resource and name."""

    resource: str
    name: str


Objects = Mapping[Need, Obj]


class NotThere(Exception):
    """A pod needs an object or a key that does not exist, so its containers cannot start."""


@dataclass(frozen=True)
class File:
    """A file in a container."""

    text: str
    mode: int


@dataclass(frozen=True)
class View:
    """What one container sees."""

    env: Mapping[str, str]
    files: Mapping[str, File]


def containers_of(pod: Obj) -> list[Obj]:
    """Return init containers and containers."""
    return [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]


def needs(pod: Obj) -> dict[Need, bool]:
    """Return the objects that a pod refers to, and of each whether its containers cannot start without it."""
    found: dict[Need, bool] = {}
    for need, optional in _references(pod):
        found[need] = found.get(need, False) or not optional
    return found


def _references(pod: Obj) -> Iterator[tuple[Need, bool]]:
    for container in containers_of(pod):
        for variable in container.get("env", ()):
            source = variable.get("valueFrom", {})
            for field, resource in (("configMapKeyRef", CONFIG_MAP), ("secretKeyRef", SECRET)):
                if ref := source.get(field):
                    yield Need(resource, ref["name"]), ref.get("optional", False)
        for source in container.get("envFrom", ()):
            for field, resource in (("configMapRef", CONFIG_MAP), ("secretRef", SECRET)):
                if ref := source.get(field):
                    yield Need(resource, ref["name"]), ref.get("optional", False)
    for volume in pod["spec"].get("volumes", ()):
        if source := volume.get("configMap"):
            yield Need(CONFIG_MAP, source["name"]), source.get("optional", False)
        if source := volume.get("secret"):
            yield Need(SECRET, source["secretName"]), source.get("optional", False)
        if source := volume.get("persistentVolumeClaim"):
            yield Need(CLAIM, source["claimName"]), False


def view(pod: Obj, container: Obj, objects: Objects) -> View:
    """Return what a container sees; raises NotThere when something is missing."""
    return View(_environment(pod, container, objects), _files(pod, container, objects))


def _environment(pod: Obj, container: Obj, objects: Objects) -> dict[str, str]:
    found: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        for field, resource in (("configMapRef", CONFIG_MAP), ("secretRef", SECRET)):
            if ref := source.get(field):
                data = _data(Need(resource, ref["name"]), objects, ref.get("optional", False))
                found.update({source.get("prefix", "") + key: value for key, value in data.items()})
    for variable in container.get("env", ()):
        value = variable.get("value", "")
        if "valueFrom" in variable:
            read = _value_from(pod, variable["valueFrom"], objects)
            if read is None:
                continue
            value = read
        else:
            value = REFERENCE.sub(lambda named: found.get(named[1], named[0]), value)
        found[variable["name"]] = value
    return found


def _value_from(pod: Obj, source: Obj, objects: Objects) -> str | None:
    if ref := source.get("fieldRef"):
        return _field(pod, ref["fieldPath"])
    for field, resource in (("configMapKeyRef", CONFIG_MAP), ("secretKeyRef", SECRET)):
        if ref := source.get(field):
            optional = ref.get("optional", False)
            data = _data(Need(resource, ref["name"]), objects, optional)
            if ref["key"] not in data and not optional:
                raise NotThere(f"{resource}/{ref['name']} has no key {ref['key']}")
            return data.get(ref["key"])
    raise NotThere(f"the stand-in cannot read {source}")


def _field(pod: Obj, path: str) -> str:
    if keyed := KEYED.fullmatch(path):
        return str(pod["metadata"].get(keyed[1], {}).get(keyed[2], ""))
    value: Any = pod
    for step in path.split("."):
        value = value.get(step, {})
    return str(value or "")


def _data(need: Need, objects: Objects, optional: bool) -> dict[str, str]:
    obj = objects.get(need)
    if obj is None:
        if optional:
            return {}
        raise NotThere(f"{need.resource}/{need.name} is missing")
    if need.resource == SECRET:
        return {key: base64.b64decode(value).decode() for key, value in obj.get("data", {}).items()}
    return dict(obj.get("data", {}))


def _files(pod: Obj, container: Obj, objects: Objects) -> dict[str, File]:
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", ())}
    found: dict[str, File] = {}
    for mount in container.get("volumeMounts", ()):
        inside = _volume_files(volumes[mount["name"]], objects)
        root, part = mount["mountPath"].rstrip("/"), mount.get("subPath", "").strip("/")
        for path, file in inside.items():
            if not part:
                found[f"{root}/{path}"] = file
            elif path == part:
                found[root] = file
            elif path.startswith(f"{part}/"):
                found[root + path.removeprefix(part)] = file
    return found


def _volume_files(volume: Obj, objects: Objects) -> dict[str, File]:
    """Return the files of a volume that an object fills, by path inside the volume."""
    for field, resource, name in (("configMap", CONFIG_MAP, "name"), ("secret", SECRET, "secretName")):
        if source := volume.get(field):
            data = _data(Need(resource, source[name]), objects, source.get("optional", False))
            mode = source.get("defaultMode", DEFAULT_MODE)
            items = source.get("items") or [{"key": key, "path": key} for key in data]
            if missing := [item["key"] for item in items if item["key"] not in data]:
                raise NotThere(f"{resource}/{source[name]} has no key {missing[0]}")
            return {item["path"]: File(data[item["key"]], item.get("mode", mode)) for item in items}
    return {}
