"""Volumes that are one and the same to their CSI driver: several PersistentVolumes with one driver and handle.

So the pods of two namespaces share a file system that was made by hand. A driver attaches it to a node once, and it
counts once towards the limit of the node (kube-scheduler, nodevolumelimits/csi). Hardly any cluster has such volumes.
"""

from collections.abc import Sequence

from volcano_py.model.volumes import ClaimKey, VolumeHandle


class Twins:
    """The names of volumes by handle."""

    def __init__(self) -> None:
        self._volumes: dict[VolumeHandle, list[str]] = {}  # a set for each would take twice the memory
        self._keys: dict[ClaimKey, VolumeHandle] = {}

    def change(self, name: str, before: VolumeHandle | None, after: VolumeHandle | None) -> list[VolumeHandle]:
        """Note the handle of a volume; return the handles that became, or are no longer, those of several."""
        found: list[VolumeHandle] = []
        if before is not None:
            self._volumes[before].remove(name)
            found.append(before)
        if after is not None:
            self._volumes.setdefault(after, []).append(name)
            found.append(after)
        return [handle for handle in found if self._turns(handle)]

    def _turns(self, handle: VolumeHandle) -> bool:
        """Keep the key of a handle only if several volumes have it; return whether that is new."""
        key, several = _key(handle), len(self._volumes[handle]) > 1
        had = self._keys.pop(key, None) is not None
        if several:
            self._keys[key] = handle
        if not self._volumes[handle]:
            del self._volumes[handle]
        return several != had

    def key(self, handle: VolumeHandle) -> ClaimKey | None:
        """Return a key for a handle that several volumes have, else None; no claim has that key."""
        key = _key(handle)
        return key if key in self._keys else None

    def handle(self, key: ClaimKey) -> VolumeHandle | None:
        """Return the handle of such a key, None if it is the key of a claim."""
        return self._keys.get(key)

    def volumes(self, handle: VolumeHandle) -> Sequence[str]:
        """Return the volumes that have a handle."""
        return self._volumes.get(handle, ())


def _key(handle: VolumeHandle) -> ClaimKey:
    return ClaimKey("", f"{handle.driver} {handle.handle}")
