"""Compare what two versions printed about one case, and say where they part first."""

import json
from dataclasses import dataclass
from typing import Any

from benchmarks.equal_decisions.draw import Json

TEXTS = frozenset({"message", "text", "warnings"})
"""Fields that people read; they may change while decisions do not."""
_NAMED_TEXTS = frozenset({"queue_problems"})  # texts by name: the names count
_LISTED_TEXTS = frozenset({"failures"})  # how many there are counts


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place at which two versions part."""

    seed: int
    cycle: int | None  # None: not in a cycle
    where: str
    old: Any
    new: Any

    def __str__(self) -> str:
        """Return it as people read it."""
        cycle = "" if self.cycle is None else f", cycle {self.cycle}"
        shown = (json.dumps(one, sort_keys=True) for one in (self.old, self.new))
        old, new = (one if len(one) < 2000 else f"{one[:2000]}... ({len(one)} characters)" for one in shown)
        return f"seed {self.seed}{cycle}, {self.where}\n  old: {old}\n  new: {new}"


def first_difference(old: str, new: str, *, texts: bool = True) -> Difference | None:
    """Return where two lines part first, None if they say the same; without ``texts`` as far as it is no text."""
    if old == new:
        return None
    left, right = (json.loads(line) for line in (old, new))
    if not texts:
        left, right = without_texts(left), without_texts(right)
    seed = left["seed"]
    for cycle, (one, other) in enumerate(zip(left["cycles"], right["cycles"], strict=False), 1):
        for part in ("decisions", "answers", "raised", "report"):
            found = _parting(one.get(part), other.get(part), part)
            if found is not None:
                return Difference(seed, cycle, *found)
    found = _parting(left, right, "case")
    return None if found is None else Difference(seed, None, *found)


def without_texts(value: Any) -> Any:
    """Return a value without what people read."""
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


def _parting(old: Any, new: Any, where: str) -> tuple[str, Any, Any] | None:
    """Return the path to the first difference and what stands there; a decision is shown as a whole."""
    if old == new:
        return None
    if isinstance(old, list) and isinstance(new, list):
        for number, (one, other) in enumerate(zip(old, new, strict=False)):
            if one != other:
                return _parting(one, other, f"{where}[{number}]")
        more, what = (old, "new has no more") if len(old) > len(new) else (new, "old has no more")
        rest = more[min(len(old), len(new))]
        return f"{where}: {what}", *((rest, None) if more is old else (None, rest))
    if isinstance(old, dict) and isinstance(new, dict) and ("is" not in old or old["is"].endswith("Report")):
        key = next(key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key))
        return _parting(old.get(key), new.get(key), f"{where}.{key}")
    return where, old, new
