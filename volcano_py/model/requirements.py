"""A requirement on labels, as selectors and affinities are made of."""

from typing import NamedTuple


class Requirement(NamedTuple):
    """One requirement on a label or field."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
