"""Settings of a controller manager."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from volcano_py.controllers.controller import ControllerOptions
from volcano_py.controllers.table import CONTROLLERS
from volcano_py.kube.lease import LeaseOptions
from volcano_py.kube.reflector import ReflectorOptions
from volcano_py.runtime.options import ListenAddress, OptionError
from volcano_py.writing import events
from volcano_py.writing.write_queue import WriteQueueOptions

DEFAULT_METRICS_ADDRESS: Final = ListenAddress("", 8081)
DEFAULT_HEALTH_ADDRESS: Final = ListenAddress("", 11251)

CONTROLLERS_TO_COME: Final = ("sharding-controller", "colocation-config-controller")
"""Volcano's controllers that are missing here. Asking for one leads to a warning; leaving one out does not."""
EVERY: Final = "*"
LEASE: Final = LeaseOptions(name="vc-controller-manager")
"""The lease of the leader election; Volcano's controller managers use the same one."""


@dataclass(frozen=True, slots=True)
class ManagerOptions(ControllerOptions):
    """Settings of one controller manager. The defaults are those of the command line."""

    controllers: frozenset[str] = frozenset(CONTROLLERS)
    rate_per_s: float | None = None
    """Writes per second of all controllers together, in the long run; None for no limit."""
    burst: int = 100
    metrics_address: ListenAddress | None = DEFAULT_METRICS_ADDRESS
    health_address: ListenAddress | None = DEFAULT_HEALTH_ADDRESS
    stop_patience_s: float = 2.0
    """How long the process waits at its end until the events are written."""
    reflectors: ReflectorOptions = field(default_factory=ReflectorOptions)
    events: WriteQueueOptions = events.DEFAULT_OPTIONS
    lease: LeaseOptions | None = None
    """The lease of the leader election; without one, this controller manager always works."""


class Chosen(NamedTuple):
    """A list of controllers from the command line, as read."""

    controllers: frozenset[str]
    missing: tuple[str, ...] = ()  # asked for by name, but not implemented yet


def chosen_controllers(text: str) -> Chosen:
    """Read a list of controllers such as ``*,-queue-controller``; ``*`` means all that are not mentioned.

    Raises OptionError for an unknown name, and for one that is both asked for and left out.
    """
    wanted: dict[str, bool] = {}
    rest = False
    for entry in (part.strip() for part in text.split(",")):
        if entry == EVERY:
            rest = True
            continue
        name, switch = entry.lstrip("+-"), not entry.startswith("-")
        if name not in CONTROLLERS and name not in CONTROLLERS_TO_COME:
            known = ", ".join(sorted(CONTROLLERS))
            raise OptionError(
                f"{entry!r} is not a controller: write *, or some of {known}, each with - to leave it out"
            )
        if wanted.setdefault(name, switch) != switch:
            raise OptionError(f"controller {name} is both asked for and left out: mention it once")
    missing = tuple(name for name in CONTROLLERS_TO_COME if wanted.get(name))
    return Chosen(frozenset(name for name in CONTROLLERS if wanted.get(name, rest)), missing)
