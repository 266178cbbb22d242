"""What a process exposes at `/metrics`, by the names that Prometheus stores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

Labels = frozenset[tuple[str, str]]

LINE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Sample(NamedTuple):
    """One line."""

    name: str
    labels: dict[str, str]
    value: float


class Exposed:
    """One answer of `/metrics`.

    The parser of the Python library is no use here: it adds `_total` to the names of Volcano's counters.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        lines = text.splitlines()
        self.types = {line.split(" ")[2]: line.split(" ")[3] for line in lines if line.startswith("# TYPE ")}
        self.samples = [_sample(line) for line in lines if line and not line.startswith("#")]

    def values(self, name: str, **chosen: str) -> dict[Labels, float]:
        """Return the value of each series of a name with these labels, by its other labels."""
        return {
            labels({key: value for key, value in sample.labels.items() if key not in chosen}): sample.value
            for sample in self.samples
            if sample.name == name and chosen.items() <= sample.labels.items()
        }

    def by(self, label: str, name: str, **chosen: str) -> dict[str, float]:
        """Return the value of each series of a name with these labels, by the one label that it has besides."""
        return {dict(rest)[label]: value for rest, value in self.values(name, **chosen).items()}

    def one(self, name: str, **chosen: str) -> float:
        """Return the value of the only series of a name with exactly these labels."""
        return self.values(name, **chosen)[frozenset()]

    def total(self, name: str, **chosen: str) -> float:
        """Return the sum of all series of a name with these labels."""
        return sum(self.values(name, **chosen).values())


def labels(found: Mapping[str, str]) -> Labels:
    """Return labels as `Exposed.values` does."""
    return frozenset(found.items())


def _sample(line: str) -> Sample:
    found = LINE.match(line)
    assert found is not None, f"not a line of the text format: {line}"
    return Sample(found["name"], dict(LABEL.findall(found["labels"] or "")), float(found["value"]))
