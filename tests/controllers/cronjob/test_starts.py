"""Missed starts and the next one."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.api.schedule import parse_schedule
from volcano_py.controllers.cronjob.starts import MANY, NeverError, Starts

MOMENT = datetime(2025, 3, 11, 10, tzinfo=UTC)
TEXTS = ("* * * * *", "*/7 * * * *", "0 * * * *", "30 6-16/4 * * 1-5", "0 9 * * 1", "0 0 1 * *", "59 23 28-31 * *")
REGULAR = ("* * * * *", "0 * * * *", "0 0 * * *", "@every 3s", "@every 17m", "@every 26h")


def starts(text: str, since: datetime = MOMENT) -> Starts:
    return Starts(parse_schedule(text), UTC, since)


def one_by_one(subject: Starts, after: datetime, until: datetime) -> list[datetime]:
    """Return all starts after a moment, up to another."""
    found = []
    start = subject.after(after)
    while start <= until:
        found.append(start)
        start = subject.after(start)
    return found


SPANS = st.timedeltas(timedelta(0), timedelta(days=40))


@given(text=st.sampled_from((*TEXTS, *REGULAR)), gone=SPANS)
def test_the_next_start_is_later_and_nothing_lies_between(text: str, gone: timedelta) -> None:
    subject, now = starts(text), MOMENT + gone

    start = subject.after(now)

    assert start > now
    assert subject.after(start - timedelta(microseconds=1)) == start


@given(text=st.sampled_from(REGULAR), gone=st.timedeltas(timedelta(0), timedelta(days=3)))
def test_every_missed_start_of_a_regular_schedule_counts_and_the_last_is_made_up_for(
    text: str, gone: timedelta
) -> None:
    subject, now = starts(text), MOMENT + gone
    if text == "@every 3s":
        now = MOMENT + gone / 300
    expected = one_by_one(subject, MOMENT, now)

    missed = subject.missed(now)

    assert (missed.latest, missed.count) == (expected[-1] if expected else None, min(len(expected), MANY + 1))


@given(text=st.sampled_from(TEXTS), gone=st.timedeltas(timedelta(0), timedelta(days=20)), deadline=st.none() | SPANS)
def test_an_uneven_schedule_makes_up_for_its_last_start_or_none(
    text: str, gone: timedelta, deadline: timedelta | None
) -> None:
    subject, now = starts(text), MOMENT + gone
    earliest = MOMENT if deadline is None else max(MOMENT, now - deadline)
    expected = one_by_one(subject, earliest, now)

    missed = subject.missed(now, None if deadline is None else now - deadline)

    assert (missed.earliest, missed.count) == (earliest, min(len(expected), MANY + 1))
    assert missed.latest in ([None, expected[-1]] if len(expected) > 1 else [*expected, None][:1])


@given(gone=st.timedeltas(timedelta(days=1), timedelta(days=4000)), text=st.sampled_from((*TEXTS, "* * 1 1 *")))
def test_the_last_of_many_starts_is_found(gone: timedelta, text: str) -> None:
    subject, now = starts(text), MOMENT + gone
    known = subject.after(MOMENT)
    if known > now:
        return

    latest = subject._latest(known, now)

    assert latest <= now < subject.after(latest)


def test_a_start_that_was_missed_before_a_long_pause_of_the_schedule_is_not_made_up_for() -> None:
    subject = starts("30 10,11,12 * * 1-5", MOMENT.replace(minute=30))

    missed = subject.missed(datetime(2025, 3, 12, 16, 30, tzinfo=UTC))

    assert (missed.latest, missed.count) == (None, 5)


def test_the_last_start_of_the_week_is_made_up_for_on_the_day_after() -> None:
    thursday = datetime(2025, 3, 13, 8, tzinfo=UTC)

    missed = starts("0 9 * * 1-5", thursday).missed(thursday + timedelta(days=2, hours=10))

    assert missed.latest == datetime(2025, 3, 14, 9, tzinfo=UTC)


def test_the_starts_of_an_interval_keep_their_distance_from_the_last_one() -> None:
    subject = starts("@every 1h", MOMENT + timedelta(minutes=7))
    now = MOMENT + timedelta(hours=5)

    found = one_by_one(subject, subject.since, now)

    assert [later - earlier for earlier, later in pairwise([subject.since, *found])] == [timedelta(hours=1)] * 4


def test_a_deadline_shorter_than_an_interval_does_not_move_its_starts() -> None:
    subject = starts("@every 1h")
    now = MOMENT + timedelta(hours=3, seconds=2)

    missed = subject.missed(now, now - timedelta(seconds=10))

    assert (missed.latest, missed.count) == (MOMENT + timedelta(hours=3), 1)


def test_before_the_last_start_nothing_is_missed() -> None:
    subject = starts("*/5 * * * *")

    missed = subject.missed(MOMENT - timedelta(hours=2))

    assert (missed.latest, missed.count) == (None, 0)
    assert subject.after(MOMENT - timedelta(hours=2)) == MOMENT + timedelta(minutes=5)


@pytest.mark.parametrize(
    ("text", "since"), [("59 23 31 2 *", MOMENT), ("@every 1h", datetime(9999, 12, 31, 23, 30, tzinfo=UTC))]
)
def test_a_schedule_without_a_start_says_so(text: str, since: datetime) -> None:
    with pytest.raises(NeverError):
        starts(text, since).missed(MOMENT)
