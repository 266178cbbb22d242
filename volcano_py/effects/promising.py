"""Writes promises to volumes and claims, and takes them back; no request here overwrites somebody else's change.

Each write names the uid and the version of the object that it was decided on, so that it fails if the object has
changed meanwhile; then the object is read again. The first attempt trusts what the watch shows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.api import keys
from volcano_py.api.storage import BOUND_BY_CONTROLLER, SELECTED_NODE
from volcano_py.effects.promises import (
    USED_PHASES,
    TakeBack,
    claim_of,
    taking_back_request,
    taking_back_volume,
    why_not_promised,
    why_not_this_volume,
)
from volcano_py.effects.storage import (
    ClaimState,
    Storage,
    VolumeState,
    WireClaim,
    WireVolume,
    read_claim,
    read_volume,
)
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.outage import Outage
from volcano_py.kube.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from volcano_py.model.decisions import BindClaim, PrepareStep, ProvisionClaim

YES: Final = "yes"


@dataclass(frozen=True, slots=True)
class Promised:
    """A promise stands."""

    version: str
    """The version of the volume or claim that carries it."""


@dataclass(frozen=True, slots=True)
class NotPromised:
    """A promise was not made and will not be."""

    why: str


class Promising:
    """Makes promises and takes them back; each call may raise ApiError, and may then be repeated."""

    def __init__(self, client: ApiClient, storage: Storage, *, owner: str, timeout_s: float) -> None:
        """``owner`` is the name of the scheduler; it is written beside each promise."""
        self._client = client
        self.storage = storage
        """What the watch shows."""
        self._owner = owner
        self._timeout_s = timeout_s

    # Promises

    async def promise(self, step: PrepareStep, sending: Callable[[], None], *, shown: bool) -> Promised | NotPromised:
        """Promise what a step says, unless it is promised already; call ``sending`` before a request that writes.

        ``shown`` says whether the watch may be trusted; without it, objects are read.
        """
        claim = await self._claim(step, shown)
        why = why_not_promised(step, claim)
        if claim is None or why:
            return await self._after_reading(step, sending, shown, why)
        if isinstance(step, ProvisionClaim):
            if claim.volume or claim.selected_node == step.node:
                return Promised(claim.version)
            sending()
            return Promised(await self._write_claim(step, claim, step.node))
        volume = await self._volume(step, shown)
        why = why_not_this_volume(step, volume)
        if volume is None or why:
            return await self._after_reading(step, sending, shown, why)
        if volume.claim_uid == step.claim_uid:
            return Promised(volume.version)
        sending()
        return Promised(await self._write_volume(step, volume, _promise_to(step, volume, self._owner)))

    async def _after_reading(
        self, step: PrepareStep, sending: Callable[[], None], shown: bool, why: str
    ) -> Promised | NotPromised:
        """Refuse only what the API server confirms: the watch may be late."""
        return await self.promise(step, sending, shown=False) if shown else NotPromised(why)

    @property
    def outage(self) -> Outage:
        """Withholds what only follows from an outage of the API server."""
        return self._client.outage

    # Back again

    async def take_back(self, step: PrepareStep, *, only_fresh: bool = False) -> bool:
        """Take a promise back if it still stands and its claim is not bound; say whether there was something to do.

        Raises Conflict while the volume controller is binding. ``only_fresh`` leaves volumes alone that the volume
        controller has already released or given up: they may contain data.
        """
        claim = await read_claim(self._client, step.namespace, step.claim, self._timeout_s)
        if isinstance(step, ProvisionClaim):
            what = taking_back_request(step, claim, self._owner)
            if what is TakeBack.NOW and claim is not None:
                await self._write_claim(step, claim, None)
            return what is TakeBack.NOW
        volume = await read_volume(self._client, step.volume, self._timeout_s)
        what = taking_back_volume(step, volume, claim, self._owner)
        if what is TakeBack.LATER:
            raise errors.Conflict("patch", step.volume, f"the volume controller is binding claim {claim_of(step)}")
        if what is TakeBack.NOTHING or volume is None:
            return False
        gone = claim is None or claim.uid != step.claim_uid
        if only_fresh and gone and volume.phase in USED_PHASES:
            return False
        await self._write_volume(step, volume, _promise_to_nobody(volume))
        return True

    # Requests

    async def _claim(self, step: PrepareStep, shown: bool) -> ClaimState | None:
        if shown:
            return self.storage.claim(step.namespace, step.claim)
        return await read_claim(self._client, step.namespace, step.claim, self._timeout_s)

    async def _volume(self, step: BindClaim, shown: bool) -> VolumeState | None:
        return (
            self.storage.volume(step.volume) if shown else await read_volume(self._client, step.volume, self._timeout_s)
        )

    async def _write_claim(self, step: ProvisionClaim, claim: ClaimState, node: str | None) -> str:
        annotations = {SELECTED_NODE: node, keys.PROMISED_BY: None if node is None else self._owner}
        body = {"metadata": {"uid": claim.uid, "resourceVersion": claim.version, "annotations": annotations}}
        made = await self._client.patch(
            PERSISTENT_VOLUME_CLAIMS,
            step.claim,
            body,
            WireClaim,
            namespace=step.namespace,
            timeout_s=self._timeout_s,
        )
        return made.metadata.resource_version

    async def _write_volume(self, step: BindClaim, volume: VolumeState, change: dict[str, Any]) -> str:
        made = await self._client.patch(PERSISTENT_VOLUMES, step.volume, change, WireVolume, timeout_s=self._timeout_s)
        return made.metadata.resource_version


def _promise_to(step: BindClaim, volume: VolumeState, owner: str) -> dict[str, Any]:
    """Return the change of a volume by which it is promised.

    A volume that a user has reserved for the claim gets only the uid of the claim, as kube-scheduler does it.
    """
    reserved = bool(volume.claim)
    ref = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": step.namespace,
        "name": step.claim,
        "uid": step.claim_uid,
    }
    annotations = {keys.PROMISED_BY: owner} if reserved else {keys.PROMISED_BY: owner, BOUND_BY_CONTROLLER: YES}
    return _change(volume, annotations, ref)


def _promise_to_nobody(volume: VolumeState) -> dict[str, Any]:
    """Return the change that takes a promise back; a user's reservation without the uid stays."""
    if not volume.by_controller:
        return _change(volume, {keys.PROMISED_BY: None}, {"uid": None})
    return _change(volume, {keys.PROMISED_BY: None, BOUND_BY_CONTROLLER: None}, None)


def _change(volume: VolumeState, annotations: dict[str, Any], ref: dict[str, Any] | None) -> dict[str, Any]:
    metadata = {"uid": volume.uid, "resourceVersion": volume.version, "annotations": annotations}
    return {"metadata": metadata, "spec": {"claimRef": ref}}
