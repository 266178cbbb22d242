"""Logs resources that the API server refuses to show, all of a process in one line.

A missing role or a wrong token concerns many watches at once, and each of them retries.
"""

from typing import Final

import structlog

from volcano_py.kube import errors
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_COLLECT_S: Final = 2.0  # after the first refusal, so that the line names all
_NEWS_S: Final = 10.0  # after a line, so that the next one names more than one
_REMIND_S: Final = 300.0
FORBIDDEN: Final = "reading resources is forbidden, going on without them"
NOT_SERVED: Final = "resources are not served, going on without them"
_REFUSED: Final = frozenset({401, 403})


class Refusals:
    """Which resources are refused now."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused: set[str] = set()
        self._logged: set[str] = set()
        self._since = 0.0
        self._logged_at: float | None = None
        self.collecting = False
        """Whether resources that are left out are collected until `collected`, so that one line names all."""
        self._left_out: dict[str, dict[str, errors.ApiError]] = {}

    def failed(self, resource: str, error: errors.ApiError) -> bool:
        """Note a failure; return whether it is a refusal and needs no line of its own."""
        if error.status not in _REFUSED:
            self.answered(resource)
            return False
        now = self._clock.monotonic()
        if not self._refused:
            self._since, self._logged_at = now, None
            self._logged.clear()
        self._refused.add(resource)
        if self._is_due(now):
            self._logged_at = now
            self._logged |= self._refused
            log.warning(
                "the API server refuses to show resources",
                resources=", ".join(sorted(self._refused)),
                for_s=round(now - self._since, 1),
                problem=str(error),
            )
        return True

    def answered(self, resource: str) -> None:
        """Note that a resource is shown."""
        if resource not in self._refused:
            return
        self._refused.discard(resource)
        if not self._refused and self._logged_at is not None:
            now = self._clock.monotonic()
            log.info("the API server shows all resources again", for_s=round(now - self._since, 1))

    def left_out(self, resource: str, error: errors.ApiError) -> None:
        """Note that a resource counts as empty because the server does not serve it, or forbids to read it."""
        event = FORBIDDEN if error.status == 403 else NOT_SERVED
        self._left_out.setdefault(event, {})[resource] = error
        if not self.collecting:
            self.collected()

    def collected(self) -> None:
        """Log what was left out since the last time, in one line for each reason."""
        self.collecting = False
        for event, found in self._left_out.items():
            log.warning(event, resources=", ".join(sorted(found)), problem=str(next(iter(found.values()))))
        self._left_out.clear()

    def _is_due(self, now: float) -> bool:
        if self._logged_at is None:
            return now - self._since >= _COLLECT_S
        quiet_s = now - self._logged_at
        return quiet_s >= _REMIND_S or (quiet_s >= _NEWS_S and not self._refused <= self._logged)
