"""The shell of the kubelet stand-in: enough of `sh -c` to say when a container ends, and how.

    [ $INDEX = 0 ] && [ $RETRY = 0 ] && await go && exit 3; sleep infinity

Statements are separated by `;` or a line end and run in order; a statement is a chain of commands with `&&`. Known are
`sleep SECONDS|infinity`, `exit CODE`, `[ A = B ]` (also `!=`, `-lt`, `-ge`), `true`, `false`, `echo`, `ulimit` and
`await WORD`, which waits until the test says the word to this pod. Any other program runs until it is stopped.
`$NAME` and `${NAME}` are variables of the container.
"""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence

Await = Callable[[str], Awaitable[None]]

SHELLS = ("sh", "bash", "/bin/sh", "/bin/bash")
SHELL_OPTION = re.compile(r"-[a-z]*c")
VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
COMPARISONS: Mapping[str, Callable[[str, str], bool]] = {
    "=": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "-lt": lambda left, right: int(left) < int(right),
    "-ge": lambda left, right: int(left) >= int(right),
}
INSTANT = {"true": 0, "false": 1, "echo": 0, "ulimit": 0}


class Exited(Exception):
    """The script said `exit`."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def script_of(command: Sequence[str], args: Sequence[str]) -> str:
    """Return the script of a container: the text behind `sh -c`, or its command as one statement."""
    words = [*command, *args]
    if len(words) > 2 and words[0] in SHELLS and SHELL_OPTION.fullmatch(words[1]):
        return words[2]
    return shlex.join(words)


async def run(script: str, variables: Mapping[str, str], hear: Await) -> int:
    """Run a script to its end and return its exit code; without a statement it never ends, as a server does."""
    statements = [part.strip() for part in re.split(r"[;\n]", script) if part.strip()]
    if not statements:
        await asyncio.Event().wait()
    code = 0
    try:
        for statement in statements:
            code = await _chain(statement, variables, hear)
    except Exited as exited:
        return exited.code
    return code


async def _chain(statement: str, variables: Mapping[str, str], hear: Await) -> int:
    for command in statement.split("&&"):
        filled = VARIABLE.sub(lambda found: shlex.quote(variables.get(found[1] or found[2], "")), command)
        code = await _command(shlex.split(filled), hear)
        if code:
            return code
    return 0


async def _command(words: list[str], hear: Await) -> int:
    match words:
        case ["sleep", "infinity"]:
            await asyncio.Event().wait()
        case ["sleep", seconds]:
            await asyncio.sleep(float(seconds))
        case ["exit", code]:
            raise Exited(int(code))
        case ["await", word]:
            await hear(word)
        case ["[", left, comparison, right, "]"]:
            return 0 if COMPARISONS[comparison](left, right) else 1
        case [name, *_] if name in INSTANT:
            return INSTANT[name]
        case _:
            await asyncio.Event().wait()
    return 0
