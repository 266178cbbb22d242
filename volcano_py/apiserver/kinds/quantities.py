"""Kubernetes quantities, as far as needed to refuse what a real API server refuses."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from volcano_py.apiserver.status import FieldError, invalid_value

_FORM = re.compile(r"([+-]?[0-9.]+)([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?")
_SUFFIXES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "P": Decimal(10**15),
    "E": Decimal(10**18),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}


@lru_cache(maxsize=4096)
def quantity(text: str) -> Decimal | None:
    """The value of a quantity, or None when it is not one."""
    match = _FORM.fullmatch(text)
    if match is None:
        return None
    number, suffix = match[1], match[2] or ""
    try:
        if suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix != "Ei":
            return Decimal(number + suffix)
        return Decimal(number) * _SUFFIXES[suffix]
    except InvalidOperation:
        return None


def negative_errors(holder: dict[str, str], path: str) -> list[FieldError]:
    """Return an error for each quantity below zero."""
    return [
        invalid_value(f"{path}[{name}]", value, "must be greater than or equal to 0")
        for name, value in holder.items()
        if (quantity(value) or 0) < 0
    ]
