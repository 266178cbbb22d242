"""Needs of pods: what a pod's claims need of a node, read from claims, volumes and storage classes; interned."""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple, Protocol

from volcano_py.model.objects import TaskRecord
from volcano_py.model.pod_needs import NO_NEED, PodNeed, Reached, SharedVolume, Wanted
from volcano_py.model.rejections import Reason
from volcano_py.model.volumes import (
    LOST,
    READ_WRITE_ONCE_POD,
    WAIT_FOR_FIRST_CONSUMER,
    ClaimKey,
    ClaimRecord,
    StorageClassRecord,
    TaskClaim,
    VolumeHandle,
    VolumeRecord,
)

_UNBOUND: Final = Reason("predicates", "unbound-claims", "pod has unbound immediate PersistentVolumeClaims")


class Storage(Protocol):
    """What is known about storage, including what has been promised."""

    problem: str
    """Why claims cannot be read at all, "" if they can."""

    @property
    def classes(self) -> Mapping[str, StorageClassRecord]:
        """Storage classes by name."""

    @property
    def limited(self) -> Collection[str]:
        """The CSI drivers that limit the volumes of a node."""

    def claim(self, key: ClaimKey) -> ClaimRecord | None:
        """Return a claim, None if there is none of this name."""

    def volume(self, name: str) -> VolumeRecord | None:
        """Return a volume, None if there is none of this name."""

    def reserved(self, claim: ClaimRecord) -> tuple[str, ...]:
        """Return the volumes that are reserved for a claim, by name."""

    def sharing(self, key: ClaimKey, handle: VolumeHandle | None = None) -> ClaimKey | None:
        """Return the key under which the pods count that use a claim or its volume, None if at most one does."""


class Use(NamedTuple):
    """What a pod does with its claims."""

    need: PodNeed = NO_NEED
    wanted: tuple[ClaimRecord, ...] = ()  # the claims of `PodNeed.wanted`
    handles: tuple[VolumeHandle, ...] = ()  # of its volumes whose drivers have a limit


def waiting_use(storage: Storage, task: TaskRecord) -> Use:
    """Return the use of a pod that waits for a node."""
    refusal = _refusal(storage, task)
    if refusal is not None:
        by_zone, by_limits = _zone_refusal(storage, task), _limits_refusal(storage, task)
        return Use(PodNeed(refusal, zone_refusal=by_zone, limits_refusal=by_limits))
    reached: list[Reached] = []
    wanted: list[ClaimRecord] = []
    for use in task.claims:
        claim = storage.claim(ClaimKey(task.namespace, use.name))
        if claim is None:
            continue
        if claim.bound:
            volume = storage.volume(claim.volume)
            if volume is None:
                reached.append(Reached(missing=True))
            elif volume.node_affinity is not None or volume.zones:
                reached.append(Reached(volume.node_affinity, () if use.ephemeral else volume.zones))
        else:
            wanted.append(claim)
    wanted.sort(key=lambda claim: claim.size)
    held = holding_use(storage, task)
    need = held.need._replace(reached=tuple(reached), wanted=tuple(_wanted(storage, claim) for claim in wanted))
    return Use(need, tuple(wanted), held.handles)


def holding_use(storage: Storage, task: TaskRecord) -> Use:
    """Return the use of a pod on a node: only what others cannot have while it is there."""
    handles: list[VolumeHandle] = []
    private: dict[str, int] = {}
    shared: list[SharedVolume] = []
    exclusive: list[ClaimKey] = []
    for use in task.claims:
        key = ClaimKey(task.namespace, use.name)
        claim = storage.claim(key)
        if claim is None:
            continue
        if READ_WRITE_ONCE_POD in claim.access_modes and storage.sharing(key) is not None:
            exclusive.append(key)
        handle = _handle(storage, claim) if storage.limited else None
        if handle is not None and handle.driver in storage.limited and handle not in handles:
            handles.append(handle)
            several = storage.sharing(key, handle)
            if several is None:
                private[handle.driver] = private.get(handle.driver, 0) + 1
            else:
                shared.append(SharedVolume(handle.driver, several))
    need = PodNeed(
        attached=tuple(sorted(private.items())),
        shared=tuple(sorted(shared)),
        exclusive=tuple(sorted(exclusive)),
        disks=task.disks,
    )
    return Use(need, handles=tuple(handles))


def _refusal(storage: Storage, task: TaskRecord) -> Reason | None:
    """Return why no node will do for a pod, None if one may; `_zone_refusal` and `_limits_refusal` refuse no other."""
    if storage.problem:
        return _unreadable(storage)
    found = _found(storage, task)
    for use, claim in found:
        if claim is None and not use.ephemeral:
            return _no_claim(use)
    for use, claim in found:
        refusal = _refused_claim(task, use, claim)
        if refusal is not None:
            return refusal
    if any(claim is not None and not claim.bound and not _waits(storage, claim) for _, claim in found):
        return _UNBOUND
    for use, claim in found:
        if claim is not None and claim.volume and not use.ephemeral and storage.volume(claim.volume) is None:
            return _no_volume(claim)
    return None


def _zone_refusal(storage: Storage, task: TaskRecord) -> Reason | None:
    """Return why VolumeZone takes no node for a pod (kube-scheduler v1.36, volumezone: PreFilter), None if it may."""
    if storage.problem:
        return _unreadable(storage)
    for use, claim in _found(storage, task):
        if use.ephemeral:
            continue
        refusal = _no_claim(use) if claim is None else _without_zone(storage, claim)
        if refusal is not None:
            return refusal
    return None


def _without_zone(storage: Storage, claim: ClaimRecord) -> Reason | None:
    """Return why it is not known, and never will be, in which zone the volume of a claim must be; None if it is."""
    if claim.volume:
        return _no_volume(claim) if storage.volume(claim.volume) is None else None
    known = storage.classes.get(claim.storage_class)
    if not claim.storage_class:
        text = "PersistentVolumeClaim had no pv name and storageClass name"
    elif known is None:
        text = f'storageclass.storage.k8s.io "{claim.storage_class}" not found'
    elif not known.binding_mode:
        text = f'VolumeBindingMode not set for StorageClass "{known.name}"'
    elif known.binding_mode == WAIT_FOR_FIRST_CONSUMER:
        return None
    else:
        text = "PersistentVolume had no name"
    return Reason("predicates", "unbound-claims", text)


def _limits_refusal(storage: Storage, task: TaskRecord) -> Reason | None:
    """Return why NodeVolumeLimits takes no node for a pod (kube-scheduler v1.36, nodevolumelimits), None if it may."""
    if storage.problem:
        return _unreadable(storage)
    for use, claim in _found(storage, task):
        if claim is None:
            return _no_claim(use)
        if use.ephemeral and claim.owner != task.uid:
            return _foreign(task, claim)
    return None


def _found(storage: Storage, task: TaskRecord) -> list[tuple[TaskClaim, ClaimRecord | None]]:
    return [(use, storage.claim(ClaimKey(task.namespace, use.name))) for use in task.claims]


def _unreadable(storage: Storage) -> Reason:
    return Reason("predicates", "claims-unreadable", storage.problem)


def _no_claim(use: TaskClaim) -> Reason:
    return Reason("predicates", "claim-missing", f'persistentvolumeclaim "{use.name}" not found')


def _no_volume(claim: ClaimRecord) -> Reason:
    return Reason("predicates", "volume-missing", f'persistentvolume "{claim.volume}" not found')


def _foreign(task: TaskRecord, claim: ClaimRecord) -> Reason:
    pod = f"{task.namespace}/{task.name}"
    return Reason("predicates", "claim-foreign", f"PVC {claim.key} was not created for pod {pod} (pod is not owner)")


def _refused_claim(task: TaskRecord, use: TaskClaim, claim: ClaimRecord | None) -> Reason | None:
    if claim is None:
        text = f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
        return Reason("predicates", "claim-awaited", text)
    if claim.phase == LOST:
        text = f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.volume}"'
        return Reason("predicates", "claim-lost", text)
    if claim.deleting:
        return Reason("predicates", "claim-deleting", f'persistentvolumeclaim "{claim.name}" is being deleted')
    if use.ephemeral and claim.owner != task.uid:
        return _foreign(task, claim)
    return None


def _waits(storage: Storage, claim: ClaimRecord) -> bool:
    """Say whether an unbound claim gets its volume when its pod gets a node."""
    known = storage.classes.get(claim.storage_class) if claim.storage_class else None
    return not claim.volume and known is not None and known.binding_mode == WAIT_FOR_FIRST_CONSUMER


def _wanted(storage: Storage, claim: ClaimRecord) -> Wanted:
    return Wanted(
        claim.storage_class,
        claim.size,
        claim.access_modes,
        claim.volume_mode,
        claim.attributes_class,
        claim.selector,
        claim.selected_node,
        () if claim.selected_node else storage.reserved(claim),
        storage.sharing(claim.key),
    )


def _handle(storage: Storage, claim: ClaimRecord) -> VolumeHandle | None:
    """Return what a CSI driver calls the volume of a claim; a volume that is yet to be made has a name of its own."""
    if claim.volume:
        volume = storage.volume(claim.volume)
        if volume is not None:
            return volume.handle
    known = storage.classes.get(claim.storage_class) if claim.storage_class else None
    return VolumeHandle(known.provisioner, f"{claim.key} to come") if known is not None and known.provisions else None


class NeedTable:
    """Needs by number; equal needs share one, and a number becomes free when no pod has it. Number 0 is no need."""

    def __init__(self) -> None:
        self._numbers: dict[PodNeed, int] = {NO_NEED: 0}
        self._needs: list[PodNeed] = [NO_NEED]
        self._uses: list[int] = [1]
        self._free: list[int] = []
        self._frozen: tuple[PodNeed, ...] | None = None

    def acquire(self, need: PodNeed) -> int:
        """Return the number of a need and count one more pod."""
        found = self._numbers.get(need)
        if found is not None:
            self._uses[found] += 1  # nobody asks how often number 0 is used
            return found
        if self._free:
            found = self._free.pop()
            self._needs[found] = need
            self._uses[found] = 1
        else:
            found = len(self._needs)
            self._needs.append(need)
            self._uses.append(1)
        self._numbers[need] = found
        self._frozen = None
        return found

    def release(self, number: int) -> None:
        """Count one pod less; an unused need is removed."""
        if not number:
            return
        self._uses[number] -= 1
        if not self._uses[number]:
            del self._numbers[self._needs[number]]
            self._needs[number] = NO_NEED
            self._free.append(number)
            self._frozen = None

    def freeze(self) -> tuple[PodNeed, ...]:
        """Return the needs by number."""
        if self._frozen is None:
            self._frozen = tuple(self._needs)
        return self._frozen
