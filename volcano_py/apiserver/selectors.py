"""Label and field selectors: parse a query's text once, match many objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.status import bad_request

Matcher = Callable[[Obj], bool]

_LabelTest = Callable[[Mapping[str, str]], bool]
_TOKEN = re.compile(r"\s*(!=|==|=|!|\(|\)|,|<|>|[^\s=!(),<>]+)")
_OPERATORS = "in, notin, =, ==, !=, gt, lt"


def label_matcher(text: str) -> Matcher | None:
    """Compile a label selector; None when it selects everything."""
    tests = _LabelParser(text).parse()
    if not tests:
        return None

    def match(obj: Obj) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return all(test(labels) for test in tests)

    return match


class _LabelParser:
    """Recursive descent over `key`, `!key`, `key=v`, `key!=v`, `key in (a,b)`, `key notin (a)`, `key>1`."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def parse(self) -> list[_LabelTest]:
        tests: list[_LabelTest] = []
        while self._peek():
            tests.append(self._requirement())
            token = self._take()
            if token == "," and self._peek() in ("", ","):
                found = self._peek()
                raise bad_request(f"found '{found}', expected: identifier after ','")
            if token and token != ",":
                raise bad_request(f"unable to parse requirement: found '{token}', expected: ',' or 'end of string'")
        return tests

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    def _requirement(self) -> _LabelTest:
        token = self._take()
        if token == "!":
            key = self._take()
            return lambda labels: key not in labels
        key, operator = token, self._peek()
        if operator in ("", ","):
            return lambda labels: key in labels
        self._take()
        if operator in ("=", "=="):
            value = self._value()
            return lambda labels: labels.get(key) == value
        if operator == "!=":
            value = self._value()
            return lambda labels: labels.get(key) != value
        if operator in ("in", "notin"):
            return self._set_test(key, operator)
        if operator in ("<", ">", "lt", "gt"):
            return self._number_test(key, operator)
        raise bad_request(f"unable to parse requirement: found '{operator}', expected: {_OPERATORS}")

    def _value(self) -> str:
        if self._peek() in ("", ","):
            return ""
        return self._take()

    def _set_test(self, key: str, operator: str) -> _LabelTest:
        if self._take() != "(":
            raise bad_request("unable to parse requirement: found '', expected: '('")
        values: set[str] = set()
        while True:
            token = self._take()
            if token == "":
                raise bad_request("unable to parse requirement: found '', expected: ',' or ')'")
            if token == ")":
                break
            if token != ",":
                values.add(token)
        frozen = frozenset(values or {""})
        if operator == "in":
            return lambda labels: labels.get(key) in frozen
        return lambda labels: labels.get(key) not in frozen

    def _number_test(self, key: str, operator: str) -> _LabelTest:
        text = self._value()
        try:
            bound = int(text)
        except ValueError:
            raise bad_request(
                f'unable to parse requirement: values[0][{key}]: Invalid value: "{text}": '
                "for 'Gt', 'Lt' operators, the value must be an integer"
            ) from None
        greater = operator in (">", "gt")

        def test(labels: Mapping[str, str]) -> bool:
            try:
                value = int(labels[key])
            except (KeyError, ValueError):
                return False
            return value > bound if greater else value < bound

        return test


FieldGetter = Callable[[Obj], str]


def path_getter(path: str) -> FieldGetter:
    """Read a dotted path as the text that field selectors compare ("" where it is missing)."""
    parts = path.split(".")

    def get(obj: Obj) -> str:
        value: Any = obj
        for part in parts:
            if not isinstance(value, dict):
                return ""
            value = value.get(part)
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return get


def flag_getter(path: str) -> FieldGetter:
    """Read a dotted path as a flag: "false" where it is missing."""
    get = path_getter(path)
    return lambda obj: get(obj) or "false"


def field_terms(text: str) -> list[tuple[str, bool, str]]:
    """Split a field selector into (field, must be equal, value)."""
    terms = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = re.fullmatch(r"([^=!]+)(!=|==|=)(.*)", part)
        if match is None:
            raise bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        terms.append((match[1].strip(), match[2] != "!=", match[3].strip()))
    return terms


def field_matcher(text: str, fields: Mapping[str, FieldGetter]) -> Matcher | None:
    """Compile a field selector over the fields a resource supports; None when it selects everything."""
    tests: list[tuple[FieldGetter, bool, str]] = []
    for field, equal, value in field_terms(text):
        getter = fields.get(field)
        if getter is None:
            raise bad_request(f"field label not supported: {field}")
        tests.append((getter, equal, value))
    if not tests:
        return None
    return lambda obj: all((getter(obj) == value) is equal for getter, equal, value in tests)


def both(first: Matcher | None, second: Matcher | None) -> Matcher | None:
    """A matcher that requires both (either may be absent)."""
    if first is None or second is None:
        return first or second
    one, two = first, second
    return lambda obj: one(obj) and two(obj)
