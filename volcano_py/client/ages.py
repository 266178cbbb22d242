"""Times as the command line prints them."""

from datetime import UTC, datetime
from typing import Any, Final

UNKNOWN: Final = "<unknown>"
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


def human_duration(seconds: float) -> str:
    """Return a length of time in one or two units; the longer, the coarser. A future of two seconds is invalid."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole, (_MINUTE, "m"), (1, "s"))
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, (_HOUR, "h"), (_MINUTE, "m"))
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, (_DAY, "d"), (_HOUR, "h"))
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        days = whole // _DAY
        return f"{days // 365}y{days % 365}d"
    return f"{whole // _YEAR}y"


def _two(seconds: int, large: tuple[int, str], small: tuple[int, str]) -> str:
    count, rest = divmod(seconds, large[0])
    rest //= small[0]
    return f"{count}{large[1]}{rest}{small[1]}" if rest else f"{count}{large[1]}"


def time_of(value: Any) -> datetime | None:
    """Read a time of the API; None if there is none."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not value:
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def age(value: Any, now: datetime) -> str:
    """Return how long ago a time was."""
    then = time_of(value)
    return UNKNOWN if then is None or then.year == 1 else human_duration((now - then).total_seconds())


def day(value: Any) -> str:
    """Return the date of a time; a missing one is that of year 1."""
    then = time_of(value)
    return "0001-01-01" if then is None else then.strftime("%Y-%m-%d").zfill(10)
