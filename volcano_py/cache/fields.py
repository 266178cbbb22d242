"""Converts single fields of wire objects to plain values."""

import re
from datetime import UTC, datetime
from typing import Final

_INT32: Final = range(-(2**31), 2**31)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")


def seconds(moment: datetime | None) -> float:
    """Return a time as seconds since the epoch, 0 for none; a time without a zone is UTC."""
    if moment is None:
        return 0.0
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()


def int32(value: int, where: str) -> int:
    """Return a value if it fits into 32 bits, as Kubernetes demands; else raise ValueError naming the field."""
    if value not in _INT32:
        raise ValueError(f"{where}: {value} does not fit in 32 bits: write a smaller number")
    return value


def integer_or_none(text: str) -> int | None:
    """Return the integer in an annotation, None if the text is not an integer of 32 bits."""
    if _INTEGER.fullmatch(text) is None:
        return None
    value = int(text)
    return value if value in _INT32 else None


def boolean(text: str) -> bool:
    """Return the boolean in an annotation or label, in Go's spellings; any other text is False."""
    return text in ("1", "t", "T", "TRUE", "true", "True")
