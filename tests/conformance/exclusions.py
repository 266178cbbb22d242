"""The list of rows that fail for now, each with a reason: exclusions.yaml."""

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.conformance.row_files import Case, Row

OWN_LIST: Final = Path(__file__).parent / "exclusions.yaml"


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Reasons by area (and all areas below it) and by row id (and its twins), and keys that are not compared."""

    areas: dict[str, str]
    ids: dict[str, str]
    keys: dict[str, frozenset[str]] = field(default_factory=dict)  # pattern of ids -> keys that are not compared

    def marks(self, row: Row) -> list[pytest.MarkDecorator]:
        """Return the marks of a row: skipped, expected to fail without being run, expected to fail, or none."""
        if row.ignore:
            return [pytest.mark.skip(reason=f"the row is useless: {row.ignore}")]
        reason = self.area_reason(row.area)
        if reason:
            return [pytest.mark.xfail(run=False, reason=reason)]
        reason = self.ids.get(row.original, "")
        return [pytest.mark.xfail(strict=True, reason=reason)] if reason else []

    def compared(self, row: Row) -> Case:
        """Return the row without the expectations that are not compared."""
        left_out = {key for pattern, keys in self.keys.items() if fnmatchcase(row.original, pattern) for key in keys}
        return replace(row.case, expect={key: row.case.expect[key] for key in row.case.expect if key not in left_out})

    def area_reason(self, area: str) -> str:
        """Return why an area has no handlers yet; "" if it must have them."""
        while area:
            if area in self.areas:
                return self.areas[area]
            area = area.rpartition("/")[0]
        return ""


def read_exclusions(path: Path = OWN_LIST) -> Exclusions:
    """Read the list; raise ValueError if an entry has no reason, or if something is excluded twice."""
    found = Exclusions({}, {})
    for entry in yaml.safe_load(path.read_text(encoding="utf-8")) or []:
        if not entry.get("reason") or not entry.keys() <= {"reason", "areas", "ids", "keys"}:
            raise ValueError(f"{path}: an entry has a reason and areas or ids, perhaps with keys, not {entry}")
        if "keys" in entry:
            _enter_keys(path, entry, found.keys)
            continue
        for names, reasons in ((entry.get("areas", ()), found.areas), (entry.get("ids", ()), found.ids)):
            _enter(path, names, reasons, entry["reason"])
    return found


def _enter_keys(path: Path, entry: dict[str, Any], keys: dict[str, frozenset[str]]) -> None:
    if not entry.get("ids") or "areas" in entry:
        raise ValueError(f"{path}: an entry with keys has ids and no areas, not {entry}")
    for pattern in entry["ids"]:
        if pattern in keys:
            raise ValueError(f"{path}: {pattern} is excluded twice")
        keys[pattern] = frozenset(entry["keys"])


def _enter(path: Path, names: Any, reasons: dict[str, str], reason: str) -> None:
    for name in names:
        if name in reasons:
            raise ValueError(f"{path}: {name} is excluded twice")
        reasons[name] = reason
