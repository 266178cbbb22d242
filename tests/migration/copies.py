"""A copy of a cluster that runs Volcano, in which tests change one thing, and its check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tests.migration.ordinary import ordinary
from tests.migration.volcano_install import Release
from volcano_py.cli.migrate_flags import judge_flag
from volcano_py.client.problem import ApiProblem
from volcano_py.kube.resource import Resource
from volcano_py.migration.findings import Report
from volcano_py.migration.reading import look

Obj = dict[str, Any]


class Copy:
    """The objects of a cluster; it answers lists as an API server does."""

    def __init__(self, release: Release | None = None, objects: Iterable[Obj] | None = None) -> None:
        self.release = release or Release()
        self.objects = [*self.release.objects(), *(ordinary() if objects is None else objects)]
        self.forbidden: set[str] = set()

    def get(self, kind: str, name: str) -> Obj:
        """Return an object; its fields may be changed."""
        return next(one for one in self.objects if one["kind"] == kind and one["metadata"]["name"] == name)

    def program(self, part: str) -> Obj:
        """Return the Deployment of a program."""
        return self.get("Deployment", f"{self.release.name}-{part}")

    def container(self, part: str) -> Obj:
        """Return the container of a program."""
        found: Obj = self.program(part)["spec"]["template"]["spec"]["containers"][0]
        return found

    def argument(self, part: str, *arguments: str) -> None:
        """Add arguments to a program; a flag that is there gets the new value."""
        args = self.container(part)["args"]
        for argument in arguments:
            name = argument.partition("=")[0]
            args[:] = [one for one in args if one.partition("=")[0] != name]
            args.append(argument)

    def config(self, part: str, content: str) -> None:
        """Replace what a ConfigMap holds."""
        name = "volcano-sharding-configmap" if part == "sharding" else f"{self.release.name}-{part}-configmap"
        data = self.get("ConfigMap", name)["data"]
        data[next(iter(data))] = content

    def add(self, *objects: Obj) -> None:
        """Add objects."""
        self.objects += objects

    def remove(self, kind: str, name: str) -> None:
        """Remove an object."""
        self.objects.remove(self.get(kind, name))

    def pages(self, kind: Resource, namespace: str = "", **query: str) -> Iterator[list[Obj]]:
        """Yield the objects of a kind in two pages, without their kinds, as lists come."""
        if kind.plural in self.forbidden:
            raise ApiProblem(403, "Forbidden", f"{kind.label} is forbidden")
        found = [
            {key: value for key, value in one.items() if key not in ("apiVersion", "kind")}
            for one in self.objects
            if one["kind"] == kind.kind and one["apiVersion"] == kind.api_version
            if not namespace or one["metadata"].get("namespace") == namespace
        ]
        half = len(found) // 2
        yield found[:half]
        yield found[half:]

    def check(self) -> Report:
        """Return what the check finds."""
        return look(self, self.release.namespace, judge_flag)


def found_in(report: Report) -> set[tuple[str, str, str]]:
    """Return kind and name of the objects with findings, and the rules."""
    return {(one.ref.kind, one.ref.name, one.rule) for one in report.findings}
