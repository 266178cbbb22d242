"""What the job controller sees of one job, and what it decides: the two sides of `decision.plan`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from volcano_py.api.batch import Command, Job, JobStatus, Task
from volcano_py.api.scheduling import PodGroup, Queue
from volcano_py.controllers.job.delays import Delayed
from volcano_py.controllers.job.happenings import Trigger
from volcano_py.controllers.job.members import Member, Members
from volcano_py.controllers.job.plugins.contract import PluginObject
from volcano_py.controllers.job.volumes import Claim
from volcano_py.controllers.writes import Write
from volcano_py.model.decisions import RecordEvent


class Problem(Exception):
    """A job cannot proceed; the reason is one word, the message says what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(slots=True)
class Observed:
    """One job and all that a decision about it depends on. The decision changes nothing here."""

    job: Job
    """With defaults."""
    members: Members
    group: PodGroup | None = None
    queue: Queue | None = None
    priorities: Mapping[str, int] = field(default_factory=dict)
    """The values of priority classes by name."""
    claims: Mapping[str, Claim] = field(default_factory=dict)
    """The existing claims by namespace/name."""
    commands: Sequence[Command] = ()
    """The Commands for this job, oldest first."""
    answered: Mapping[str, str] = field(default_factory=dict)
    """Notes about what another program has answered, which the status does not have yet."""
    triggers: Sequence[Trigger] = ()
    """What happened since the last look, in order."""
    due: Sequence[Delayed] = ()
    """Delayed actions whose time has come."""
    delayed: Mapping[str, Delayed] = field(default_factory=dict)
    """The delayed actions that are armed, by key."""
    objects: Sequence[PluginObject] = ()
    """What the plugins of the job want to exist."""
    outdated: Sequence[PluginObject] = ()
    """Those of them that have not been written as they are."""
    removed: bool = False
    """Whether this process has deleted the objects of plugins since it created any."""
    told: str = ""
    """The reason of the waiting PodGroup that the last event named."""
    problem: Problem | None = None
    """Why a plugin cannot be used, or why a pod could not be created."""
    unheeded: Mapping[str, object] = field(default_factory=dict)
    """Fields of the PodGroup that the API server left as they were when they were written last."""
    written_ago_s: float = float("inf")
    """Seconds since the last write of the status."""


@dataclass(frozen=True, slots=True)
class JobPlan:
    """What to do for a job. The parts are carried out in this order."""

    status: JobStatus | None = None
    """Written first, so that a decision is never forgotten; None leaves it as it is."""
    events: tuple[RecordEvent, ...] = ()
    ensure: tuple[PluginObject, ...] = ()
    """Created, or changed if they are ours."""
    writes: tuple[Write, ...] = ()
    remove: tuple[PluginObject, ...] = ()
    """Deleted if they are ours."""
    kill: tuple[Member, ...] = ()
    """Marked, then deleted."""
    delete: tuple[Member, ...] = ()
    """Deleted because they are not needed any more."""
    create: tuple[tuple[Task, tuple[int, ...]], ...] = ()
    """Indices of pods by task, in order."""
    keep: tuple[Member, ...] = ()
    """Needed again before they were deleted: they lose their mark."""
    handled: int = 0
    """How many triggers have been answered."""
    arm: tuple[Delayed, ...] = ()
    disarm: tuple[str, ...] = ()
    """Keys of delayed actions that are void or carried out."""
    told: str = ""
    """The reason of the waiting PodGroup that the events name."""
    look_again_s: float | None = None
    again: bool = False
    """Whether another look must follow at once."""
