"""Single fields of wire objects as plain values."""

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
    """Return a value that fits the 32 bits its field has in Kubernetes; raise ValueError naming the field if not."""
    if value not in _INT32:
        raise ValueError(f"{where}: {value} does not fit in 32 bits: write a smaller number")
    return value


def integer_or_none(text: str) -> int | None:
    """Return the integer that an annotation holds, None if it does not hold one of 32 bits."""
    if _INTEGER.fullmatch(text) is None:
        return None
    value = int(text)
    return value if value in _INT32 else None


def boolean(text: str) -> bool:
    """Return the boolean that an annotation or label holds, as Go writes one; any other text is False."""
    return text in ("1", "t", "T", "TRUE", "true", "True")
