"""Reads YAML as Volcano's library does, with the line of every node.

Volcano uses yaml.v2, whose YAML 1.1 differs from PyYAML's in plain scalars: ``y`` and ``n`` are booleans, ``1e3`` is a
number, ``12:30`` and ``2024-01-01`` are text. The difference matters for arguments, so this module has yaml.v2's rules.
"""

import re
from typing import Any, NoReturn

import yaml

from volcano_py.conf.schema import ConfError, Where

_BOOL = re.compile(r"^(?:y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$")
_TRUE = frozenset({"y", "yes", "true", "on"})
_INT = re.compile(r"^[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)$")
_FLOAT = re.compile(
    r"^(?:[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_NAMED_FLOAT = re.compile(r"\.(inf|nan)$")  # YAML writes a dot where Python does not
_NULL = re.compile(r"^(?:~|null|Null|NULL|)$")
_NUMBER_START = "-+.0123456789"
_TAG = "tag:yaml.org,2002:"
_ANOTHER = "but found another document"  # the words of PyYAML
_TWO_DOCUMENTS = "the file has two documents, and the second one begins here: keep one, without a line --- after it"


class _Loader(yaml.CSafeLoader):
    """The C parser with yaml.v2's rules for plain scalars."""


_Loader.yaml_implicit_resolvers = {}  # drops PyYAML's rules
_Loader.add_implicit_resolver(_TAG + "bool", _BOOL, list("yYnNtTfFoO"))
_Loader.add_implicit_resolver(_TAG + "int", _INT, list("-+0123456789"))
_Loader.add_implicit_resolver(_TAG + "float", _FLOAT, list(_NUMBER_START))
_Loader.add_implicit_resolver(_TAG + "null", _NULL, ["~", "n", "N", ""])
_Loader.add_implicit_resolver(_TAG + "merge", re.compile(r"^<<$"), ["<"])


class Document:
    """A parsed file: its root node, and readers of nodes whose errors name the file."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.warnings: list[str] = []
        try:
            self.root: yaml.Node | None = yaml.compose(text, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            if error.problem == _ANOTHER:
                raise ConfError(Where(file, line), _TWO_DOCUMENTS) from error
            raise ConfError(Where(file, line), f"this is not YAML: {error.problem or error.context}") from error
        except yaml.YAMLError as error:
            raise ConfError(Where(file, 1), f"this is not YAML: {error}") from error

    def where(self, node: yaml.Node | None) -> Where:
        """Return the place of a node."""
        return Where(self.file, node.start_mark.line + 1 if node is not None and node.start_mark else 1)

    def fail(self, node: yaml.Node | None, problem: str) -> NoReturn:
        """Raise ConfError because of a node."""
        raise ConfError(self.where(node), problem)

    def warn(self, node: yaml.Node | None, text: str) -> None:
        """Record a warning about something that is ignored."""
        self.warnings.append(f"{self.where(node)}: {text}")

    def mapping(self, node: yaml.Node | None, key: str) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Return the entries of a mapping as key -> (key node, value node); an absent mapping counts as empty.

        If a key occurs twice, the last entry counts, as in Volcano, and there is a warning.
        """
        if self.is_null(node):
            return {}
        if not isinstance(node, yaml.MappingNode):
            self.fail(node, f"{key or 'the configuration'} must be a mapping of keys to values, not {_kind(node)}")
        entries: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for name, value in self._pairs(node):
            text = str(name.value)
            if text in entries:
                lost = _line(entries[text][0])
                self.warn(name, f"{_join(key, text)} is repeated here; the entry in line {lost} is ignored")
            entries[text] = (name, value)
        return entries

    def _pairs(self, node: yaml.MappingNode) -> list[tuple[yaml.Node, yaml.Node]]:
        """Return the entries of a mapping, those merged by ``<<`` first; of several sources the first wins."""
        merged: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        own: list[tuple[yaml.Node, yaml.Node]] = []
        for name, value in node.value:
            if name.tag != _TAG + "merge":
                own.append((name, value))
                continue
            for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(source, yaml.MappingNode):
                    self.fail(source, f"<< must name a mapping, not {_kind(source)}")
                for entry in self._pairs(source):
                    merged.setdefault(str(entry[0].value), entry)
        stated = {str(name.value) for name, _ in own}
        return [entry for key, entry in merged.items() if key not in stated] + own

    def sequence(self, node: yaml.Node | None, key: str) -> list[yaml.Node]:
        """Return the items of a list; an absent list counts as empty."""
        if self.is_null(node):
            return []
        if not isinstance(node, yaml.SequenceNode):
            self.fail(node, f"{key} must be a list, not {_kind(node)}")
        return list(node.value)

    def text(self, node: yaml.Node | None, key: str) -> str:
        """Return a scalar as text, quoted or not."""
        if not isinstance(node, yaml.ScalarNode):
            self.fail(node, f"{key} must be text, not {_kind(node)}")
        return "" if self.is_null(node) else str(node.value)

    def flag(self, node: yaml.Node, key: str) -> bool | None:
        """Return a boolean; None if the value is empty."""
        if self.is_null(node):
            return None
        if isinstance(node, yaml.ScalarNode) and node.tag == _TAG + "bool":
            return node.value.lower() in _TRUE
        return self.fail(node, f"{key} must be true or false, not {_kind(node)}")

    def value(self, node: yaml.Node | None) -> Any:
        """Return a node as plain Python: dict, list, str, int, float, bool or None."""
        if node is None:
            return None
        if isinstance(node, yaml.MappingNode):
            return {str(name.value): self.value(value) for name, value in self._pairs(node)}
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item) for item in node.value]
        return self._scalar(node)

    def is_null(self, node: yaml.Node | None) -> bool:
        """Say whether a node is absent or null."""
        return node is None or node.tag == _TAG + "null"

    def _scalar(self, node: yaml.Node) -> Any:
        text = str(node.value)
        kind = node.tag.rpartition(":")[2]
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() in _TRUE
        try:
            if kind == "int":
                return _integer(text.replace("_", ""))
            if kind == "float":
                return float(_NAMED_FLOAT.sub(r"\1", text.replace("_", "").lower()))
        except ValueError:
            self.fail(node, f"{text!r} is not a number")
        return text


def _integer(text: str) -> int:
    sign, digits = (-1, text[1:]) if text[0] == "-" else (1, text.removeprefix("+"))
    lower = digits.lower()
    for prefix, base in (("0x", 16), ("0b", 2), ("0o", 8)):
        if lower.startswith(prefix):
            return sign * int(lower[2:], base)
    return sign * int(digits, 8 if len(digits) > 1 and digits[0] == "0" else 10)


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _kind(node: yaml.Node | None) -> str:
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    return "nothing" if node is None else repr(node.value)
