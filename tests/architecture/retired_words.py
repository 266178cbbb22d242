"""Refuse retired words in code and docs: `python -m tests.architecture.retired_words`, which `make words` runs.

Each word of an old dialect has one word of the field in its place; docs/glossary.md defines those. The program searches
names, comments and texts. A name counts in every spelling: `held_room`, `HeldRoom` and "held room" are the same.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SEARCHED: Final = ("volcano_py", "benchmarks", "tests", "docs", "README.md", "CHANGELOG.md")
SUFFIXES: Final = frozenset({".md", ".py", ".yaml", ".yml"})
UNSEARCHED: Final = frozenset(
    {
        "docs/glossary.md",  # names retired words in a table of its own
        "tests/architecture/retired_words.py",
        "tests/architecture/test_retired_words.py",
        "tests/framework/test_retired.py",  # proves that old names of the plugin API still work
    }
)

RETIRED: Final[Mapping[str, str]] = {
    "barred": "statically infeasible",
    "claimants?": "preemptor",
    "commitments": "pending evictions",
    "company": "inter-pod filter",
    "complaints": "throttled log (of log lines), errors (of a validation)",
    "consents?": "preemptability",
    "deciders?": "cycle runner",
    "echoes": "write deduplication",
    "evictables": "victim candidates",
    "held back": "backing off (after failed binds), delayed",
    "held room": "nominated room",
    "hopeless": "unresolvable (of pods elsewhere), failed plan classes (of plans)",
    "intakes?": "event handler",
    "lanes?": "write queue",
    "least harm": "pick one node",
    "let(?:s|ting)? in": "enqueued",
    "losers?": "victim",
    "neighbours?": "topology counts, pods elsewhere, inter-pod terms",
    "prospects?": "preemption candidate nodes",
    "setbacks?": "bind back-off",
    "sociable": "has inter-pod terms",
    "(?<!be )spared": "protected",
    "takers?": "preemptor",
    "takings": "evictions",
    "truces?": "cool-down",
    "waves?": "batch, batch preemption",
    "worksheets?": "pending tasks",
}
"""Retired word -> the word to use instead. The keys are regular expressions; a space is a space, `_`, `-` or nothing
between two parts of a CamelCase name."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """A use of a retired word that stays."""

    text: str
    """Regular expression of the allowed text; it may match any part of a line."""
    reason: str


_OLD_NAME: Final = "an old name of the plugin API, which works for one release"

ALLOWED: Final = (
    Allowed(
        r"\b_?hopeless\b|\bhopeless_now\b", "jobs for which a turn cannot change anything: the other senses are gone"
    ),
    Allowed(r"daemon\._intake\b", "an attribute at commit 6cdffff, which a simulation runs"),
    Allowed(r"volcano_py_lane_\w*", "names of metrics are part of the wire"),
    Allowed(r'[`"(.]lane[`")=]|\blane=~?"', "the label of those metrics"),
    Allowed(r"A lane is a write queue", "the operators' guide explains that label"),
    Allowed(r'"claimants?"', "a key of conformance rows"),
    Allowed(r"benchmarks[./]\S*neighbours|\bworkloads/neighbours", "a benchmark: its records are kept by its name"),
    Allowed(r'"neighbours": neighbours\.run|^    neighbours,$|--only neighbours|`neighbours`', "the same benchmark"),
    Allowed(r'[`"(.]Evictables[`")]|`evictables`|"(spared|hopeless)"|[`.(]spared`', _OLD_NAME),
    Allowed(r"`ssn\.(held_room|commitments)`", "attributes that the plugin API does not have any more"),
    Allowed(r"\bNeighbour(Filter|Order|Predicate|Scores)\b|\bneighbour_(filter|scores)\b|\"neighbours\":", _OLD_NAME),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One use of a retired word."""

    path: str
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word} -> {self.instead}"


def findings_in(path: str, text: str, allowed: Sequence[Allowed] = ALLOWED) -> Iterator[Finding]:
    """Yield the uses of retired words in one file, line by line."""
    for number, line in enumerate(text.splitlines(), 1):
        for exception in allowed:
            line = re.sub(exception.text, " ", line)
        for found in _ANY_WORD.finditer(_in_words(line)):
            yield Finding(path, number, found[0], _instead_of(found[0]))


def findings(root: Path = ROOT, searched: Sequence[str] = SEARCHED) -> Iterator[Finding]:
    """Yield the uses of retired words in every file that is searched, in order of path."""
    for path in sorted(one for name in searched for one in _files(root / name)):
        relative = path.relative_to(root).as_posix()
        if relative not in UNSEARCHED:
            yield from findings_in(relative, path.read_text(encoding="utf-8"))


def main() -> int:
    """Print every finding; the exit code is 1 if there is one."""
    found = list(findings())
    for one in found:
        print(one)
    if found:
        print(f"{len(found)} uses of retired words; a use that must stay goes into ALLOWED in {Path(__file__).name}")
    return 1 if found else 0


def _files(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
    else:
        yield from (path for path in place.rglob("*") if path.suffix in SUFFIXES and path.is_file())


def _in_words(line: str) -> str:
    """Return a line in lower case, the parts of its names apart: `_heldRoom` and `HELD_ROOM` become ` held room`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_-]", " ", line).lower()


def _instead_of(word: str) -> str:
    return next(instead for pattern, instead in RETIRED.items() if re.fullmatch(pattern, word))


_ANY_WORD: Final = re.compile(rf"\b(?:{'|'.join(RETIRED)})\b")

if __name__ == "__main__":
    sys.exit(main())
