"""Reads the objects of a cluster for a check; it sends only lists."""

from collections.abc import Iterable, Iterator
from typing import Protocol

from volcano_py.client.problem import ApiProblem
from volcano_py.kube.resource import PODS, Resource
from volcano_py.local.manifests import definitions
from volcano_py.migration.check import check, volcanos_workloads
from volcano_py.migration.cluster import IN_NAMESPACES, KINDS, MANY, Cluster
from volcano_py.migration.findings import Obj, Report, text
from volcano_py.migration.workloads import Judge

_NOT_FOUND = 404
_ALIVE = "status.phase!=Succeeded,status.phase!=Failed"


class Lists(Protocol):
    """What reading needs of an API server."""

    def pages(self, kind: Resource, namespace: str = "", **query: str) -> Iterator[list[Obj]]:
        """Yield the objects of a kind, page by page."""


def look(api: Lists, namespace: str, judge: Judge) -> Report:
    """Check a cluster; ``namespace`` is where Volcano is installed, if no program of it is found."""
    refused: list[str] = []
    objects = {kind: found for kind in KINDS if (found := _read(api, kind, "", refused)) is not None}
    known = Cluster(objects)
    namespaces = {one.ref.namespace for one in volcanos_workloads(known)} | {namespace}
    unread: set[Resource] = set()
    for kind in IN_NAMESPACES:
        parts = [_read(api, kind, where, refused) for where in sorted(namespaces)]
        objects[kind] = [one for part in parts for one in part or ()]
        if None in parts:
            unread.add(kind)
    many = {kind: _passing(api, kind, refused, unread) for kind in MANY}
    ours = {text(one, "metadata", "name"): one for one in definitions()}
    report = check(Cluster(objects, many, unread, ours), judge)
    report.not_looked_at += dict.fromkeys(refused)
    return report


def _read(api: Lists, kind: Resource, namespace: str, refused: list[str]) -> list[Obj] | None:
    """Return the objects of a kind, None if we may not read them; a kind that is not served has none."""
    try:
        return [one for page in api.pages(kind, namespace) for one in page]
    except ApiProblem as problem:
        if problem.status == _NOT_FOUND:
            return []
        refused.append(_told(kind, namespace, problem))
        return None


def _passing(api: Lists, kind: Resource, refused: list[str], unread: set[Resource]) -> Iterable[Obj]:
    query = {"fieldSelector": _ALIVE} if kind is PODS else {}
    try:
        for page in api.pages(kind, "", **query):
            yield from page
    except ApiProblem as problem:
        if problem.status != _NOT_FOUND:
            unread.add(kind)
            refused.append(_told(kind, "", problem))


def _told(kind: Resource, namespace: str, problem: ApiProblem) -> str:
    where = f" in namespace {namespace}" if namespace else ""
    return f"{kind.label}{where}: {problem}"
