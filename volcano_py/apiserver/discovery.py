"""Discovery documents: which groups, versions and resources are served."""

from __future__ import annotations

from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.resources import Resource, ResourceTable, ServedVersion

VERSION: Obj = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0-volcano-py",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "python",
}
"""The Kubernetes version whose behaviour this server follows."""

_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUBRESOURCE_VERBS = {"binding": ["create"], "eviction": ["create"], "finalize": ["update"]}
_SUBRESOURCE_KINDS = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
}


def api_versions(address: str) -> Obj:
    """The answer to /api."""
    server = {"clientCIDR": "0.0.0.0/0", "serverAddress": address}
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [server]}


def group_list(table: ResourceTable) -> Obj:
    """The answer to /apis."""
    groups = [_group(group, resources) for group, resources in table.groups().items() if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group(table: ResourceTable, name: str) -> Obj | None:
    """The answer to /apis/<group>."""
    resources = table.groups().get(name)
    if not name or not resources:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, resources)}


def _group(name: str, resources: list[Resource]) -> Obj:
    versions = sorted({version for resource in resources for version in resource.versions}, key=_rank, reverse=True)
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0] if listed else None}


def _rank(version: str) -> tuple[int, int, int]:
    """v2 before v1 before v1beta2 before v1alpha1."""
    text = version.removeprefix("v")
    for stability, word in ((1, "beta"), (0, "alpha")):
        major, found, minor = text.partition(word)
        if found and major.isdecimal():
            return stability, int(major), int(minor) if minor.isdecimal() else 0
    return (2, int(text), 0) if text.isdecimal() else (-1, 0, 0)


def resource_list(table: ResourceTable, group_name: str, version: str) -> Obj | None:
    """The answer to /api/v1 and /apis/<group>/<version>."""
    rows: list[Obj] = []
    for resource in table.groups().get(group_name, []):
        served = resource.versions.get(version)
        if served is not None:
            rows.extend(_rows(resource, served))
    if not rows:
        return None
    group_version = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": rows}


def _rows(resource: Resource, served: ServedVersion) -> list[Obj]:
    main: Obj = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": _VERBS,
    }
    if resource.short_names:
        main["shortNames"] = list(resource.short_names)
    if resource.categories:
        main["categories"] = list(resource.categories)
    rows = [main]
    for name in sorted(served.subresources):
        row: Obj = {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": _SUBRESOURCE_VERBS.get(name, ["get", "patch", "update"]),
        }
        if name in _SUBRESOURCE_KINDS:
            row["group"], row["version"], row["kind"] = _SUBRESOURCE_KINDS[name]
        rows.append(row)
    return rows
