"""Durations in annotations and arguments, as Go's time.ParseDuration reads them."""

import re
from decimal import Decimal
from typing import Final

_NANOSECONDS: Final[dict[str, int]] = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # micro sign
    "μs": 10**3,  # Greek mu, which Go accepts too
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_NUMBER: Final = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_UNIT: Final = r"(?:ns|us|µs|μs|ms|s|m|h)"
_TERM: Final = re.compile(f"({_NUMBER})({_UNIT})")
_DURATION: Final = re.compile(f"([+-]?)(0|(?:{_NUMBER}{_UNIT})+)")
_LONGEST: Final = 2**63 - 1  # nanoseconds, some 292 years


class DurationError(ValueError):
    """The text is not a duration."""


def parse_go_duration(text: str) -> float:
    """Return the seconds of a duration such as ``3m``, ``1h30m`` or ``-1.5s``; raise DurationError otherwise."""
    match = _DURATION.fullmatch(text)
    if match is None or len(text) > 64:
        raise DurationError(f"{text!r} is not a duration: write numbers with units ns, us, ms, s, m, h, such as 1h30m")
    nanoseconds = sum((Decimal(number) * _NANOSECONDS[unit] for number, unit in _TERM.findall(match[2])), Decimal(0))
    if nanoseconds > _LONGEST:
        raise DurationError(f"{text!r} is longer than 292 years: write a shorter duration")
    seconds = float(nanoseconds / 10**9)
    return -seconds if match[1] == "-" else seconds
