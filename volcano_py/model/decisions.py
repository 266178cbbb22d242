"""What a cycle decides: frozen values that the shell carries out. The core never performs them.

Decisions that belong together (a gang's binds) are emitted together, as one batch, the moment they are committed.
"""

from collections.abc import Callable
from dataclasses import dataclass

from volcano_py.model.objects import GroupCondition, JobKey, TaskRef


@dataclass(frozen=True, slots=True)
class Bind:
    """Put a pod on a node."""

    task: TaskRef
    node: str
    job: JobKey


@dataclass(frozen=True, slots=True)
class SetPodGroupStatus:
    """Write the phase, the counts and the changed conditions of a PodGroup."""

    job: JobKey
    uid: str
    phase: str
    running: int
    succeeded: int
    failed: int
    conditions: tuple[GroupCondition, ...]  # the ones to upsert, by type


@dataclass(frozen=True, slots=True)
class SetPodCondition:
    """Write PodScheduled=False on a pod, with the reason."""

    task: TaskRef
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """Tell the users of an object what happened to it."""

    kind: str  # Pod or PodGroup
    namespace: str
    name: str
    uid: str
    type: str  # Normal or Warning
    reason: str
    message: str


Decision = Bind | SetPodGroupStatus | SetPodCondition | RecordEvent
Emit = Callable[[tuple[Decision, ...]], None]
"""Takes one batch of decisions that belong together."""
