"""What a sabotage is: one small plausible mistake in one file, as data."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

from tests.simulation.plan import Plan, Strike


class NotApplicable(Exception):
    """The text that a sabotage replaces is not in its file exactly once: the code has changed."""


@dataclass(frozen=True, slots=True)
class Sabotage:
    """One mistake that a colleague could make."""

    name: str
    file: str
    """Relative to the root of the project."""
    old: str
    new: str
    harm: str
    """What a user suffers."""
    found_by: tuple[str, ...]
    """The invariants that should find it, by name."""
    likely: tuple[str, ...] = ()
    """What a plan should have so that it may be found: patterns of "<fault> <target>", "work <kind>", "conf <name>",
    "command <action>" or "order <action>", several of them separated by "|". Seeds whose plans match most of them are
    tried first.
    """

    def apply(self, text: str) -> str:
        """Return the sabotaged text of the file."""
        if text.count(self.old) != 1:
            raise NotApplicable(f"{self.name}: {text.count(self.old)} times in {self.file}: {self.old!r}")
        return text.replace(self.old, self.new)

    def apply_in(self, root: Path) -> None:
        """Sabotage the file in a copy of the project."""
        path = root / self.file
        path.write_text(self.apply(path.read_text()))

    def rank(self, plan: Plan) -> tuple[float, ...]:
        """Return a sort key of plans: those first that match most patterns, by faults that meet and last long."""
        others = [*(f"work {work.kind}" for work in plan.work), f"conf {plan.conf}"]
        others += [f"command {action}" for work in plan.work for _, action in work.commands]
        others += [f"order {order.action}" for order in plan.orders]
        unmatched = 0
        faults: list[list[Strike]] = []
        for pattern in self.likely:
            struck = [strike for strike in plan.strikes if _matches(pattern, (f"{strike.kind} {strike.target}",))]
            if struck:
                faults.append(struck)
            elif not _matches(pattern, others):
                unmatched += 1
        apart = min((_apart(meeting) for meeting in product(*faults)), default=0.0)
        lasts = max((strike.lasts_s for struck in faults for strike in struck), default=0.0)
        return unmatched, apart, -lasts


def _apart(strikes: Sequence[Strike]) -> float:
    """Return the seconds between the end of the first of some faults and the beginning of the last one, or 0."""
    if len(strikes) < 2:
        return 0.0
    return max(0.0, max(each.at for each in strikes) - min(each.at + each.lasts_s for each in strikes))


def _matches(patterns: str, texts: Iterable[str]) -> bool:
    return any(fnmatchcase(text.strip(), pattern) for text in texts for pattern in patterns.split("|"))
