"""Flags and commands as data, and how a command line is read.

The rules are those of Volcano's programs (pflag): `--name x`, `--name=x`, `-N x`, `-Nx`, `-N=x`; flags may stand
anywhere behind the command, and `_` in a name means `-`. argparse is not used: it takes a third of the time that
`vcctl version` may take.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from volcano_py.client.problem import Problem

TEXT, NUMBER, SWITCH = "text", "number", "switch"
_TRUTHS = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}
_LARGEST = 2**31 - 1
_KINDS: Final = {
    "jobs": ("job", "jobs", "vcjob", "vj"),
    "queues": ("queue", "queues", "q"),
    "jobflows": ("jobflow", "jobflows", "jf"),
    "jobtemplates": ("jobtemplate", "jobtemplates", "jt"),
}
"""What may stand before the name of an object, as `-o name` prints it: `job.batch.volcano.sh/train`."""


class UsageProblem(Problem):
    """The command line itself is wrong."""


class Flag(NamedTuple):
    """One flag of a command."""

    name: str
    short: str
    default: str
    help: str
    kind: str = TEXT
    choices: tuple[str, ...] = ()
    values: str = ""
    """What completion offers: `files`, `contexts`, or a kind of object in the cluster (see `completion`)."""
    offers: tuple[str, ...] = ()
    """Values that completion offers though others are accepted, or refused in Volcano's own words."""


class Command(NamedTuple):
    """One command, or (without ``run``) a group of commands."""

    path: tuple[str, ...]
    help: str
    run: str = ""
    """`module:function`, imported when it is called."""
    flags: tuple[Flag, ...] = ()
    example: str = ""
    argument: str = ""
    """The name of the flag that a bare word stands for; empty if no word is allowed."""

    def flag(self, name: str) -> Flag:
        """Return the flag of that name."""
        return next(flag for flag in self.flags if flag.name == name)


class Values:
    """The flags of one command line; a flag that was not given has its default."""

    def __init__(self, given: dict[str, str], command: Command) -> None:
        self._values = {flag.name: flag.default for flag in command.flags}
        self._values.update(given)
        self.given = frozenset(given)

    def text(self, name: str) -> str:
        """Return a value; empty if the command has no such flag."""
        return self._values.get(name, "")

    def number(self, name: str) -> int:
        """Return a value that is a number."""
        return int(self._values.get(name) or "0")

    def on(self, name: str) -> bool:
        """Say whether a switch is on."""
        return self._values.get(name) == "true"


_IGNORED = (
    Flag("v", "v", "0", "", NUMBER),
    Flag("vmodule", "", "", ""),
    Flag("log-flush-frequency", "", "", ""),
)
"""Flags for logs, which Volcano's programs take. Scripts give them; these programs have no log."""


def find_flag(command: Command, word: str) -> Flag | None:
    """Return the flag that a word such as `--name=x` or `-Nx` begins with, None if the command has no such flag."""
    flags = (*command.flags, *_IGNORED)
    if not word.startswith("--"):
        return next((one for one in flags if one.short == word[1:2]), None)
    name = word.removeprefix("--").partition("=")[0].replace("_", "-")
    return next((one for one in flags if one.name == name), None)


def read_flags(command: Command, words: Sequence[str]) -> Values:
    """Read what stands behind the command; raise UsageProblem."""
    given: dict[str, str] = {}
    bare = ""  # what stands without a flag
    left = list(words)
    only_words = False
    while left:
        word = left.pop(0)
        if only_words or word == "-" or not word.startswith("-"):
            _bare(command, word, given)
            bare = given[command.argument]
        elif word == "--":
            only_words = True
        elif word.startswith("--"):
            _long(command, word[2:], left, given)
        else:
            _short(command, word[1:], left, given)
    if bare and given[command.argument] != bare:  # a flag came later; one of the two may name what would be deleted
        raise _taken(command, bare, given)
    if given.get("namespace") == "" and not any(flag.name == "all-namespaces" for flag in command.flags):
        raise UsageProblem(f"the namespace must not be empty{_see(command)}")
    return Values(given, command)


def _bare(command: Command, word: str, given: dict[str, str]) -> None:
    if not command.argument:
        raise UsageProblem(f"unexpected argument {word!r}: this command takes flags only{_see(command)}")
    if command.argument in given:
        raise _taken(command, word, given)
    given[command.argument] = _plain_name(command.flag(command.argument), command.argument, word)


def _taken(command: Command, word: str, given: dict[str, str]) -> UsageProblem:
    return UsageProblem(f"unexpected argument {word!r}: {command.argument} is {given[command.argument]!r} already")


def _long(command: Command, text: str, left: list[str], given: dict[str, str]) -> None:
    name, has_value, value = text.partition("=")
    flag = find_flag(command, f"--{name}")
    if flag is None:
        raise UsageProblem(f"unknown flag: --{name}{_near(command, name)}{_see(command)}")
    given[flag.name] = _value(flag, f"--{name}", value if has_value else None, left)


def _short(command: Command, letters: str, left: list[str], given: dict[str, str]) -> None:
    while letters:
        letter, letters = letters[0], letters[1:]
        flag = find_flag(command, f"-{letter}")
        if flag is None:
            raise UsageProblem(f"unknown shorthand flag: '{letter}' in -{letter}{letters}{_see(command)}")
        if flag.kind == SWITCH and not letters.startswith("="):
            given[flag.name] = "true"
            continue
        value = letters.removeprefix("=") if letters else None
        given[flag.name] = _value(flag, f"-{letter}", value, left)
        return


def _value(flag: Flag, written: str, value: str | None, left: list[str]) -> str:
    if flag.kind == SWITCH:
        if value is None:
            return "true"
        if value.lower() not in _TRUTHS:
            raise UsageProblem(f"invalid argument {value!r} for {written}: write true or false")
        return "true" if _TRUTHS[value.lower()] else "false"
    if value is None:
        if not left:
            raise UsageProblem(f"flag needs an argument: {written}")
        value = left.pop(0)
    if flag.kind == NUMBER:
        digits = value.removeprefix("-")
        if not digits.isdecimal() or int(digits) > _LARGEST:
            raise UsageProblem(f"invalid argument {value!r} for {written}: write a whole number such as 3")
    if flag.choices and value not in flag.choices:
        raise UsageProblem(f"invalid argument {value!r} for {written}: write one of {', '.join(flag.choices)}")
    return _plain_name(flag, written, value)


def _plain_name(flag: Flag, written: str, value: str) -> str:
    """Return the name of an object without its kind."""
    kind, has_kind, name = value.partition("/")
    if flag.values not in _KINDS or not has_kind:
        return value
    if kind.partition(".")[0] not in _KINDS[flag.values]:
        known = _KINDS[flag.values][0]
        raise UsageProblem(f"invalid argument {value!r} for {written}: write the name of a {known}, or {known}/NAME")
    return name


def _see(command: Command) -> str:
    return f'; "{" ".join(command.path)} --help" lists the flags'


def _near(command: Command, name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, [flag.name for flag in command.flags], 1)
    return f" (did you mean --{near[0]}?)" if near else ""
