"""Logs an outage of the API server once for all its clients: one warning, reminders, and one line at its end.

A process has many watches, and each of them retries. All their failures mean the same, so they are logged together: the
first failure, a reminder every minute, and a summary at the end.
"""

from typing import Final

import structlog

from volcano_py.kube import errors
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_REMIND_S: Final = 60.0
_GATEWAY: Final = frozenset({502, 503, 504})  # answers of a proxy before the server, or of a server that is not ready


class Outage:
    """Which clients get no answers, since when, and after how many attempts."""

    def __init__(self, server: str, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._failing: set[str] = set()  # clients whose last request got no answer
        self._since = 0.0
        self._logged_at = 0.0
        self._attempts = 0

    @property
    def lasts(self) -> bool:
        """Whether a client is without an answer now."""
        return bool(self._failing)

    def failed(self, who: str, error: errors.ApiError) -> bool:
        """Note a failure; return whether it belongs to an outage and needs no warning of its own.

        Every other failure counts as an answer.
        """
        if not _unanswered(error):
            self.answered(who)
            return False
        now = self._clock.monotonic()
        begins = not self._failing
        if begins:
            self._since, self._attempts = now, 0
        self._failing.add(who)
        self._attempts += 1
        if begins or now - self._logged_at >= _REMIND_S:
            self._logged_at = now
            log.warning(
                "the API server does not answer",
                server=self._server,
                problem=str(error),
                for_s=round(now - self._since, 1),
                failed_attempts=self._attempts,
            )
        return True

    def answered(self, who: str) -> None:
        """Note an answer; the outage is over when all clients that failed have got one."""
        if who not in self._failing:
            return
        self._failing.discard(who)
        if not self._failing:
            log.info(
                "the API server answers again",
                server=self._server,
                away_s=round(self._clock.monotonic() - self._since, 1),
                failed_attempts=self._attempts,
            )


def _unanswered(error: errors.ApiError) -> bool:
    return isinstance(error, errors.ConnectionFailed | errors.Timeout) or error.status in _GATEWAY
