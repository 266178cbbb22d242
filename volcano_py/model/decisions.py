"""What a cycle decides: frozen values that the shell carries out. The core never performs them.

Decisions that belong together (a gang's binds) are emitted together, as one batch, the moment they are committed.
There is at least one for every pod, hence structs: a frozen dataclass takes three times as long to make.
"""

from collections.abc import Callable

import msgspec

from volcano_py.model.objects import GroupCondition, JobKey, TaskRef


class Bind(msgspec.Struct, frozen=True, gc=False):
    """Put a pod on a node."""

    task: TaskRef
    node: str
    job: JobKey


class Evict(msgspec.Struct, frozen=True, gc=False):
    """Delete a pod that runs, gracefully, so that others get its room; its owner may make it anew.

    The victims of one plan are emitted in one batch, with the nominations of those for whom they go.
    """

    task: TaskRef
    node: str  # where it stands
    job: JobKey | None  # its own job, None if it belongs to none
    action: str  # who decided: preempt, reclaim, gangpreempt, gangreclaim or shuffle
    message: str  # for the pod's users: for whom it goes
    beneficiary: JobKey | None = None  # the job that gets the room, None if no job does


class Nominate(msgspec.Struct, frozen=True, gc=False):
    """Write on a pending pod the node whose room is held for it until those who leave are gone."""

    task: TaskRef
    node: str  # "" takes an earlier nomination back


class LiftGate(msgspec.Struct, frozen=True, gc=False):
    """Take the scheduling gate of its queue away from a pod: the queue may hold it."""

    task: TaskRef


class SetPodGroupStatus(msgspec.Struct, frozen=True, gc=False):
    """Write the phase, the counts and the changed conditions of a PodGroup."""

    job: JobKey
    uid: str
    phase: str
    running: int
    succeeded: int
    failed: int
    conditions: tuple[GroupCondition, ...]  # the ones to upsert, by type


class SetPodCondition(msgspec.Struct, frozen=True, gc=False):
    """Write PodScheduled=False on a pod, with the reason."""

    task: TaskRef
    reason: str
    message: str


class RecordEvent(msgspec.Struct, frozen=True, gc=False):
    """Tell the users of an object what happened to it."""

    kind: str  # Pod or PodGroup
    namespace: str
    name: str
    uid: str
    type: str  # Normal or Warning
    reason: str
    message: str


Decision = Bind | Evict | Nominate | LiftGate | SetPodGroupStatus | SetPodCondition | RecordEvent
Emit = Callable[[tuple[Decision, ...]], None]
"""Takes one batch of decisions that belong together."""
