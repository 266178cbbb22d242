"""The type of a handler: an operation, the keys it knows, and how its result is compared."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.row_files import Case

Outcome = Mapping[str, Any]
"""The result, under the keys of ``expect``."""

Compare = Callable[[Any, Any, Mapping[str, Any]], None]
"""Asserts that the second argument (the result) matches the first (expected); the third is all of ``expect``."""


class NotSupportedError(Exception):
    """The row needs a feature that does not exist here yet, so its result would be meaningless."""


def same(expected: Any, actual: Any, _: Mapping[str, Any]) -> None:
    """Assert that two values are equal."""
    assert actual == expected


def same_set(expected: Any, actual: Any, _: Mapping[str, Any]) -> None:
    """Assert that two lists have the same members, each equally often, in any order."""
    assert sorted(actual) == sorted(expected)


def one_of(expected: Any, actual: Any, _: Mapping[str, Any]) -> None:
    """Assert that a value is among the allowed ones."""
    assert actual in expected


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of an area."""

    run: Callable[[Case], Outcome]
    expects: Mapping[str, Compare]
    inputs: frozenset[str] = field(default=frozenset())
    needs_session: bool = False  # whether rows have ``scheduler`` and ``actions``

    def check(self, case: Case) -> None:
        """Run the operation and compare; a key that is not read is a failure."""
        _no_others("input", case.input, self.inputs)
        _no_others("expect", case.expect, self.expects)
        assert case.expect, "the row expects nothing"
        assert self.needs_session == (case.scheduler is not None), "the row has a scheduler and the operation none"
        assert self.needs_session or not case.actions, "the row has actions and the operation no session"
        outcome = self.run(case)
        for key, expected in case.expect.items():
            self.expects[key](expected, outcome[key], case.expect)


def _no_others(where: str, found: Mapping[str, Any], known: Any) -> None:
    unknown = sorted(found.keys() - set(known))
    assert not unknown, f"{where} has keys that this operation does not know: {', '.join(unknown)}"
