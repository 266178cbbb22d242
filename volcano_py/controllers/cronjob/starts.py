"""The starts of a cron job: when the next one is, which ones were missed, and what zone they are in."""

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Final

from volcano_py.api.schedule import Every, Schedule

MANY: Final = 100
"""More missed starts than these are too many."""
_SECOND: Final = timedelta(seconds=1)


class NeverError(ValueError):
    """A schedule never starts a job, such as one for February 31."""


@dataclass(frozen=True, slots=True)
class Missed:
    """The starts of a schedule that have come."""

    earliest: datetime
    """Starts up to this moment do not count."""
    latest: datetime | None
    """The last of them, if it is to be made up for."""
    count: int
    """How many there are; one more than `MANY` stands for any number above it."""


@dataclass(frozen=True, slots=True)
class Starts:
    """The starts of a schedule after a moment: the last start, or the creation of the cron job.

    The starts of ``@every`` lie at whole intervals after that moment.
    """

    schedule: Schedule
    zone: tzinfo
    since: datetime

    def after(self, moment: datetime) -> datetime:
        """Return the first start after a moment; raises NeverError."""
        moment = max(moment, self.since)
        if isinstance(self.schedule, Every):
            interval = self.schedule.interval
            try:
                return self.since + ((moment - self.since) // interval + 1) * interval
            except OverflowError:
                raise NeverError("the next start is after the year 9999") from None
        start = self.schedule.after(moment, self.zone)
        if start is None:
            raise NeverError("there is no such time within five years")
        return start

    def missed(self, now: datetime, not_before: datetime | None = None) -> Missed:
        """Return the starts that have come; those up to ``not_before`` do not count. Raises NeverError.

        If at least two have come, the distance of the first two is taken for the distance of all, as in Kubernetes: the
        last one is made up for only if it is not earlier than this leads to expect. So if the controller pauses for
        long, and comes back in a pause of the schedule that is longer than that distance, nothing is made up for.
        """
        earliest = self.since if not_before is None else max(self.since, not_before)
        first = self.after(earliest)
        if first > now:
            return Missed(earliest, None, 0)
        second = self.after(first)
        if second > now:
            return Missed(earliest, first, 1)
        count, latest, start = 1, first, second
        while start <= now and count <= MANY:
            count, latest, start = count + 1, start, self.after(start)
        if start <= now:
            latest = self._latest(start, now)
        distance = second - first
        estimate = first + ((now - first) // distance - 1) * distance
        return Missed(earliest, latest if latest >= estimate else None, count)

    def _latest(self, known: datetime, now: datetime) -> datetime:
        """Return the last start that is not after ``now``, given one of them."""
        back = timedelta(minutes=1)
        while (start := self.after(max(now - back, known - _SECOND))) > now:
            back *= 2
        low, high = start, now  # the wanted start is not before low; if low is not the last, one follows before high
        while (following := self.after(low)) <= now:
            middle = following + (high - following) / 2
            start = self.after(middle)
            low, high = (start, high) if start <= now else (following, middle)
        return low
