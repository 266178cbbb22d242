"""Faults of ours: exceptions that nobody expected, in the work for one object.

Such an exception costs the work for this object, not the process. Otherwise a single object that our code cannot cope
with would end every process that reads it, and each restart would end at it, too. It is logged with its traceback.
Tests switch survival off, so that a fault ends the program, and the test fails.
"""

import traceback
from pathlib import Path
from typing import ClassVar, Final

import structlog

from volcano_py.kube import errors
from volcano_py.runtime.clock import Clock

log = structlog.get_logger()

_TELL_AGAIN_S: Final = 60.0  # a fault at the same place in the code is logged as often as this
_REPORT_IT: Final = "please report it, with the traceback"


class OwnFaults:
    """The faults in one part of a process."""

    survived: ClassVar[bool] = True
    """Whether the process goes on after a fault."""

    def __init__(self, part: str, clock: Clock) -> None:
        self._part = part
        self._clock = clock
        self._told: dict[str, float] = {}  # when a fault was logged last, by its place in the code

    def survive(self, what: str, error: Exception) -> errors.OwnFault:
        """Log an exception in the work for an object, and return it as an error of that work; or raise it in tests."""
        if not self.survived:
            raise error
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        now = self._clock.monotonic()
        if now - self._told.get(place, float("-inf")) >= _TELL_AGAIN_S:
            self._told[place] = now
            event = "a fault of ours: the work for this object failed, that for others goes on"
            log.error(event, part=self._part, object=what, what_to_do=_REPORT_IT, exc_info=error)
        problem = f"{type(error).__name__}: {error} ({place}); this is a fault of ours: {_REPORT_IT}"
        return errors.OwnFault("reconcile", what, problem, maybe_applied=True)
