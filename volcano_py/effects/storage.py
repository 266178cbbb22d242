"""Claims and volumes as the steps of a bind need them: from the watch, or read from the API server."""

from typing import Protocol

import msgspec

from volcano_py.api import keys
from volcano_py.api.storage import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES


class ClaimState(msgspec.Struct, frozen=True, gc=False):
    """A claim at one of its versions."""

    uid: str
    version: str
    volume: str = ""  # the volume it is bound to, or is being bound to
    bind_completed: bool = False
    selected_node: str = ""
    deleting: bool = False
    promised_by: str = ""  # the scheduler that has written the selected node, "": unknown

    @property
    def bound(self) -> bool:
        """Whether the volume controller has finished binding it."""
        return bool(self.volume) and self.bind_completed


class VolumeState(msgspec.Struct, frozen=True, gc=False):
    """A volume at one of its versions."""

    uid: str
    version: str
    claim: str = ""  # namespace/name of the claim it is promised or bound to, "" for none
    claim_uid: str = ""  # "": a user has reserved it for a claim of that name
    by_controller: bool = False  # a controller or scheduler, not a user, has chosen the claim
    phase: str = ""
    deleting: bool = False
    promised_by: str = ""  # the scheduler that has written the claim, "": unknown


class Storage(Protocol):
    """Claims and volumes as the watch shows them."""

    def claim(self, namespace: str, name: str) -> ClaimState | None:
        """Return a claim, None if the watch shows none."""
        ...

    def volume(self, name: str) -> VolumeState | None:
        """Return a volume, None if the watch shows none."""
        ...

    def reaches(self, volume: str, node: str) -> bool | None:
        """Say whether a node can reach a volume; None if the watch does not show the volume yet."""
        ...


class _Metadata(msgspec.Struct, rename="camel", frozen=True, gc=False):
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    annotations: dict[str, str] = {}


class _ClaimSpec(msgspec.Struct, rename="camel", frozen=True, gc=False):
    volume_name: str = ""


class WireClaim(msgspec.Struct, frozen=True, gc=False):
    """A claim on the wire, with the fields that steps depend on."""

    metadata: _Metadata
    spec: _ClaimSpec = _ClaimSpec()

    def state(self) -> ClaimState:
        """Return what it says."""
        meta = self.metadata
        return ClaimState(
            meta.uid,
            meta.resource_version,
            self.spec.volume_name,
            BIND_COMPLETED in meta.annotations,
            meta.annotations.get(SELECTED_NODE, ""),
            meta.deletion_timestamp is not None,
            meta.annotations.get(keys.PROMISED_BY, ""),
        )


class _ClaimRef(msgspec.Struct, frozen=True, gc=False):
    namespace: str = ""
    name: str = ""
    uid: str = ""


class _VolumeSpec(msgspec.Struct, rename="camel", frozen=True, gc=False):
    claim_ref: _ClaimRef | None = None


class _VolumeStatus(msgspec.Struct, frozen=True, gc=False):
    phase: str = ""


class WireVolume(msgspec.Struct, frozen=True, gc=False):
    """A volume on the wire, with the fields that steps depend on."""

    metadata: _Metadata
    spec: _VolumeSpec = _VolumeSpec()
    status: _VolumeStatus = _VolumeStatus()

    def state(self) -> VolumeState:
        """Return what it says."""
        meta, ref = self.metadata, self.spec.claim_ref
        return VolumeState(
            meta.uid,
            meta.resource_version,
            "" if ref is None else f"{ref.namespace}/{ref.name}",
            "" if ref is None else ref.uid,
            BOUND_BY_CONTROLLER in meta.annotations,
            self.status.phase,
            meta.deletion_timestamp is not None,
            meta.annotations.get(keys.PROMISED_BY, ""),
        )


async def read_claim(client: ApiClient, namespace: str, name: str, timeout_s: float) -> ClaimState | None:
    """Read a claim, None if there is none of this name; raise ApiError if it cannot be read."""
    try:
        found = await client.get(PERSISTENT_VOLUME_CLAIMS, name, WireClaim, namespace=namespace, timeout_s=timeout_s)
    except errors.NotFound:
        return None
    return found.state()


async def read_volume(client: ApiClient, name: str, timeout_s: float) -> VolumeState | None:
    """Read a volume, None if there is none of this name; raise ApiError if it cannot be read."""
    try:
        found = await client.get(PERSISTENT_VOLUMES, name, WireVolume, timeout_s=timeout_s)
    except errors.NotFound:
        return None
    return found.state()


def is_older(version: str, than: str) -> bool:
    """Say whether the watch shows an object at an earlier version than a write has returned."""
    if version.isdigit() and than.isdigit():
        return int(version) < int(than)
    return version != than  # no server is known that gives out other versions; then only our own write counts as new
