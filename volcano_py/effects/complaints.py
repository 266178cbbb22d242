"""Warnings that would come by the thousand: one line a second, with the number of those that were not printed."""

from typing import Any, Final

import structlog

from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_EVERY_S: Final = 1.0


class Complaints:
    """Warnings of one kind."""

    def __init__(self, event: str, clock: Clock, every_s: float = _EVERY_S) -> None:
        self._event = event
        self._clock = clock
        self._every_s = every_s
        self._told_at = float("-inf")
        self._silent = 0

    def tell(self, **facts: Any) -> None:
        """Log a warning, or count it if the last one is too recent."""
        now = self._clock.monotonic()
        if now - self._told_at < self._every_s:
            self._silent += 1
            return
        log.warning(self._event, **facts, not_printed=self._silent)
        self._told_at, self._silent = now, 0
