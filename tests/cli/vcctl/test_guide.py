"""The guide names every command and nothing else."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from volcano_py.cli.vcctl.commands import ALONE, VCCTL
from volcano_py.cli.vcctl.finding import find
from volcano_py.cli.vcctl.flags import read_flags

GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "vcctl.md").read_text()
TABLE = GUIDE.partition("## Commands")[2].partition("## Which cluster")[0]
LINES = re.findall(r"^\$ (v\w+ .*?)(?: +#.*)?$", GUIDE, re.M)


@pytest.mark.parametrize("command", [one for one in VCCTL if one.run], ids=lambda command: " ".join(command.path))
def test_every_command_has_its_row(command: object) -> None:
    program, *path = command.path  # type: ignore[attr-defined]
    rows = [line for line in TABLE.splitlines() if f"`{program} {path[0]}" in line]
    assert any(re.search(rf"\b{path[-1]}\b", row) for row in rows), path


@pytest.mark.parametrize("program", ALONE)
def test_every_program_has_its_row(program: str) -> None:
    assert f"`{program}`" in TABLE


@pytest.mark.parametrize("line", LINES)
def test_every_line_to_type_is_understood(line: str) -> None:
    words = shlex.split(line.partition(" | ")[0])
    command, rest = find(words[0], words[1:])
    assert command is not None
    assert command.run
    read_flags(command, rest)
