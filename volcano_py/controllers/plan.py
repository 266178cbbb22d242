"""What a controller decides after one look at an object: writes, events and the time of its next look."""

from dataclasses import dataclass

from volcano_py.controllers.writes import Write
from volcano_py.model.decisions import RecordEvent


@dataclass(frozen=True, slots=True)
class Plan:
    """The result of a plain function from observed objects and the time; :class:`.shell.Shell` carries it out."""

    steps: tuple[Write | tuple[Write, ...], ...] = ()
    """Writes in order; the writes of a tuple may be under way at once. A step begins when the one before succeeded."""
    events: tuple[RecordEvent, ...] = ()
    """Recorded after all steps have succeeded."""
    look_again_s: float | None = None
    """Seconds until the next look even if nothing changes; None for never."""


NOTHING = Plan()
"""The plan that does nothing."""
