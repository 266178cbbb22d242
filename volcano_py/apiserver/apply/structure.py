"""How values merge: which lists are keyed or sets, which objects are replaced as a whole.

Custom resources say so in their schema. For built-in kinds it follows from the names of fields, by tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from volcano_py.apiserver.crds.custom import CustomStrategy
from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.resources import Resource

ListKind = Literal["map", "set", "atomic"]

_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
    "conditions": ("type",),
    "addresses": ("type",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "hostIPs": ("ip",),
    "secrets": ("name",),
    "webhooks": ("name",),
}
_PORT_KEYS = {"containers": ("containerPort", "protocol"), "initContainers": ("containerPort", "protocol")}
_SERVICE_PORTS = ("port", "protocol")
_SETS = frozenset({"finalizers"})
_ATOMIC = frozenset(
    {
        "selector",
        "labelSelector",
        "namespaceSelector",
        "objectSelector",
        "nodeSelector",
        "nodeSelectorTerms",
        "roleRef",
        "fieldRef",
        "resourceFieldRef",
        "configMapKeyRef",
        "secretKeyRef",
        "secretRef",
        "involvedObject",
        "claimRef",
        "openAPIV3Schema",
    }
)
KEY_DEFAULTS = {"protocol": "TCP"}
"""Keys of list items that may be left out."""


class Structure(Protocol):
    """How one value merges."""

    @property
    def atomic(self) -> bool:
        """An object here is replaced as a whole."""

    @property
    def list_kind(self) -> ListKind:
        """How a list here merges."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The fields that tell items of a keyed list apart."""

    def child(self, name: str) -> Structure:
        """How a field of an object here merges."""

    @property
    def item(self) -> Structure:
        """How the items of a list here merge."""


@dataclass(frozen=True, slots=True)
class Named:
    """A field of a built-in kind, known by its own name and the one above it."""

    name: str = ""
    parent: str = ""

    @property
    def atomic(self) -> bool:
        """By the table of atomic objects."""
        return self.name in _ATOMIC

    @property
    def keys(self) -> tuple[str, ...]:
        """By the table of keyed lists."""
        if self.name == "ports":
            return _PORT_KEYS.get(self.parent, _SERVICE_PORTS)
        return _KEYS.get(self.name, ())

    @property
    def list_kind(self) -> ListKind:
        """By the tables of keyed lists and sets."""
        if self.name in _SETS:
            return "set"
        return "map" if self.keys else "atomic"

    def child(self, name: str) -> Structure:
        """One level down."""
        return Named(name, self.name)

    @property
    def item(self) -> Structure:
        """An item is known by the name of its list."""
        return self


@dataclass(frozen=True, slots=True)
class Described:
    """A field of a custom resource, described by its schema."""

    schema: Obj
    root: bool = False

    @property
    def atomic(self) -> bool:
        """As `x-kubernetes-map-type` says."""
        return self.schema.get("x-kubernetes-map-type") == "atomic"

    @property
    def keys(self) -> tuple[str, ...]:
        """As `x-kubernetes-list-map-keys` says."""
        return tuple(self.schema.get("x-kubernetes-list-map-keys") or ())

    @property
    def list_kind(self) -> ListKind:
        """As `x-kubernetes-list-type` says; atomic where it says nothing."""
        kind = self.schema.get("x-kubernetes-list-type")
        if kind == "map" and self.keys:
            return "map"
        return "set" if kind == "set" else "atomic"

    def child(self, name: str) -> Structure:
        """The schema of a property, or of any property."""
        if self.root and name == "metadata":
            return Named("metadata")
        properties, additional = self.schema.get("properties") or {}, self.schema.get("additionalProperties")
        found = properties.get(name, additional)
        return Described(found if isinstance(found, dict) else {})

    @property
    def item(self) -> Structure:
        """The schema of the items."""
        found = self.schema.get("items")
        return Described(found if isinstance(found, dict) else {})


def structure_of(resource: Resource, version: str) -> Structure:
    """How objects of a resource merge."""
    strategy = resource.strategy
    if isinstance(strategy, CustomStrategy):
        return Described(strategy.rules[version].schema, root=True)
    return Named()
