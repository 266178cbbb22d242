"""Finds the command that the first words of a line name."""

from collections.abc import Sequence
from typing import Final

from volcano_py.cli.vcctl import commands
from volcano_py.cli.vcctl.flags import SWITCH, Command, find_flag

HELP: Final = ("-h", "--help")


def table(program: str) -> tuple[Command, ...]:
    """Return the commands of a program."""
    alone = commands.ALONE.get(program)
    return (alone,) if alone else commands.VCCTL


def find(program: str, words: Sequence[str]) -> tuple[Command | None, list[str]]:
    """Return the command that words name, and its flags and arguments.

    Flags may stand before the command, as in kubectl: `vcctl -n team-a job list`. If a word names no command, return
    None and the words without the flags that stand before it.
    """
    known = table(program)
    command, left, before = known[0], list(words), list[str]()
    while left and not command.run:
        if left[0] == "help":
            left = [*left[1:], "--help"]
            continue
        if left[0] in HELP:
            before, left = [*before, left[0]], left[1:]
            continue
        if left[0].startswith("-"):
            if not known_below(program, command, left[0]):
                break
            takes = 2 if _needs_value(known, command, left) else 1
            before, left = before + left[:takes], left[takes:]
            continue
        deeper = next((one for one in known if one.path == (*command.path, left[0])), None)
        if deeper is None:
            return None, [*command.path[1:], *left]
        command, left = deeper, left[1:]
    return command, before + left


def known_below(program: str, group: Command, word: str) -> bool:
    """Say whether a command of a group knows a flag."""
    return word in HELP or any(one.run and _knows(one, word) for one in _below(table(program), group))


def _below(known: Sequence[Command], group: Command) -> list[Command]:
    return [one for one in known if one.path[: len(group.path)] == group.path]


def _knows(command: Command, word: str) -> bool:
    return find_flag(command, word) is not None


def _needs_value(known: Sequence[Command], group: Command, left: Sequence[str]) -> bool:
    """Say whether the word behind a flag is its value: for all commands that it may belong to, or if it names none."""
    word = left[0]
    if "=" in word or (not word.startswith("--") and len(word) > 2):
        return False
    kinds = {flag.kind == SWITCH for one in _below(known, group) if (flag := find_flag(one, word)) is not None}
    names_a_command = len(left) > 1 and any(one.path == (*group.path, left[1]) for one in known)
    return kinds == {False} or (False in kinds and not names_a_command)
