"""Finds the command, runs it, and turns what goes wrong into one sentence and an exit code."""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Final

from volcano_py.cli.output import abandon_output, prepare_output
from volcano_py.cli.vcctl.finding import HELP, find, known_below, table
from volcano_py.cli.vcctl.flags import Command, UsageProblem, read_flags
from volcano_py.client.problem import Problem

FAILED = 255
"""The exit code of every failure; Volcano's programs have it, too."""
_VERBS: Final = {"why": "explain", "logs": "read logs of", "wait": "wait for"}
"""What a command fails to do, if its name is no verb."""
_FOR_PROGRAMS: Final = ("json", "yaml", "name")


def start(program: str, arguments: Sequence[str] | None = None) -> int:
    """Run a program of the table; return the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    prepare_output()
    try:
        code = _run(program, words)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has seen enough (`| head`)
        abandon_output()
        return 0
    except OSError as error:  # such as a full disk; the client has its own sentences for everything else
        abandon_output()
        print(f"Failed to write the output: {error.strerror or error}", file=sys.stderr)
        return FAILED


def _run(program: str, words: list[str]) -> int:
    if words[:1] == ["__complete"]:
        from volcano_py.cli.vcctl.completion import print_candidates

        return print_candidates(program, words[1:])
    command, rest = find(program, words)
    failures = sys.stdout
    try:
        if command is None:
            raise UsageProblem(_unknown(program, rest))
        if not command.run or _wants_help(command, rest):
            return _help(program, command, rest)
        flags = read_flags(command, rest)
        if flags.text("output") in _FOR_PROGRAMS:  # Volcano's programs have no such output
            failures = sys.stderr
        module, _, function = command.run.partition(":")
        from volcano_py.cli.vcctl.call import Call

        with Call(program, command, flags) as call:
            code: int = getattr(import_module(module), function)(call)
        sys.stdout.flush()
        return code
    except Problem as problem:
        path = " ".join(_VERBS.get(one, one) for one in reversed(command.path[1:])) if command else "execute command"
        with suppress(BrokenPipeError):
            print(f"Failed to{' ' if path else ''}{path}: {problem}", file=failures, flush=True)
            return FAILED
        abandon_output()
        return FAILED


def _wants_help(command: Command, rest: Sequence[str]) -> bool:
    words = rest[: rest.index("--")] if "--" in rest else rest
    return any(word in HELP for word in words)


def _help(program: str, command: Command, rest: Sequence[str]) -> int:
    import shutil

    from volcano_py.cli.vcctl.help import help_text

    # A flag of any command below may stand before the command that is missing here.
    strange = next((word for word in rest if word.startswith("-") and not known_below(program, command, word)), "")
    if not command.run and strange:
        raise UsageProblem(f'unknown flag: {strange}; "{shown(program)} --help" lists the commands')
    width = shutil.get_terminal_size().columns  # $COLUMNS, the terminal, or 80
    print(help_text(shown(program), command, table(program), width), end="")
    return 0


def _unknown(program: str, words: Sequence[str]) -> str:
    import difflib

    known = table(program)
    depth = 1
    while any(one.path[1:] == tuple(words[:depth]) for one in known):
        depth += 1
    group = tuple(words[: depth - 1])
    names = [one.path[-1] for one in known if one.path[1:-1] == group and len(one.path) > 1]
    near = difflib.get_close_matches(words[depth - 1], names, 1)
    hint = f'did you mean "{near[0]}"?' if near else f"commands: {', '.join(names)}"
    return f'unknown command "{words[depth - 1]}" for "{" ".join((shown(program), *group))}"; {hint}'


def shown(program: str) -> str:
    """Return the program as its user calls it: a plugin of kubectl is called through it."""
    return "kubectl vc" if os.path.basename(sys.argv[0]) == "kubectl-vc" else program
