"""The list of rows that are not met yet, with the reason of each: exclusions.yaml."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.conformance.row_files import Row

OWN_LIST: Final = Path(__file__).parent / "exclusions.yaml"


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Reasons by area (with everything below it) and by id of a row (with its twins)."""

    areas: dict[str, str]
    ids: dict[str, str]

    def marks(self, row: Row) -> list[pytest.MarkDecorator]:
        """Return how a row is marked: skipped, expected to fail without being run, expected to fail, or not at all."""
        if row.ignore:
            return [pytest.mark.skip(reason=f"the row is useless: {row.ignore}")]
        reason = self.area_reason(row.area)
        if reason:
            return [pytest.mark.xfail(run=False, reason=reason)]
        reason = self.ids.get(row.original, "")
        return [pytest.mark.xfail(strict=True, reason=reason)] if reason else []

    def area_reason(self, area: str) -> str:
        """Return why an area has no handlers yet, "" if it should have."""
        while area:
            if area in self.areas:
                return self.areas[area]
            area = area.rpartition("/")[0]
        return ""


def read_exclusions(path: Path = OWN_LIST) -> Exclusions:
    """Read the list; raise ValueError if an entry has no reason, or if something is excluded twice."""
    found = Exclusions({}, {})
    for entry in yaml.safe_load(path.read_text(encoding="utf-8")) or []:
        if not entry.get("reason") or not entry.keys() <= {"reason", "areas", "ids"}:
            raise ValueError(f"{path}: an entry has a reason and areas or ids, not {entry}")
        for names, reasons in ((entry.get("areas", ()), found.areas), (entry.get("ids", ()), found.ids)):
            _enter(path, names, reasons, entry["reason"])
    return found


def _enter(path: Path, names: Any, reasons: dict[str, str], reason: str) -> None:
    for name in names:
        if name in reasons:
            raise ValueError(f"{path}: {name} is excluded twice")
        reasons[name] = reason
