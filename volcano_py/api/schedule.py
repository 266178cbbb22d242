"""Schedules of cron jobs, as the Go library robfig/cron v3 reads them, and the times at which they start a job.

    minute hour day-of-month month day-of-week      such as ``30 6-16/4 * * 1-5`` or ``0 0 1 jan,jul ?``
    @yearly @annually @monthly @weekly @daily @midnight @hourly
    @every DURATION                                 such as ``@every 1h30m``, in whole seconds, at least one
    TZ=ZONE or CRON_TZ=ZONE before either of the first two

A schedule starts a job at every minute whose wall time meets all fields. So a wall time that a change to summer time
leaves out starts nothing, and one that a change back repeats starts two jobs. If neither of the two day fields is a
star, a day needs to meet only one of them; ``*/2`` is no star in this rule, ``*/1`` and ``?`` are.

The Python libraries for cron have other rules (steps over stars, Sunday as 7, changes of summer time).
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from volcano_py.api.duration import DurationError, parse_go_duration

_MINUTE: Final = timedelta(minutes=1)
_YEARS_AHEAD: Final = 5  # a schedule without a start until then has none
_FIRST_YEAR: Final = 1970
_LAST_YEAR: Final = 9000  # times beyond are not computed

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "
_ZONE_PREFIXES: Final = ("TZ=", "CRON_TZ=")


class ScheduleError(ValueError):
    """The text is not a schedule; the message says why."""


class ZoneError(ValueError):
    """There is no time zone of this name."""


class _Bounds(NamedTuple):
    """The values that a field may have."""

    field: str
    low: int
    high: int
    names: tuple[str, ...] = ()  # of the values from ``low``


_FIELDS: Final = (
    _Bounds("minute", 0, 59),
    _Bounds("hour", 0, 23),
    _Bounds("day of month", 1, 31),
    _Bounds("month", 1, 12, _MONTHS),
    _Bounds("day of week", 0, 6, _DAYS),
)


class _Field(NamedTuple):
    """The values that a field allows, and whether it is a star."""

    values: frozenset[int]
    star: bool


@dataclass(frozen=True, slots=True)
class Every:
    """A schedule that starts a job at equal distances."""

    interval: timedelta


@dataclass(frozen=True, slots=True)
class Calendar:
    """A schedule over the calendar and the clock."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: _Field
    months: frozenset[int]
    weekdays: _Field
    """0 is Sunday."""
    zone: tzinfo | None = None
    """The zone that the text itself names."""

    def after(self, moment: datetime, zone: tzinfo) -> datetime | None:
        """Return the first start after a moment, in UTC; None if there is none within five years.

        ``zone`` counts unless the schedule names its own. A moment before 1970 counts as 1970.
        """
        zone = self.zone or zone
        if moment.year > _LAST_YEAR:
            return None
        now = moment.astimezone(UTC) if moment.year > _FIRST_YEAR else datetime(_FIRST_YEAR, 1, 1, tzinfo=UTC)
        now = now.replace(second=0, microsecond=0) + _MINUTE
        last_year = now.year + _YEARS_AHEAD
        while True:
            local = now.astimezone(zone)
            day = self._day_from(local.date(), last_year)
            if day is None:
                return None
            if day != local.date():
                start = datetime.combine(day, time(), zone).astimezone(
                    UTC
                )  # the time after a midnight that is left out
                now = max(start, now + _MINUTE)  # a day may begin twice
                local = now.astimezone(zone)
            while local.date() == day:
                if local.hour in self.hours and local.minute in self.minutes:
                    return now
                now = self._next_minute(now, local)
                local = now.astimezone(zone)

    def _next_minute(self, now: datetime, local: datetime) -> datetime:
        """Return a later minute up to which no minute meets the fields; both times are the same moment."""
        minute = local.minute
        if local.hour in self.hours:
            to_come = [value for value in self.minutes if value > minute]
            step = min(to_come, default=60) - minute
        else:
            step = 60 - minute
        target = now + timedelta(minutes=step)
        if target.astimezone(local.tzinfo).utcoffset() != local.utcoffset():
            return now + _MINUTE  # the clock is changed on the way
        return target

    def _day_from(self, day: date, last_year: int) -> date | None:
        """Return the first matching day that is not before ``day``."""
        while day.year <= last_year:
            if day.month not in self.months:
                day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
            elif not self._meets(day):
                day += timedelta(days=1)
            else:
                return day
        return None

    def _meets(self, day: date) -> bool:
        of_month, of_week = day.day in self.days.values, day.isoweekday() % 7 in self.weekdays.values
        if self.days.star or self.weekdays.star:
            return of_month and of_week
        return of_month or of_week


Schedule = Calendar | Every


def parse_schedule(text: str) -> Schedule:
    """Read a schedule; raise ScheduleError if it is none, or if the zone that it names does not exist."""
    zone = None
    if text.startswith(_ZONE_PREFIXES):
        prefix, _, text = text.partition(" ")
        name = prefix.partition("=")[2]
        try:
            zone = zone_named(name)
        except ZoneError as error:
            raise ScheduleError(str(error)) from None
    text = text.strip()
    if text.startswith(_EVERY):
        return Every(_interval(text.removeprefix(_EVERY)))
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            known = ", ".join([*_DESCRIPTORS, "@every DURATION"])
            raise ScheduleError(f"{text!r} is not known: write one of {known}")
        text = _DESCRIPTORS[text]
    parts = text.split()
    if len(parts) != len(_FIELDS):
        names = ", ".join(bounds.field for bounds in _FIELDS)
        raise ScheduleError(f"{text!r} has {len(parts)} fields instead of 5: {names}")
    minutes, hours, days, months, weekdays = (_field(part, bounds) for part, bounds in zip(parts, _FIELDS, strict=True))
    return Calendar(minutes.values, hours.values, days, months.values, weekdays, zone)


def zone_named(name: str) -> tzinfo:
    """Return the time zone of this IANA name, UTC for the empty one; raise ZoneError if there is none."""
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, LookupError, OSError):
        raise ZoneError(f"unknown time zone {name!r}: write a name of the IANA list, such as Europe/Berlin") from None


def names_a_zone(text: str) -> bool:
    """Say whether a schedule contains a time zone, which belongs into a field of its own."""
    return "TZ" in text


def _interval(text: str) -> timedelta:
    try:
        seconds = parse_go_duration(text)
    except DurationError as error:
        raise ScheduleError(str(error)) from None
    return timedelta(seconds=max(1, int(seconds)))


def _field(text: str, bounds: _Bounds) -> _Field:
    values: set[int] = set()
    star = False
    for part in text.split(","):
        if part:
            allowed, is_star = _range(part, bounds)
            values.update(allowed)
            star |= is_star
    if not values:
        raise ScheduleError(f"the field {bounds.field} is empty: {text!r}")
    return _Field(frozenset(values), star)


def _range(text: str, bounds: _Bounds) -> tuple[range, bool]:
    """Return the values of a part of a field, and whether it is a star."""
    span, slash, step_text = text.partition("/")
    step = _number(step_text, bounds, text) if slash else 1
    if step == 0:
        raise ScheduleError(f"the step of {text!r} in the field {bounds.field} is 0: write a step from 1")
    if span in ("*", "?"):
        return range(bounds.low, bounds.high + 1, step), step == 1
    first, dash, last = span.partition("-")
    low = _value(first, bounds, text)
    high = _value(last, bounds, text) if dash else bounds.high if slash else low
    if low < bounds.low or high > bounds.high or low > high:
        raise ScheduleError(
            f"{text!r} in the field {bounds.field} is not a range within {bounds.low}-{bounds.high}, lower end first"
        )
    return range(low, high + 1, step), False


def _value(text: str, bounds: _Bounds, where: str) -> int:
    if text.lower() in bounds.names:
        return bounds.low + bounds.names.index(text.lower())
    return _number(text, bounds, where)


def _number(text: str, bounds: _Bounds, where: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ScheduleError(f"{text!r} is not a number, in {where!r} of the field {bounds.field}")
    return int(text)
