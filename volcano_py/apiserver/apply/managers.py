"""Field managers: the entries of `metadata.managedFields`, and conflicts between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from volcano_py.apiserver.apply.fieldsets import FieldSet, Path, path_text, read_fields, write_fields
from volcano_py.apiserver.objects import Obj, timestamp
from volcano_py.apiserver.status import StatusError

APPLY, UPDATE = "Apply", "Update"
BEFORE_FIRST_APPLY = "before-first-apply"


@dataclass(frozen=True, slots=True)
class Manager:
    """One owner and what it owns."""

    name: str
    operation: str
    api_version: str
    subresource: str
    fields: FieldSet
    time: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """The key of a manager: an applier is one manager for all versions, an updater is one per version."""
        version = self.api_version if self.operation == UPDATE else ""
        return (self.name, self.operation, version, self.subresource)

    def losing(self, fields: Iterable[Path]) -> Manager:
        """The same manager without some fields."""
        return replace(self, fields=self.fields.difference(fields))

    def to_entry(self) -> Obj:
        """The entry in managedFields."""
        entry: Obj = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "time": self.time or timestamp(),
            "fieldsType": "FieldsV1",
            "fieldsV1": write_fields(self.fields),
        }
        if self.subresource:
            entry["subresource"] = self.subresource
        return entry

    def __str__(self) -> str:
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


def read_managers(entries: Any) -> list[Manager]:
    """The managers of an object; unreadable entries are dropped, as on a real server."""
    rows = entries if isinstance(entries, list) else []
    return [
        Manager(
            str(entry.get("manager", "")),
            entry["operation"],
            str(entry.get("apiVersion", "")),
            str(entry.get("subresource", "")),
            read_fields(entry.get("fieldsV1")),
            str(entry.get("time", "")),
        )
        for entry in rows
        if isinstance(entry, dict) and entry.get("operation") in (APPLY, UPDATE)
    ]


def write_managers(managers: Iterable[Manager]) -> list[Obj]:
    """The managedFields of an object; appliers first, managers that own nothing left out."""
    kept = [manager for manager in managers if manager.fields]
    kept.sort(key=lambda manager: (manager.operation, manager.time or timestamp(), manager.identity))
    return [manager.to_entry() for manager in kept]


def conflict_error(conflicts: list[tuple[Manager, list[Path]]]) -> StatusError:
    """409: others own fields that an apply would change."""
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path_text(path)}
        for manager, paths in conflicts
        for path in paths
    ]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        lines = []
        for manager, paths in conflicts:
            lines.append(f"conflicts with {manager}:")
            lines.extend(f"- {path_text(path)}" for path in paths)
        message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
    return StatusError(409, "Conflict", message, {"causes": causes})
