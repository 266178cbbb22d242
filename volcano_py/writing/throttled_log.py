"""Lines of the log that would come by the thousand: one per cause and period, with the number of those not printed."""

from dataclasses import dataclass
from typing import Any, Final

import structlog

from volcano_py.model.objects import TaskRef
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_EVERY_S: Final = 1.0
_CAUSES: Final = 64  # those that are remembered; an older one is as good as new


@dataclass(slots=True)
class _Told:
    at: float
    silent: int = 0


class ThrottledLog:
    """Lines of one kind: warnings, unless ``level`` says otherwise."""

    def __init__(self, event: str, clock: Clock, every_s: float = _EVERY_S, level: str = "warning") -> None:
        self._event = event
        self._clock = clock
        self._every_s = every_s
        self._level = level
        self._told: dict[str, _Told] = {}  # by cause, the one told last at the end

    def tell(self, cause: str = "", count: int = 1, **facts: Any) -> None:
        """Log a line, or count it if one of the same cause is too recent; ``count`` is how many it stands for."""
        now = self._clock.monotonic()
        told = self._told.get(cause)
        if told is not None and now - told.at < self._every_s:
            told.silent += count
            return
        getattr(log, self._level)(self._event, **facts, not_printed=0 if told is None else told.silent)
        self._told.pop(cause, None)
        self._told[cause] = _Told(now)
        if len(self._told) > _CAUSES:
            del self._told[next(iter(self._told))]


def cause_of(why: str, task: TaskRef) -> str:
    """Return what failures of many pods have in common: why one failed, without its name."""
    return why.replace(str(task), "*").replace(task.name, "*")
