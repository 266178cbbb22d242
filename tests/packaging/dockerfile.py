"""A Dockerfile as data: its stages and their instructions."""

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Instruction(NamedTuple):
    """One instruction, its continued lines joined."""

    word: str
    text: str

    @property
    def sources(self) -> list[str]:
        """Return what a COPY copies."""
        return [part for part in shlex.split(self.text) if not part.startswith("--")][:-1]


@dataclass
class Stage:
    """One FROM and what follows."""

    image: str
    name: str = ""
    instructions: list[Instruction] = field(default_factory=list)

    def all(self, word: str) -> list[Instruction]:
        """Return the instructions of one kind, in order."""
        return [instruction for instruction in self.instructions if instruction.word == word]


def read_dockerfile(path: Path) -> tuple[dict[str, str], list[Stage]]:
    """Return the arguments before the first stage, and the stages."""
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    lines = [line for line in path.read_text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, text = line.strip().partition(" ")
        if word == "FROM":
            image, _, name = text.partition(" AS ")
            stages.append(Stage(image, name))
        elif not stages:
            name, _, value = text.partition("=")
            arguments[name] = value
        else:
            stages[-1].instructions.append(Instruction(word, text.strip()))
    return arguments, stages
