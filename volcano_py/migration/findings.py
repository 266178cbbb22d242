"""What was found: one finding per object and rule, and the report that collects them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

Obj = dict[str, Any]
"""An object as JSON brings it."""


class Group(Enum):
    """How much a finding matters; the order is that of the report."""

    BLOCKS = "blocks"
    DIFFERS = "differs"
    MISSING = "missing"
    REPLACED = "replaced"


class Ref(NamedTuple):
    """An object of the cluster."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        """Return for instance ``Queue ml`` or ``Job team/train``."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


class Finding(NamedTuple):
    """One thing that an operator should know before the switch."""

    group: Group
    rule: str
    """A fixed word for programs, such as ``plugin-missing``."""
    ref: Ref
    what: str
    advice: str


@dataclass(slots=True)
class Report:
    """All that a check found."""

    findings: list[Finding] = field(default_factory=list)
    looked_at: list[Ref] = field(default_factory=list)
    not_looked_at: list[str] = field(default_factory=list)
    """Each is a kind and the reason, as one text."""
    notes: list[str] = field(default_factory=list)
    """What matters in every cluster, whatever its settings."""

    def judged(self, ref: Ref, found: Iterable[Finding]) -> None:
        """Note an object and what was found about it; the same finding counts once."""
        self.looked_at.append(ref)
        self.findings += dict.fromkeys(one._replace(what=_in_one_line(one.what)) for one in found)

    def sorted(self) -> list[Finding]:
        """Return the findings in the order of the report."""
        order = {group: place for place, group in enumerate(Group)}
        return sorted(self.findings, key=lambda one: (order[one.group], one.ref.kind, one.ref, one.rule, one.what))

    def counts(self) -> Counter[Group]:
        """Return how many findings each group has."""
        return Counter(one.group for one in self.findings)

    def same(self) -> list[Ref]:
        """Return the objects about which nothing was found."""
        found = {one.ref for one in self.findings}
        return sorted({ref for ref in self.looked_at if ref not in found})


def _in_one_line(what: str) -> str:
    """Return a text without line ends and control characters: names in it may come from anybody."""
    return what if what.isprintable() else " ".join("".join(c if c.isprintable() else " " for c in what).split())


def ref_of(obj: Obj, kind: str = "") -> Ref:
    """Return the name of an object."""
    metadata = obj.get("metadata") or {}
    return Ref(kind or str(obj.get("kind", "")), str(metadata.get("name", "")), str(metadata.get("namespace") or ""))


def at(obj: Any, *path: str) -> Any:
    """Return what is at a path of an object, None if there is nothing."""
    for key in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(key)
    return obj


def mapping(obj: Any, *path: str) -> Obj:
    """Return the mapping at a path of an object, an empty one if there is none."""
    found = at(obj, *path)
    return found if isinstance(found, dict) else {}


def sequence(obj: Any, *path: str) -> list[Any]:
    """Return the list at a path of an object, an empty one if there is none."""
    found = at(obj, *path)
    return found if isinstance(found, list) else []


def text(obj: Any, *path: str) -> str:
    """Return the text at a path of an object, "" if there is none."""
    found = at(obj, *path)
    return found if isinstance(found, str) else ""


def shortened(value: Any, longest: int = 60) -> str:
    """Return a value as one line of limited length."""
    shown = " ".join(str(value).split())
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
