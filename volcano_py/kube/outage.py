"""Logs an outage of the API server once for all parts of a process: one warning, rare reminders, one line at its end.

A process has many watches and writers, and each of them retries. All their failures mean the same, so they are logged
together. Watches say when an outage begins and ends. Lines of other parts that only follow from it are withheld, and
the line at the end counts them.

An interruption of a moment is no warning, unless it happens again and again: watches break whenever one of several API
servers restarts. A server that has just started refuses requests for some seconds, until it has read its rules; the
outage lasts until it serves them.

If some requests get answers for longer while others get none, such as when the server cannot list one kind of object,
nothing else follows from that, and nothing is withheld any more.
"""

from collections import Counter, deque
from typing import Final

import structlog

from volcano_py.kube import errors
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

QUIET_S: Final = 2.0  # an outage that is shorter is no warning
_REMIND_S: Final = 300.0
_STARTING_S: Final = 30.0  # for so long after the first answer, refusals may come from a server that starts
_SPARSE_S: Final = 60.0  # answers that are rarer do not show that the server answers
_MANY: Final = 20  # interruptions within _REMIND_S that are worth a warning
_GATEWAY: Final = frozenset({502, 503, 504})  # answers of a proxy before the server, or of a server that is not ready
_REFUSALS: Final = frozenset({401, 403, 429})


class Outage:
    """Which clients get no answers, since when, and after how many attempts."""

    def __init__(self, server: str, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._failing: set[str] = set()  # clients whose last request got no answer
        self._since = 0.0
        self._logged_at: float | None = None
        self._first_answer_at: float | None = None
        self._attempts = 0
        self._withheld: Counter[str] = Counter()
        self._heard_since: float | None = None  # the first and the last of the answers that somebody gets meanwhile
        self._heard_at = 0.0
        self._told_part = False
        self._begun: deque[float] = deque(maxlen=_MANY)
        self._told_often_at: float | None = None

    @property
    def lasts(self) -> bool:
        """Whether a client is without an answer now."""
        return bool(self._failing)

    def failed(self, who: str, error: errors.ApiError) -> bool:
        """Note a failure; return whether it belongs to an outage and needs no warning of its own.

        Every other failure counts as an answer.
        """
        unanswered = is_unanswered(error)
        if not unanswered and not (who in self._failing and self._may_start(error)):
            self.answered(who)
            return False
        if not self._failing:
            self._begin(error)
        if unanswered:
            self._first_answer_at = None
        self._failing.add(who)
        self._attempts += 1
        self._warn(error)
        return True

    def answered(self, who: str) -> None:
        """Note an answer; the outage is over when all clients that failed have got one."""
        if who not in self._failing:
            return
        self._failing.discard(who)
        if self._first_answer_at is None:
            self._first_answer_at = self._clock.monotonic()
        if not self._failing and (self._logged_at is not None or self._withheld):
            log.info(
                "the API server answers again",
                server=self._server,
                away_s=round(self._clock.monotonic() - self._since, 1),
                failed_attempts=self._attempts,
                withheld=self._withheld_lines(),
            )

    def heard(self, status: int) -> None:
        """Note the HTTP status of any request of this process, 0 for none: others may have answers meanwhile."""
        if not self._failing or not status or status in _GATEWAY:
            return
        now = self._clock.monotonic()
        if self._heard_since is None or now - self._heard_at > _SPARSE_S:
            self._heard_since = now
        self._heard_at = now

    def withholds(self, event: str, error: errors.ApiError | None = None, count: int = 1) -> bool:
        """Say whether a line that is about to be logged only follows from the outage; it is counted then.

        Lines about an answer of the server are never withheld, except for refusals while it starts.
        """
        if not self._failing or self._in_part():
            return False
        if error is not None and not (is_unanswered(error) or self._may_start(error)):
            return False
        self._withheld[event] += count
        return True

    def _begin(self, error: errors.ApiError) -> None:
        now = self._since = self._clock.monotonic()
        self._logged_at = self._first_answer_at = self._heard_since = None
        self._told_part = False
        self._attempts = 0
        self._withheld.clear()
        self._begun.append(now)
        often = len(self._begun) == _MANY and now - self._begun[0] < _REMIND_S
        if often and (self._told_often_at is None or now - self._told_often_at >= _REMIND_S):
            self._told_often_at = now
            log.warning(
                "the API server does not answer for a moment, again and again",
                server=self._server,
                problem=str(error),
                interruptions=_MANY,
                within_s=round(now - self._begun[0], 1),
            )

    def _warn(self, error: errors.ApiError) -> None:
        now = self._clock.monotonic()
        part = self._in_part()
        again = self._logged_at is not None and now - self._logged_at < _REMIND_S
        if now - self._since < QUIET_S or (again and part == self._told_part):
            return
        self._logged_at = now
        self._told_part = part
        log.warning(
            "the API server does not answer some requests" if part else "the API server does not answer",
            server=self._server,
            problem=str(error),
            for_s=round(now - self._since, 1),
            failed_attempts=self._attempts,
            **({"unanswered": ", ".join(sorted(self._failing))} if part else {}),
            **({"withheld": self._withheld_lines()} if self._withheld else {}),
        )

    def _withheld_lines(self) -> str:
        return ", ".join(f"{event} ({count})" for event, count in sorted(self._withheld.items()))

    def _in_part(self) -> bool:
        """Say whether the server has answered others for so long that it is not away, nor has just started."""
        now = self._clock.monotonic()
        since = self._heard_since
        return since is not None and now - self._heard_at <= _SPARSE_S and now - since >= _STARTING_S

    def _may_start(self, error: errors.ApiError) -> bool:
        """Say whether a refusal may come from a server that has just started."""
        if error.status not in _REFUSALS and error.status < 500:
            return False
        now = self._clock.monotonic()
        if self._first_answer_at is None:
            self._first_answer_at = now
        return now - self._first_answer_at < _STARTING_S


def is_unanswered(error: errors.ApiError) -> bool:
    """Say whether no API server has answered."""
    return isinstance(error, errors.ConnectionFailed | errors.Timeout) or error.status in _GATEWAY
