"""A difference that one small function plants into a clean copy, and what the check must find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tests.migration.copies import Copy

Obj = dict[str, Any]
Found = tuple[str, str, str]
"""Kind and name of an object, and the rule."""


class Plant(NamedTuple):
    """One difference."""

    name: str
    change: Callable[[Copy], None]
    expected: Callable[[Copy], set[Found]]


PLANTS: Final[list[Plant]] = []


def plant(*expected: Found) -> Callable[[Callable[[Copy], None]], Callable[[Copy], None]]:
    """Register a function that plants a difference; in names, ``@`` stands for the release."""

    def register(change: Callable[[Copy], None]) -> Callable[[Copy], None]:
        def found(copy: Copy) -> set[Found]:
            return {(kind, name.replace("@", copy.release.name), rule) for kind, name, rule in expected}

        PLANTS.append(Plant(change.__name__.replace("_", "-"), change, found))
        return change

    return register


SCHEDULER: Final = ("Deployment", "@-scheduler")
CONTROLLERS: Final = ("Deployment", "@-controllers")
ADMISSION: Final = ("Deployment", "@-admission")
