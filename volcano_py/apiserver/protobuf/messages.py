"""Which fields Kubernetes' objects have: the table that `messages.yaml` holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from volcano_py.apiserver.objects import Obj

_YAML: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_INLINE, _METADATA = "-", "meta/v1.ObjectMeta"
_PACKAGES: Mapping[str, str] = {
    "": "core",
    "rbac.authorization.k8s.io": "rbac",
    "scheduling.k8s.io": "scheduling",
    "storage.k8s.io": "storage",
    "coordination.k8s.io": "coordination",
    "admissionregistration.k8s.io": "admissionregistration",
}
"""API groups whose Go package has another name."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message; the name of one that is inline is "-"."""

    name: str
    type: str
    repeated: bool = False
    keyed: bool = False
    optional: bool = False
    """Zero and absent differ."""


@cache
def messages() -> Mapping[str, Mapping[int, Field]]:
    """Return the fields of every message by their numbers on the wire."""
    table: dict[str, list[str]] = yaml.load(Path(__file__).with_name("messages.yaml").read_text(), Loader=_YAML)
    return {name: dict(map(_field, rows)) for name, rows in table.items()}


def _field(row: str) -> tuple[int, Field]:
    number, name, kind = row.split(" ")
    plain = kind.lstrip("?[]{}")
    return int(number), Field(name, plain, "[]" in kind, "{}" in kind, kind.startswith("?"))


def message_of(api_version: str, kind: str) -> str:
    """Return the name of the message that a kind of objects is; it need not be in the table."""
    group, _, version = api_version.rpartition("/")
    return f"{_PACKAGES.get(group, group)}/{version}.{kind}"


def drop_unknown(obj: Obj, message: str) -> list[str]:
    """Remove fields that a message does not have from an object, and return their paths; none if nobody knows it."""
    dropped: list[str] = []
    if message in messages():
        _drop(obj, message, "", dropped)
    return dropped


class _Inner(NamedTuple):
    message: str  # "" where a field is no message
    keyed: bool


@cache
def _by_name(message: str) -> Mapping[str, _Inner]:
    """Return the fields of a message by name, with those of inline messages."""
    found: dict[str, _Inner] = {}
    for field in messages()[message].values():
        if field.name == _INLINE:
            found.update(_by_name(field.type))
        else:
            found[field.name] = _Inner(field.type if field.type in messages() else "", field.keyed)
        if field.type == _METADATA:  # what has metadata may say what it is, which the wire says apart from it
            found["kind"] = found["apiVersion"] = _Inner("", False)
    return found


def _drop(value: Any, message: str, path: str, dropped: list[str]) -> None:
    if type(value) is not dict:
        return  # of another type than it should be, which is asked elsewhere
    known = _by_name(message)
    foreign: list[str] = []
    for name, item in value.items():
        inner = known.get(name)
        if inner is None:
            foreign.append(name)
            dropped.append(path + name)
        elif inner.message and item:
            for place, part in _parts(item, inner.keyed):
                _drop(part, inner.message, f"{path}{name}{place}.", dropped)
    for name in foreign:
        del value[name]


def _parts(item: Any, keyed: bool) -> Iterable[tuple[str, Any]]:
    """Return the messages in the value of a field, and how their places are written."""
    if type(item) is list:
        return ((f"[{index}]", part) for index, part in enumerate(item))
    if keyed and type(item) is dict:
        return ((f".{key}", part) for key, part in item.items())
    return (("", item),)
