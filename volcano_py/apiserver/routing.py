"""Derive the target of a request (verb, resource, namespace, name, subresource) from method, path and query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from volcano_py.apiserver.resources import Resource, ResourceTable
from volcano_py.apiserver.status import method_not_allowed, no_such_resource, not_implemented

_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_SUBRESOURCE_VERBS = {
    "status": {"GET": "get", "PUT": "update", "PATCH": "patch"},
    "finalize": {"PUT": "update"},
    "binding": {"POST": "create"},
    "eviction": {"POST": "create"},
    "scale": {"GET": "get", "PUT": "update", "PATCH": "patch"},
}
_NO_CONTAINERS = "no container runs behind the embedded API server, so there is nothing to"
_ELSEWHERE = "use a cluster with real nodes"
_NOT_SERVED = {
    ("pods", "log"): f"{_NO_CONTAINERS} read logs from; see the pod's status and events, or {_ELSEWHERE}",
    ("pods", "exec"): f"{_NO_CONTAINERS} run a command in; {_ELSEWHERE}",
    ("pods", "attach"): f"{_NO_CONTAINERS} attach to; {_ELSEWHERE}",
    ("pods", "portforward"): f"{_NO_CONTAINERS} forward a port to; {_ELSEWHERE}",
    ("pods", "ephemeralcontainers"): f"{_NO_CONTAINERS} debug; {_ELSEWHERE}",
    ("pods", "resize"): f"{_NO_CONTAINERS} resize; {_ELSEWHERE}",
    ("serviceaccounts", "token"): "the embedded API server issues no tokens: it lets every request in "
    "(or those with the one token it was started with)",
    **{(plural, "proxy"): f"{_NO_CONTAINERS} proxy to; {_ELSEWHERE}" for plural in ("pods", "services", "nodes")},
}
"""Subresources of Kubernetes that are answered with 501, and why."""
BINDINGS = "bindings"
"""The older path of a Binding: POST to the namespace's `bindings` instead of the pod's `binding`."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about."""

    verb: str
    resource: Resource
    version: str
    namespace: str | None = None
    name: str = ""
    subresource: str = ""

    @property
    def counted_as(self) -> str:
        """Resource with subresource, as in metrics and rules: `pods/binding`."""
        return f"{self.resource.collection}/{self.subresource}" if self.subresource else self.resource.collection


class UnknownGroup(Exception):
    """A path outside every served group and version; answered with a plain 404."""


def route(table: ResourceTable, method: str, path: str, query: Mapping[str, str]) -> Target:
    """Find the target of a resource path (`/api/v1/...`, `/apis/<group>/<version>/...`)."""
    parts = [unquote(part) if "%" in part else part for part in path.strip("/").split("/")]
    if parts[0] == "api":
        if len(parts) < 3 or parts[1] != "v1":
            raise no_such_resource()
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise UnknownGroup(path)
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) > 2 and not (group == "" and rest[2] in ("status", "finalize")):
        namespace, rest = rest[1], rest[2:]
    plural = rest[0]
    resource = table.find(group, plural)
    if resource is None and group == "" and plural == BINDINGS and namespace and len(rest) == 1:
        pods = table.named("pods")
        return Target(_verb_of({"POST": "create"}, method), pods, version, namespace, "", "binding")
    if resource is None or version not in resource.versions:
        if group and not any(version in item.versions for item in table.groups().get(group, ())):
            raise UnknownGroup(path)
        raise no_such_resource()
    if namespace is not None and not resource.namespaced:
        raise no_such_resource()
    return _target(resource, version, namespace, rest[1:], method, query)


def _target(
    resource: Resource,
    version: str,
    namespace: str | None,
    rest: list[str],
    method: str,
    query: Mapping[str, str],
) -> Target:
    if len(rest) > 1 and not resource.group and (why := _NOT_SERVED.get((resource.plural, rest[1]))):
        raise not_implemented(why)
    if len(rest) > 2:
        raise no_such_resource()
    if not rest:
        verb = _verb_of(_COLLECTION_VERBS, method)
        if verb == "list" and query.get("watch") in ("1", "true"):
            verb = "watch"
        if resource.namespaced and namespace is None and verb in ("create", "deletecollection"):
            raise method_not_allowed()
        return Target(verb, resource, version, namespace)
    if resource.namespaced and namespace is None:
        raise no_such_resource()
    if len(rest) == 1:
        return Target(_verb_of(_OBJECT_VERBS, method), resource, version, namespace, rest[0])
    name, subresource = rest
    if subresource not in resource.versions[version].subresources:
        raise no_such_resource()
    verbs = _SUBRESOURCE_VERBS.get(subresource)
    if verbs is None:
        raise no_such_resource()
    return Target(_verb_of(verbs, method), resource, version, namespace, name, subresource)


def _verb_of(verbs: Mapping[str, str], method: str) -> str:
    verb = verbs.get(method)
    if verb is None:
        raise method_not_allowed()
    return verb
