"""What a pod template gives its container: environment and mounted files, read from the API server."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.controlplane.rest import ApiFailure
from tests.e2e.control_plane import ControlPlane

REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
POD_KEYS = {
    *("serviceAccountName", "serviceAccount", "priorityClassName", "securityContext", "containers", "volumes"),
    *("terminationGracePeriodSeconds", "affinity", "topologySpreadConstraints", "tolerations", "nodeSelector"),
    *("restartPolicy", "dnsPolicy", "schedulerName", "imagePullSecrets", "automountServiceAccountToken"),
}
CONTAINER_KEYS = {
    *("name", "image", "imagePullPolicy", "command", "args", "env", "ports", "resources", "securityContext"),
    *("livenessProbe", "readinessProbe", "startupProbe", "volumeMounts"),
    *("terminationMessagePath", "terminationMessagePolicy"),
}


class NotStartable(Exception):
    """A kubelet would not start this pod, or it has something that these tests do not know."""


def only_container(spec: Mapping[str, Any], process: str) -> dict[str, Any]:
    """Return the one container of a pod; raise NotStartable for whatever this module would ignore."""
    if unknown := spec.keys() - POD_KEYS:
        raise NotStartable(f"{process}: these tests do not know the fields {sorted(unknown)} of a pod")
    if len(spec["containers"]) != 1:
        raise NotStartable(f"{process}: it has {len(spec['containers'])} containers; these tests start one")
    container = dict(spec["containers"][0])
    if unknown := container.keys() - CONTAINER_KEYS:
        raise NotStartable(f"{process}: these tests do not know the fields {sorted(unknown)} of a container")
    if spec.get("automountServiceAccountToken") is False:
        raise NotStartable(f"{process}: it gets no token of its ServiceAccount")
    return container


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return a text with $(NAME) replaced by the variable; an unknown name stays, and $$ stands for $."""

    def replaced(match: re.Match[str]) -> str:
        return "$" if match[1] is None else variables.get(match[1], match[0])

    return REFERENCE.sub(replaced, text)


def environment(
    plane: ControlPlane, namespace: str, process: str, container: Mapping[str, Any], fields: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables of a container, in their order; later ones may name earlier ones."""
    found: dict[str, str] = {}
    for variable in container.get("env", []):
        source = variable.get("valueFrom")
        if source is None:
            found[variable["name"]] = expanded(variable.get("value", ""), found)
            continue
        ((kind, wanted),) = source.items()
        if kind == "fieldRef" and wanted["fieldPath"] in fields:
            found[variable["name"]] = fields[wanted["fieldPath"]]
        elif kind in {"configMapKeyRef", "secretKeyRef"}:
            data = read_data(plane, namespace, kind.removesuffix("KeyRef"), wanted, process)
            if wanted["key"] in data:
                found[variable["name"]] = data[wanted["key"]].decode()
            elif not wanted.get("optional"):
                raise NotStartable(f"{process}: {kind} {wanted['name']} has no key {wanted['key']}")
        else:
            raise NotStartable(f"{process}: these tests do not know {kind} {wanted} of ${variable['name']}")
    return found


def read_data(
    plane: ControlPlane, namespace: str, kind: str, wanted: Mapping[str, Any], process: str
) -> dict[str, bytes]:
    """Return the entries of a ConfigMap or a Secret; an optional one may be missing."""
    name = wanted.get("secretName") or wanted["name"]
    try:
        found = plane.request("GET", f"/api/v1/namespaces/{namespace}/{kind.lower()}s/{name}")
    except ApiFailure as failed:
        if wanted.get("optional"):
            return {}
        raise NotStartable(f"{process}: {kind} {namespace}/{name} cannot be mounted: {failed}") from failed
    if kind == "secret":
        return {key: base64.b64decode(value) for key, value in found.get("data", {}).items()}
    texts = {key: value.encode() for key, value in found.get("data", {}).items()}
    return texts | {key: base64.b64decode(value) for key, value in found.get("binaryData", {}).items()}


class Mounts:
    """The volumes of one container, as folders of this machine."""

    def __init__(
        self,
        plane: ControlPlane,
        namespace: str,
        process: str,
        spec: Mapping[str, Any],
        container: Mapping[str, Any],
    ) -> None:
        self._plane = plane
        self._namespace = namespace
        self._process = process
        self._root = plane.processes.folder / f"{process}.files"
        self._volumes = {one["name"]: one for one in spec.get("volumes", [])}
        self._folders: dict[str, str] = {}  # by path in the container: the volume
        for mount in container.get("volumeMounts", []):
            if unknown := mount.keys() - {"name", "mountPath", "readOnly"}:
                raise NotStartable(f"{process}: these tests do not know the fields {sorted(unknown)} of a mount")
            if mount["name"] not in self._volumes:
                raise NotStartable(f"{process}: the pod has no volume {mount['name']}")
            self._folders[mount["mountPath"].rstrip("/")] = mount["name"]

    def write(self) -> None:
        """Write the files of all volumes; those that no longer exist are removed."""
        for path, name in self._folders.items():
            folder = self._root / path.lstrip("/")
            folder.mkdir(parents=True, exist_ok=True)
            files = self._files(self._volumes[name])
            if files is None:
                continue
            for old in folder.iterdir():
                if old.name not in files:
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
            for file, content in files.items():
                self._replace(folder / file, content)

    def rewritten(self, text: str) -> str:
        """Return a text in which paths of mounted folders are those of this machine."""
        for path in sorted(self._folders, key=len, reverse=True):
            text = re.sub(rf"(?<![\w./-]){re.escape(path)}(?=/|,|$)", str(self._root / path.lstrip("/")), text)
        return text

    def _files(self, volume: Mapping[str, Any]) -> dict[str, bytes] | None:
        """Return the files of a volume; None for one that the program itself fills."""
        ((kind, source),) = ((key, value) for key, value in volume.items() if key != "name")
        if kind == "emptyDir":
            return None
        if kind not in {"configMap", "secret"}:
            raise NotStartable(f"{self._process}: these tests do not know the volume {volume['name']} ({kind})")
        data = read_data(self._plane, self._namespace, kind, source, self._process)
        if "items" not in source:
            return data
        wanted = {one["path"]: one["key"] for one in source["items"]}
        if (missing := wanted.values() - data.keys()) and not source.get("optional"):
            raise NotStartable(f"{self._process}: the volume {volume['name']} has no key {sorted(missing)}")
        return {path: data[key] for path, key in wanted.items() if key in data}

    @staticmethod
    def _replace(file: Path, content: bytes) -> None:
        """Replace a file in one step; one that stays the same is not touched."""
        if file.exists() and file.read_bytes() == content:
            return
        new = file.with_name(f".{file.name}.new")
        new.write_bytes(content)
        new.rename(file)
