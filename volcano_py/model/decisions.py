"""The decisions of a cycle: frozen values. The core only returns them; the shell carries them out.

Decisions that belong together (a gang's binds) are emitted as one batch as soon as they are committed. They are
msgspec structs because every pod needs at least one and a frozen dataclass takes three times as long to create.
"""

from collections.abc import Callable

import msgspec

from volcano_py.model.objects import GroupCondition, JobKey, TaskRef


class BindClaim(msgspec.Struct, frozen=True, gc=False):
    """Promise a PersistentVolume to a claim (its claimRef); the volume controller then binds the claim to it."""

    namespace: str
    claim: str
    claim_uid: str
    volume: str


class ProvisionClaim(msgspec.Struct, frozen=True, gc=False):
    """Ask the provisioner of a claim for a volume that a node can reach (the claim's annotation selected-node)."""

    namespace: str
    claim: str
    claim_uid: str
    node: str


PrepareStep = BindClaim | ProvisionClaim
"""What must be done, and have taken effect, before a pod is bound; each step can be undone."""


class Bind(msgspec.Struct, frozen=True, gc=False):
    """Put a pod on a node."""

    task: TaskRef
    node: str
    job: JobKey
    prepare: tuple[PrepareStep, ...] = ()  # in the order in which they are carried out


class Evict(msgspec.Struct, frozen=True, gc=False):
    """Delete a running pod gracefully to free its resources for others; its owner may recreate it.

    The victims of one plan are emitted in one batch, together with the nominations of their preemptors.
    """

    task: TaskRef
    node: str  # the node it runs on
    job: JobKey | None  # its own job, None if it belongs to none
    action: str  # the action that decided: preempt, reclaim, gangpreempt, gangreclaim or shuffle
    message: str  # for the pod's users: which job it is evicted for
    beneficiary: JobKey | None = None  # the job that gets the resources, None if no job does


class Nominate(msgspec.Struct, frozen=True, gc=False):
    """Nominate a node on a pending pod; room on the node is reserved for the pod until the victims are gone."""

    task: TaskRef
    node: str  # "" withdraws an earlier nomination


class LiftGate(msgspec.Struct, frozen=True, gc=False):
    """Remove the queue's scheduling gate from a pod: its queue has room for it."""

    task: TaskRef


class SetPodGroupStatus(msgspec.Struct, frozen=True, gc=False):
    """Write the phase, the counts and the changed conditions of a PodGroup."""

    job: JobKey
    uid: str
    phase: str
    running: int
    succeeded: int
    failed: int
    conditions: tuple[GroupCondition, ...]  # the ones to add or replace, by type


class SetPodCondition(msgspec.Struct, frozen=True, gc=False):
    """Write the condition PodScheduled=False with its reason on a pod."""

    task: TaskRef
    reason: str
    message: str


class RecordEvent(msgspec.Struct, frozen=True, gc=False):
    """Record an event that tells users what happened to an object."""

    kind: str  # Pod or PodGroup
    namespace: str
    name: str
    uid: str
    type: str  # Normal or Warning
    reason: str
    message: str

    def __str__(self) -> str:
        """Name it in the log."""
        return f"event {self.reason} of {self.kind} {self.namespace}/{self.name}"


Decision = Bind | Evict | Nominate | LiftGate | SetPodGroupStatus | SetPodCondition | RecordEvent
Emit = Callable[[tuple[Decision, ...]], None]
"""A function that takes one batch of decisions that belong together."""
