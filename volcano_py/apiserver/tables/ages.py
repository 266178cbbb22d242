"""Ages for tables: how long ago a time was, in one or two units."""

from __future__ import annotations

import time
from calendar import timegm
from typing import Any

from volcano_py.apiserver.origin import ORIGIN

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY
UNKNOWN = "<unknown>"


def seconds_of(text: Any) -> float | None:
    """Seconds since the epoch for a time as the API writes it; None if the text is not a time."""
    if not isinstance(text, str):
        return None
    plain = text.removesuffix("Z").partition(".")[0]
    try:
        return float(timegm(time.strptime(plain, "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return None


def age(text: Any, now: float | None = None) -> str:
    """How long ago a time was: `5s`, `3m20s`, `2d`."""
    then = seconds_of(text)
    if then is None:
        return UNKNOWN
    return duration((ORIGIN.get().time() if now is None else now) - then)


def duration(seconds: float) -> str:
    """A length of time as text; the longer it is, the coarser."""
    if seconds < -1:
        return "<invalid>"
    whole = max(int(seconds), 0)
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _two(seconds: int, big: int, big_name: str, small: int, small_name: str) -> str:
    rest = seconds % big // small
    return f"{seconds // big}{big_name}{rest}{small_name}" if rest else f"{seconds // big}{big_name}"
