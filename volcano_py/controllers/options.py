"""What can be chosen about a controller manager."""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from volcano_py.api import keys
from volcano_py.controllers.podgroup import controller as podgroup
from volcano_py.controllers.queue import controller as queue
from volcano_py.kube.lease import LeaseOptions
from volcano_py.kube.reflector import ReflectorOptions
from volcano_py.runtime.options import ListenAddress, OptionError
from volcano_py.writing import events
from volcano_py.writing.write_queue import WriteQueueOptions

DEFAULT_METRICS_ADDRESS: Final = ListenAddress("", 8081)
DEFAULT_HEALTH_ADDRESS: Final = ListenAddress("", 11251)

CONTROLLERS: Final = (podgroup.NAME, queue.NAME)
CONTROLLERS_TO_COME: Final = (
    *("job-controller", "gc-controller", "cronjob-controller", "jobflow-controller", "jobtemplate-controller"),
    *("hyperNode-controller", "sharding-controller", "colocation-config-controller"),
)
"""What Volcano has and this program does not have yet: leaving one out is no news, asking for one is a warning."""
EVERY: Final = "*"
LEASE: Final = LeaseOptions(name="vc-controller-manager")
"""The lease by which controller managers agree on who works; Volcano's have the same."""


@dataclass(frozen=True, slots=True)
class ManagerOptions:
    """Settings of one controller manager. The defaults are those of the command line."""

    controllers: frozenset[str] = frozenset(CONTROLLERS)
    scheduler_names: tuple[str, ...] = (keys.SCHEDULER_NAME,)
    default_queue: str = keys.DEFAULT_QUEUE
    inherit_owner_annotations: bool = True
    rate_per_s: float = 50.0
    """Writes per second altogether, in the long run."""
    burst: int = 100
    podgroup_workers: int = 5
    queue_workers: int = 5
    attempts: int = 15
    """Turns in a row that may fail before an object is left to its next change."""
    count_after_s: float = 0.5
    """PodGroups that change within this time cost their queue one write."""
    metrics_address: ListenAddress | None = DEFAULT_METRICS_ADDRESS
    health_address: ListenAddress | None = DEFAULT_HEALTH_ADDRESS
    stop_patience_s: float = 2.0
    """How long events may take to be written when the process is asked to end."""
    reflectors: ReflectorOptions = field(default_factory=ReflectorOptions)
    events: WriteQueueOptions = events.DEFAULT_OPTIONS
    lease: LeaseOptions | None = None
    """The lease by which controller managers agree on who works; None: this one works always."""


class Chosen(NamedTuple):
    """What a list of controllers comes to."""

    controllers: frozenset[str]
    missing: tuple[str, ...] = ()  # asked for by name, and not here yet


def chosen_controllers(text: str) -> Chosen:
    """Read a list of controllers such as ``*,-queue-controller``: ``*`` stands for all that are not mentioned.

    Raises OptionError for a name that nobody knows, and for one that is both asked for and left out.
    """
    wanted: dict[str, bool] = {}
    rest = False
    for entry in (part.strip() for part in text.split(",")):
        if entry == EVERY:
            rest = True
            continue
        name, switch = entry.lstrip("+-"), not entry.startswith("-")
        if name not in CONTROLLERS + CONTROLLERS_TO_COME:
            known = ", ".join(CONTROLLERS)
            raise OptionError(f"{entry!r} is no controller: write *, or some of {known}, each with - to leave it out")
        if wanted.setdefault(name, switch) != switch:
            raise OptionError(f"controller {name} is both asked for and left out: mention it once")
    missing = tuple(name for name in CONTROLLERS_TO_COME if wanted.get(name))
    return Chosen(frozenset(name for name in CONTROLLERS if wanted.get(name, rest)), missing)
