"""Cron schedules: what is read, what is refused, and when they start a job."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano_py.api.schedule import Calendar, Every, ScheduleError, ZoneError, parse_schedule, zone_named

NEW_YORK = ZoneInfo("America/New_York")
ZONES = (
    *("UTC", "America/New_York", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe"),
    *("Africa/Cairo", "America/Santiago", "Pacific/Apia"),  # the clocks of the first two change at midnight
)
DESCRIBED = {"yearly": "0 0 1 1 *", "monthly": "0 0 1 * *", "weekly": "0 0 * * 0", "daily": "0 0 * * *"}
DESCRIBED |= {"annually": DESCRIBED["yearly"], "midnight": DESCRIBED["daily"], "hourly": "0 * * * *"}


def calendar(text: str) -> Calendar:
    schedule = parse_schedule(text)
    assert isinstance(schedule, Calendar)
    return schedule


def next_start(text: str, moment: str, zone: str = "UTC") -> str:
    start = calendar(text).after(datetime.fromisoformat(moment), ZoneInfo(zone))
    return "" if start is None else start.astimezone(ZoneInfo(zone)).strftime("%Y-%m-%dT%H:%M%z")


@pytest.mark.parametrize(
    ("text", "moment", "expected"),
    [
        pytest.param("* * * * *", "2025-03-11T10:00:59.9Z", "2025-03-11T10:01+0000", id="the-next-minute"),
        pytest.param("*/15 * * * *", "2025-03-11T10:00:00Z", "2025-03-11T10:15+0000", id="later-than-the-moment"),
        pytest.param("5/20 * * * *", "2025-03-11T10:05:00Z", "2025-03-11T10:25+0000", id="a-step-from-a-number"),
        pytest.param("55/20 * * * *", "2025-03-11T10:55:00Z", "2025-03-11T11:55+0000", id="a-step-over-the-end"),
        pytest.param("30 6-16/4 * * 1-5", "2025-03-14T14:30:00Z", "2025-03-17T06:30+0000", id="over-a-weekend"),
        pytest.param("0 0 1 JAN,jul ?", "2025-03-11T10:00:00Z", "2025-07-01T00:00+0000", id="names-of-months"),
        pytest.param("0 9 ? * Fri-sat", "2025-03-14T09:00:00Z", "2025-03-15T09:00+0000", id="names-of-days"),
        pytest.param("0 0 29 2 *", "2025-03-11T10:00:00Z", "2028-02-29T00:00+0000", id="a-leap-year"),
        pytest.param("0 0 13 * 5", "2025-03-11T10:00:00Z", "2025-03-13T00:00+0000", id="either-day-field"),
        pytest.param("0 0 */2 * 5", "2025-03-13T10:00:00Z", "2025-03-14T00:00+0000", id="a-step-is-no-star"),
        pytest.param("0 0 */1 * 5", "2025-03-11T10:00:00Z", "2025-03-14T00:00+0000", id="a-step-of-1-is-a-star"),
        pytest.param("0 0 13,* * 5", "2025-03-11T10:00:00Z", "2025-03-14T00:00+0000", id="a-star-in-a-list"),
        pytest.param("1,,2 * * * *", "2025-03-11T10:01:00Z", "2025-03-11T10:02+0000", id="an-empty-part-of-a-list"),
        pytest.param("0 0 31 2 *", "2025-03-11T10:00:00Z", "", id="never"),
        pytest.param("* * * * *", "0001-01-01T00:00:00Z", "1970-01-01T00:01+0000", id="long-ago"),
        pytest.param("* * * * *", "9999-12-31T23:59:00Z", "", id="at-the-end-of-time"),
    ],
)
def test_the_next_start(text: str, moment: str, expected: str) -> None:
    assert next_start(text, moment) == expected


@pytest.mark.parametrize(
    ("text", "moment", "expected"),
    [
        pytest.param("0 * * * *", "2012-03-11T01:00:00-05:00", "2012-03-11T03:00-0400", id="hourly-over-a-gap"),
        pytest.param("0 2 * * *", "2012-03-11T00:00:00-05:00", "2012-03-12T02:00-0400", id="a-time-in-the-gap"),
        pytest.param("0 1 * * *", "2012-11-04T00:00:00-04:00", "2012-11-04T01:00-0400", id="a-repeated-time-first"),
        pytest.param("0 1 * * *", "2012-11-04T01:00:00-04:00", "2012-11-04T01:00-0500", id="a-repeated-time-again"),
        pytest.param("0 1 * * *", "2012-11-04T01:00:00-05:00", "2012-11-05T01:00-0500", id="the-day-after"),
        pytest.param("0 12 * * *", "2012-11-03T12:00:00-04:00", "2012-11-04T12:00-0500", id="a-day-of-25-hours"),
    ],
)
def test_a_start_follows_the_clock_on_the_wall(text: str, moment: str, expected: str) -> None:
    assert next_start(text, moment, "America/New_York") == expected


@pytest.mark.parametrize("prefix", ["TZ", "CRON_TZ"])
def test_a_zone_in_the_schedule_counts_before_any_other(prefix: str) -> None:
    moment = datetime(2025, 3, 11, tzinfo=UTC)

    start = calendar(f"{prefix}=Pacific/Honolulu 0 10 * * *").after(moment, NEW_YORK)

    assert start == datetime(2025, 3, 11, 20, tzinfo=UTC)


@pytest.mark.parametrize(("name", "text"), DESCRIBED.items())
def test_a_descriptor_stands_for_five_fields(name: str, text: str) -> None:
    assert parse_schedule(f"@{name}") == parse_schedule(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("@every 1h30m", 5400), ("@every 3s", 3), ("@every 2.9s", 2), ("@every 1ms", 1), ("@every -1h", 1)],
)
def test_an_interval_is_in_whole_seconds_from_one(text: str, seconds: int) -> None:
    assert parse_schedule(text) == Every(timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "0 fields instead of 5"),
        ("* * * *", "4 fields instead of 5"),
        ("0 * * * * *", "6 fields instead of 5"),
        ("60 * * * *", "not a range within 0-59"),
        ("* * 0 * *", "not a range within 1-31"),
        ("* * * * 7", "not a range within 0-6"),
        ("5-1 * * * *", "lower end first"),
        ("*/0 * * * *", "the step of '\\*/0' in the field minute is 0"),
        ("1-2-3 * * * *", "'2-3' is not a number"),
        ("1/2/3 * * * *", "'2/3' is not a number"),
        ("-1 * * * *", "'' is not a number"),
        ("+1 * * * *", "'\\+1' is not a number"),
        ("\u0663 * * * *", "is not a number"),  # a digit, but not of ASCII
        ("x * * * *", "'x' is not a number, in 'x' of the field minute"),
        (", * * * *", "the field minute is empty"),
        ("* * L * *", "'L' is not a number"),
        ("* * * * 5#2", "is not a number"),
        ("@often", "'@often' is not known"),
        ("@every soon", "'soon' is not a duration"),
        ("@every", "'@every' is not known"),
        ("TZ=Mars/Base 0 0 * * *", "unknown time zone 'Mars/Base'"),
        ("TZ=UTC", "0 fields instead of 5"),
    ],
)
def test_a_text_that_is_no_schedule_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ScheduleError, match=problem):
        parse_schedule(text)


@pytest.mark.parametrize("name", ["Mars/Base", "../../etc/passwd", "/etc/localtime", "America", "a\0b", "x" * 5000])
def test_a_zone_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(ZoneError, match="unknown time zone"):
        zone_named(name)


# Against a search minute by minute

LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def parts(low: int, high: int) -> st.SearchStrategy[tuple[str, frozenset[int], bool]]:
    """Draw a field: its text, what it allows, and whether it is a star."""
    everything = frozenset(range(low, high + 1))
    number = st.integers(low, high)
    step = st.integers(2, 7)
    return st.one_of(
        st.just(("*", everything, True)),
        step.map(lambda n: (f"*/{n}", frozenset(range(low, high + 1, n)), False)),
        number.map(lambda n: (str(n), frozenset({n}), False)),
        st.sets(number, min_size=1, max_size=4).map(lambda s: (",".join(map(str, sorted(s))), frozenset(s), False)),
        st.tuples(number, number, st.integers(1, 3)).map(
            lambda t: (
                f"{min(t[:2])}-{max(t[:2])}/{t[2]}",
                frozenset(range(min(t[:2]), max(t[:2]) + 1, t[2])),
                False,
            )
        ),
    )


Fields = list[tuple[str, frozenset[int], bool]]


def meets(fields: Fields, local: datetime) -> bool:
    (_, minutes, _), (_, hours, _), (_, days, any_day), (_, months, _), (_, weekdays, any_weekday) = fields
    day, weekday = local.day in days, (local.weekday() + 1) % 7 in weekdays
    right_day = day and weekday if any_day or any_weekday else day or weekday
    return local.minute in minutes and local.hour in hours and local.month in months and right_day


def changes_of(zone: ZoneInfo) -> list[datetime]:
    """Return the hours of some years before which a clock is changed."""
    hours = [datetime(2023, 1, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(3 * 8766)]
    offsets = [hour.astimezone(zone).utcoffset() for hour in hours]
    return [hour for hour, before, after in zip(hours[1:], offsets, offsets[1:], strict=False) if before != after]


CHANGES = {name: changes_of(ZoneInfo(name)) for name in ZONES}
NEAR_CHANGES = st.sampled_from(ZONES).flatmap(
    lambda name: st.tuples(
        st.just(name),
        st.one_of(
            st.integers(0, 3 * 365 * 1440).map(lambda n: datetime(2023, 1, 1, tzinfo=UTC) + timedelta(minutes=n)),
            st.tuples(
                st.sampled_from(CHANGES[name] or [datetime(2024, 2, 29, tzinfo=UTC)]), st.integers(-3000, 300)
            ).map(lambda t: t[0] + timedelta(minutes=t[1])),
        ),
    )
)


@settings(max_examples=80)
@given(fields=st.tuples(*(parts(*limits) for limits in LIMITS)).map(list), where=NEAR_CHANGES)
def test_the_next_start_is_the_first_minute_that_meets_all_fields(fields: Fields, where: tuple[str, datetime]) -> None:
    zone, moment = ZoneInfo(where[0]), where[1]
    text = " ".join(part for part, _, _ in fields)

    start = calendar(text).after(moment, zone)

    assert start is None or (start > moment and meets(fields, start.astimezone(zone)))
    minute = moment.replace(second=0, microsecond=0)
    minutes = (minute + timedelta(minutes=n) for n in range(1, 3 * 1440))
    expected = next((one for one in minutes if meets(fields, one.astimezone(zone))), None)
    if expected is not None:
        assert start == expected
    elif start is not None:
        assert start >= minute + timedelta(days=3)
