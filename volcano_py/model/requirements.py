"""Requirements on labels and fields, the parts of selectors and node affinity terms."""

from typing import NamedTuple


class Requirement(NamedTuple):
    """One requirement on a label or field."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
