"""What the server serves: one `Resource` per group and plural, and the table that finds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.selectors import FieldGetter, path_getter
from volcano_py.apiserver.store import type_prefix

if TYPE_CHECKING:
    from volcano_py.apiserver.kinds.generic import Strategy

META_FIELDS: Mapping[str, FieldGetter] = {
    "metadata.name": path_getter("metadata.name"),
    "metadata.namespace": path_getter("metadata.namespace"),
}
"""Fields by which every resource can be selected."""


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Paths of a kind's desired replicas, current replicas and selector."""

    wanted: str = ".spec.replicas"
    current: str = ".status.replicas"
    selector: str = ""


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """One version of a resource as it is served."""

    name: str
    api_version: str
    prefix: bytes
    subresources: frozenset[str] = frozenset()
    printer_columns: tuple[Obj, ...] = ()
    scale: ScalePaths | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    """One kind of object: its names, its versions and the rules of its writes."""

    group: str
    plural: str
    kind: str
    namespaced: bool
    storage: ServedVersion
    versions: Mapping[str, ServedVersion]
    strategy: Strategy
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    fields: Mapping[str, FieldGetter] = field(default_factory=lambda: META_FIELDS)
    custom: bool = False
    """Served from a CustomResourceDefinition: strict about kind, versions and resourceVersion."""

    @property
    def collection(self) -> str:
        """Name of the collection and, in messages, of the resource: `queues.scheduling...`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


def served_version(
    group: str,
    version: str,
    kind: str,
    subresources: frozenset[str],
    printer_columns: tuple[Obj, ...] = (),
    scale: ScalePaths | None = None,
) -> ServedVersion:
    """Describe one served version."""
    api_version = f"{group}/{version}" if group else version
    return ServedVersion(version, api_version, type_prefix(api_version, kind), subresources, printer_columns, scale)


def built_in(
    group_version: str,
    plural: str,
    kind: str,
    strategy: Strategy,
    *,
    namespaced: bool = True,
    short_names: tuple[str, ...] = (),
    subresources: tuple[str, ...] = (),
    fields: Mapping[str, FieldGetter] = MappingProxyType({}),
    categories: tuple[str, ...] = (),
) -> Resource:
    """Describe a resource of Kubernetes itself, served in one version."""
    group, _, version = group_version.rpartition("/")
    scale = ScalePaths(selector=".spec.selector") if "scale" in subresources else None
    served = served_version(group, version, kind, frozenset(subresources), scale=scale)
    return Resource(
        group=group,
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        storage=served,
        versions={version: served},
        strategy=strategy,
        singular=kind.lower(),
        list_kind=f"{kind}List",
        short_names=short_names,
        categories=categories,
        fields={**META_FIELDS, **fields},
    )


class ResourceTable:
    """Every resource served now; custom resources come and go."""

    def __init__(self, resources: tuple[Resource, ...] = ()) -> None:
        self._by_path: dict[tuple[str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str], Resource] = {}
        for resource in resources:
            self.add(resource)

    def __iter__(self) -> Iterator[Resource]:
        return iter(tuple(self._by_path.values()))

    def add(self, resource: Resource) -> None:
        """Serve a resource; a resource served already gets the new description."""
        self._by_path[(resource.group, resource.plural)] = resource
        self._by_kind[(resource.group, resource.kind)] = resource

    def remove(self, group: str, plural: str) -> Resource | None:
        """Stop serving a resource."""
        resource = self._by_path.pop((group, plural), None)
        if resource is not None:
            self._by_kind.pop((group, resource.kind), None)
        return resource

    def find(self, group: str, plural: str) -> Resource | None:
        """By group and plural."""
        return self._by_path.get((group, plural))

    def named(self, name: str) -> Resource:
        """By collection name: `pods`, `podgroups.scheduling.volcano.sh`."""
        plural, _, group = name.partition(".")
        resource = self.find(group, plural)
        if resource is None:
            raise LookupError(f"resource {name} is not served here; create its CustomResourceDefinition first")
        return resource

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """By apiVersion (any served version of the group) and kind."""
        return self._by_kind.get((api_version.rpartition("/")[0], kind))

    def groups(self) -> dict[str, list[Resource]]:
        """Resources by group, in the order in which they were added."""
        groups: dict[str, list[Resource]] = {}
        for resource in self._by_path.values():
            groups.setdefault(resource.group, []).append(resource)
        return groups
