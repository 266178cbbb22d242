"""The API server does not answer: one warning for all who ask it, and one line when it answers again.

A process has many watches, and each of them tries again and again. What each attempt says is the same, so that it is
said once: by the first failure, by a reminder now and then, and by a summary at the end.
"""

from typing import Final

import structlog

from volcano_py.kube import errors
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_REMIND_S: Final = 60.0
_GATEWAY: Final = frozenset({502, 503, 504})  # answers of who stands before the server, or of one that does not serve


class Outage:
    """Who gets no answers, since when, and how often it was tried."""

    def __init__(self, server: str, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._failing: set[str] = set()  # who failed last and has got no answer since
        self._since = 0.0
        self._told_at = 0.0
        self._attempts = 0

    @property
    def lasts(self) -> bool:
        """Whether somebody waits for an answer now."""
        return bool(self._failing)

    def failed(self, who: str, error: errors.ApiError) -> bool:
        """Take a failure; return whether it belongs to an outage and needs no line of its own at level warning.

        Every other failure is an answer.
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
        if begins or now - self._told_at >= _REMIND_S:
            self._told_at = now
            log.warning(
                "the API server does not answer",
                server=self._server,
                problem=str(error),
                for_s=round(now - self._since, 1),
                failed_attempts=self._attempts,
            )
        return True

    def answered(self, who: str) -> None:
        """Take an answer; the outage is over when all who failed have got one."""
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
