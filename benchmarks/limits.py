"""Limits on measured numbers; the YAML of each workload states them."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Line:
    """A measured number and its limit."""

    what: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def used(self) -> float:
        """The used share of the limit: 1 just meets it, more misses it."""
        if self.at_least:
            return self.limit / self.value if self.value else float("inf")
        return self.value / self.limit

    @property
    def met(self) -> bool:
        """Whether the limit is met."""
        return self.used <= 1

    def as_json(self) -> dict[str, Any]:
        """Return the fields for the stored result."""
        return {**asdict(self), "used": round(self.used, 3), "met": self.met}


def lines(limits: list[dict[str, Any]], rows: list[dict[str, Any]]) -> list[Line]:
    """Return a line for every limit with a matching row.

    A limit names a column (``of``, with dots into nested ones), the row (``where`` its columns have these values), and
    ``at_most`` or ``at_least``. Raises ValueError for a limit that several rows match.
    """
    found = []
    for limit in limits:
        wanted = limit.get("where", {})
        answers = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
        if len(answers) > 1:
            raise ValueError(f"limit {limit['what']!r}: {len(answers)} rows match its `where`: name more columns there")
        if answers:
            at_least = "at_least" in limit
            bound = float(limit["at_least" if at_least else "at_most"])
            found.append(Line(limit["what"], float(_at(answers[0], limit["of"])), bound, at_least))
    return found


def _at(row: dict[str, Any], path: str) -> Any:
    value: Any = row
    for step in path.split("."):
        value = value[step]
    return value
