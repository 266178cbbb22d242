"""Commands of a program, such as ``up`` in `volcano-py up`: each is a module and a line in the program's table."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast


class CommandModule(Protocol):
    """The interface of a command's module."""

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        """Declare the flags of the command."""

    def run(self, flags: argparse.Namespace) -> int:
        """Run the command; return the exit code."""


@dataclass(frozen=True, slots=True)
class Command:
    """One line of a program's table."""

    name: str
    module: str
    """Its module, see `CommandModule`; it is imported only if the command line names the command."""
    help: str


def run_command(parser: argparse.ArgumentParser, commands: Iterable[Command], arguments: Sequence[str]) -> int:
    """Run the command that the command line names; return its exit code. Raises SystemExit as argparse does."""
    choices = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in commands:
        one = choices.add_parser(
            command.name, help=command.help, description=f"{command.help[0].upper()}{command.help[1:]}."
        )
        if command.name in arguments:  # a value that equals a command name costs a needless import
            module = cast(CommandModule, import_module(command.module))
            module.add_flags(one)
            one.set_defaults(run=module.run)
    flags = parser.parse_args(arguments)
    code: int = flags.run(flags)
    return code
