"""Help texts, made from the table of commands, with the headings of kubectl and Volcano's vcctl."""

from collections.abc import Sequence
from typing import Final

from volcano_py.cli.vcctl.commands import SERVER
from volcano_py.cli.vcctl.flags import SWITCH, Command, Flag
from volcano_py.cli.vcctl.texts import wrapped

_WIDEST: Final = 100
_NARROWEST: Final = 20
"""A text beside a name gets at least this much room."""


def help_text(program: str, command: Command, table: Sequence[Command], width: int = _WIDEST) -> str:
    """Return the help of a command or of a group, for a terminal of some width."""
    width = min(width, _WIDEST)
    path = " ".join((program, *command.path[1:]))
    lines = [*wrapped(f"{command.help[0].upper()}{command.help[1:]}.", width, long_words=False), ""]
    if not command.run:
        inner = [one for one in table if one.path[:-1] == command.path]
        lines += ["Usage:", f"  {path} [command]", "", "Available Commands:"]
        lines += _columns([(one.path[-1], one.help) for one in inner], width)
        lines += ["", "Examples:", f"  {_as(program, _example(command, table))}", ""]
        more = f'Use "{path} [command] --help" for more information about a command.'
        return "\n".join([*lines, *wrapped(more, width, long_words=False)]) + "\n"
    argument = f" [{command.argument.upper()}]" if command.argument else ""
    lines += ["Usage:", f"  {path}{argument}{' [flags]' if command.flags else ''}", ""]
    lines += ["Examples:", f"  {_as(program, command.example)}"]
    own = [flag for flag in command.flags if flag not in SERVER]
    if own:
        lines += ["", "Flags:", *_columns([(_written(flag), _meaning(flag)) for flag in own], width)]
    if len(own) < len(command.flags):
        lines += ["", "Server:", *_columns([(_written(flag), _meaning(flag)) for flag in SERVER], width)]
    if command.argument:
        lines += ["", f"{command.argument.upper()} is short for --{command.argument} {command.argument.upper()}."]
    return "\n".join(lines) + "\n"


def _example(command: Command, table: Sequence[Command]) -> str:
    return next(one.example for one in table if one.run and one.path[: len(command.path)] == command.path)


def _as(program: str, example: str) -> str:
    """Return an example as the user calls the program."""
    return example.replace("vcctl ", f"{program} ") if program == "kubectl vc" else example


def _written(flag: Flag) -> str:
    short = f"-{flag.short}, " if flag.short else "    "
    return f"{short}--{flag.name}{'' if flag.kind == SWITCH else f' {flag.name.upper()}'}"


def _meaning(flag: Flag) -> str:
    choices = f" ({', '.join(flag.choices)})" if flag.choices and flag.choices[0] not in flag.help else ""
    default = f" (default {flag.default})" if flag.default else ""
    return f"{flag.help}{choices}{default}"


def _columns(rows: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Return two columns; a text that is too long goes on in the next line."""
    left = max(len(one) for one, _ in rows) + 4
    width = max(width, left + _NARROWEST)
    return [
        line
        for one, text in rows
        for line in wrapped(text, width, first=f"  {one}".ljust(left), others=" " * left, long_words=False)
    ]
