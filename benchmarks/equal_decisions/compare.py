"""Compares the outputs of two versions for one case and finds their first difference."""

import json
from dataclasses import dataclass
from typing import Any

from benchmarks.equal_decisions.draw import Json

TEXTS = frozenset({"message", "text", "warnings"})
"""Fields with texts for people; they may change without a change of decisions."""
_NAMED_TEXTS = frozenset({"queue_problems"})  # texts by name; only the names are compared
_LISTED_TEXTS = frozenset({"failures"})  # only the number of texts is compared


@dataclass(frozen=True, slots=True)
class Difference:
    """The first difference between two versions."""

    seed: int
    cycle: int | None  # None: not in a cycle
    where: str
    old: Any
    new: Any

    def __str__(self) -> str:
        """Return a text for people."""
        cycle = "" if self.cycle is None else f", cycle {self.cycle}"
        shown = (json.dumps(one, sort_keys=True) for one in (self.old, self.new))
        old, new = (one if len(one) < 2000 else f"{one[:2000]}... ({len(one)} characters)" for one in shown)
        return f"seed {self.seed}{cycle}, {self.where}\n  old: {old}\n  new: {new}"


def first_difference(old: str, new: str, *, texts: bool = True) -> Difference | None:
    """Return the first difference of two lines, None if they are equal; without ``texts``, texts are not compared."""
    if old == new:
        return None
    left, right = (json.loads(line) for line in (old, new))
    if not texts:
        left, right = without_texts(left), without_texts(right)
    seed = left["seed"]
    for cycle, (one, other) in enumerate(zip(left["cycles"], right["cycles"], strict=False), 1):
        for part in ("decisions", "answers", "raised", "report"):
            found = _first_difference(one.get(part), other.get(part), part)
            if found is not None:
                return Difference(seed, cycle, *found)
    found = _first_difference(left, right, "case")
    return None if found is None else Difference(seed, None, *found)


def without_texts(value: Any) -> Any:
    """Return a value without its texts for people."""
    if isinstance(value, list):
        return [without_texts(one) for one in value]
    if not isinstance(value, dict):
        return value
    found: Json = {}
    for key, one in value.items():
        if key in _NAMED_TEXTS:
            found[key] = sorted(one)
        elif key in _LISTED_TEXTS:
            found[key] = len(one)
        elif key == "raised":
            found[key] = one.partition(":")[0]
        elif key not in TEXTS:
            found[key] = without_texts(one)
    return found


def _first_difference(old: Any, new: Any, where: str) -> tuple[str, Any, Any] | None:
    """Return the path of the first difference with both values; a decision is shown as a whole."""
    if old == new:
        return None
    if isinstance(old, list) and isinstance(new, list):
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            if one != other:
                return _first_difference(one, other, f"{where}[{number}]")
        more, what = (old, "new has no more") if len(old) > len(new) else (new, "old has no more")
        rest = more[min(len(old), len(new))]
        return f"{where}: {what}", *((rest, None) if more is old else (None, rest))
    if isinstance(old, dict) and isinstance(new, dict) and ("is" not in old or old["is"].endswith("Report")):
        key = next(key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key))
        return _first_difference(old.get(key), new.get(key), f"{where}.{key}")
    return where, old, new
