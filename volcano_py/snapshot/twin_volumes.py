"""Volumes that are one and the same to their CSI driver: several PersistentVolumes with one driver and handle.

So the pods of two namespaces share a file system that was made by hand. A driver attaches it to a node once, and it
counts once towards the limit of the node (kube-scheduler, nodevolumelimits/csi). Hardly any cluster has such volumes.
"""

from volcano_py.model.volumes import ClaimKey, VolumeHandle


class Twins:
    """The names of volumes by handle."""

    def __init__(self) -> None:
        self._volumes: dict[VolumeHandle, tuple[str, ...]] = {}  # a set for each would take four times the memory
        self._keys: dict[ClaimKey, VolumeHandle] = {}

    def __bool__(self) -> bool:
        """Whether any volumes have the same handle."""
        return bool(self._keys)

    def change(self, name: str, before: VolumeHandle | None, after: VolumeHandle | None) -> list[VolumeHandle]:
        """Note the handle of a volume; return the handles whose volumes may count otherwise now."""
        found: list[VolumeHandle] = []
        if before is not None and name in self._volumes.get(before, ()):
            self._volumes[before] = tuple(one for one in self._volumes[before] if one != name)
            found.append(before)
        if after is not None:
            self._volumes[after] = (*self._volumes.get(after, ()), name)
            found.append(after)
        return [handle for handle in found if self._renumbered(handle)]

    def _renumbered(self, handle: VolumeHandle) -> bool:
        """Keep the key of a handle, if several volumes have it; return whether they have or had one."""
        key, several = _key(handle), len(self._volumes[handle]) > 1
        had = self._keys.pop(key, None) is not None
        if several:
            self._keys[key] = handle
        if not self._volumes[handle]:
            del self._volumes[handle]
        return several or had

    def key(self, handle: VolumeHandle) -> ClaimKey | None:
        """Return a key for a handle that several volumes have, else None; no claim has that key."""
        key = _key(handle)
        return key if key in self._keys else None

    def handle(self, key: ClaimKey) -> VolumeHandle | None:
        """Return the handle of such a key, None if it is the key of a claim."""
        return self._keys.get(key)

    def volumes(self, handle: VolumeHandle) -> tuple[str, ...]:
        """Return the volumes that have a handle."""
        return self._volumes.get(handle, ())


def _key(handle: VolumeHandle) -> ClaimKey:
    return ClaimKey("", f"{handle.driver} {handle.handle}")
