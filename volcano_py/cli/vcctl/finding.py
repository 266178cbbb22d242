"""Finds the command that the first words of a line name."""

from collections.abc import Sequence

from volcano_py.cli.vcctl import commands
from volcano_py.cli.vcctl.flags import Command


def table(program: str) -> tuple[Command, ...]:
    """Return the commands of a program."""
    alone = commands.ALONE.get(program)
    return (alone,) if alone else commands.VCCTL


def find(program: str, words: Sequence[str]) -> tuple[Command | None, list[str]]:
    """Return the command that the first words name, and the words behind it; None if a word names no command."""
    known = table(program)
    command, left = known[0], list(words)
    while left and not command.run:
        if left[0] == "help":
            left = [*left[1:], "--help"]
            continue
        if left[0].startswith("-"):
            break
        deeper = next((one for one in known if one.path == (*command.path, left[0])), None)
        if deeper is None:
            return None, left
        command, left = deeper, left[1:]
    return command, left
