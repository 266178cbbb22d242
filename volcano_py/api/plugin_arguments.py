"""The plugins of jobs by name, and their arguments, written as Go's package ``flag`` reads them.

``--name=value``, ``-name=value`` and ``--name value`` are the same; a switch may stand alone (``--name``). The last of
several wins. Where Go stops at the first argument that it cannot use, the rest is read here as well.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, TypeVar, get_type_hints

import msgspec

JOB_PLUGINS: Final = ("env", "svc", "ssh", "tensorflow", "pytorch", "mpi", "ray", "hcclrank")
"""The plugins that every job may name."""

Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]
"""The number of a TCP port."""
Seconds = Annotated[int, msgspec.Meta(ge=0)]
"""A length of time in whole seconds."""

_SWITCH: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
_SHOWN: Final = 20  # characters of a stray word that are shown: it may be part of a secret


class NoArguments(msgspec.Struct, frozen=True):
    """The arguments of a plugin that has none."""


A = TypeVar("A", bound=msgspec.Struct)


def parse(kind: type[A], arguments: Sequence[str]) -> tuple[A, tuple[str, ...]]:
    """Read arguments into a struct, and return it with one text for each argument that cannot be used.

    The encoded names of the fields are the names of the arguments. A value that cannot be used leaves the default.
    """
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    types = get_type_hints(kind, include_extras=True)
    switches = {name for name, field in fields.items() if types[field.name] is bool}
    values: dict[str, Any] = {}
    problems = []
    for name, value in _pairs(arguments, switches, fields):
        if name is None:
            problems.append(f'"{(value or "")[:_SHOWN]}" is not an argument: one begins with --')
        elif name not in fields:
            known = ", ".join(f"--{other}" for other in fields)
            problems.append(f"unknown argument --{name}; {f'known are {known}' if known else 'there are none'}")
        elif value is None:
            problems.append(f"argument --{name} has no value: {_shown(fields[name].default)} is used")
        else:
            field = fields[name]
            try:
                values[field.name] = _converted(value, types[field.name])
            except ValueError:
                values.pop(field.name, None)
                default = _shown(field.default)
                problems.append(f'argument --{name} cannot have the value "{value}": {default} is used')
    return kind(**values), tuple(problems)


def _pairs(
    arguments: Sequence[str], switches: set[str], known: dict[str, Any]
) -> Iterator[tuple[str | None, str | None]]:
    """Yield names and values; no name for a stray word, no value for an argument that lacks one."""
    rest = list(reversed(arguments))
    while rest:
        word = rest.pop()
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name or word.startswith("---"):
            yield None, word
        elif equals:
            yield name, value
        elif name in switches:
            yield name, "true"
        elif name in known:
            yield name, rest.pop() if rest else None
        else:
            if rest and not rest[-1].startswith("-"):
                rest.pop()  # the value of the unknown argument
            yield name, None


def _converted(value: str, kind: Any) -> Any:
    """Return the value of an argument; raise ValueError if it has another type."""
    if kind is bool:
        if value not in _SWITCH:
            raise ValueError(value)
        return _SWITCH[value]
    if kind is str:
        return value
    try:
        return msgspec.convert(int(value), kind)
    except msgspec.ValidationError as error:
        raise ValueError(value) from error


def _shown(default: Any) -> str:
    if isinstance(default, bool):
        return "true" if default else "false"
    return str(default) if default != "" else "the default"
