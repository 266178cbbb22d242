"""A throttled log, for lines that could come by the thousand: one per cause and period, with a count of the others."""

from dataclasses import dataclass
from typing import Any, Final

import structlog

from volcano_py.kube import errors
from volcano_py.kube.outage import Outage
from volcano_py.model.objects import TaskRef
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_EVERY_S: Final = 1.0
_CAUSES: Final = 64  # that are remembered; an older one counts as new


@dataclass(slots=True)
class _Logged:
    at: float
    not_printed: int = 0


class ThrottledLog:
    """Lines of one kind: warnings, unless ``level`` says otherwise."""

    def __init__(
        self,
        event: str,
        clock: Clock,
        every_s: float = _EVERY_S,
        level: str = "warning",
        outage: Outage | None = None,
    ) -> None:
        """Prepare; lines that only follow from an ``outage`` are withheld."""
        self._event = event
        self._clock = clock
        self._every_s = every_s
        self._level = level
        self._outage = outage
        self._logged: dict[str, _Logged] = {}  # by cause; the one logged last stands at the end

    def log(self, cause: str = "", count: int = 1, why: errors.ApiError | None = None, **facts: Any) -> None:
        """Log a line, or count it if the last one of its cause is too recent; it stands for ``count`` events.

        ``why`` is the answer of the API server that the line is about, if there is one.
        """
        if self._outage is not None and self._outage.withholds(self._event, why, count):
            return
        now = self._clock.monotonic()
        last = self._logged.get(cause)
        if last is not None and now - last.at < self._every_s:
            last.not_printed += count
            return
        getattr(log, self._level)(self._event, **facts, not_printed=0 if last is None else last.not_printed)
        self._logged.pop(cause, None)
        self._logged[cause] = _Logged(now)
        if len(self._logged) > _CAUSES:
            del self._logged[next(iter(self._logged))]


def cause_of(why: str, task: TaskRef) -> str:
    """Return what the failures of many pods have in common: the reason of one failure without the name of its pod."""
    return why.replace(str(task), "*").replace(task.name, "*")
