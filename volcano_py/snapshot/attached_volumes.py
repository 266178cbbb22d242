"""How many volumes of each CSI driver a node uses, and how many it can use; only of drivers with a limit.

A node uses the volumes of the pods on it, and those that are attached to it. A volume of several pods counts once.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from volcano_py.model.volumes import CsiNodeRecord, VolumeHandle
from volcano_py.snapshot.columns import NodeStatics
from volcano_py.snapshot.volume_columns import NO_LIMITS, AttachLimits


class AttachedVolumes:
    """The volumes on nodes, by what their drivers call them."""

    def __init__(self) -> None:
        self.limited: frozenset[str] = frozenset()
        """The drivers that limit the volumes of any node."""
        self._limits: dict[str, Mapping[str, int]] = {}  # by node
        self._n_limits: Counter[str] = Counter()  # driver -> nodes with a limit
        self._of_pods: dict[str, Counter[VolumeHandle]] = {}  # by node: how many pods use each
        self._attached: dict[str, Counter[VolumeHandle]] = {}  # by node: how many attachments name each
        self._frozen: tuple[NodeStatics, AttachLimits] | None = None
        self._changed: set[str] = set()  # nodes whose numbers in `_frozen` are out of date

    def set_limits(self, node: str, record: CsiNodeRecord | None) -> bool:
        """Take in what a node says about its drivers, None if nothing; say whether other drivers have limits now."""
        self._n_limits.subtract(self._limits.pop(node, {}).keys())
        if record is not None and record.limits:
            self._limits[node] = record.limits
            self._n_limits.update(record.limits.keys())
        self._changed.add(node)
        limited = frozenset(driver for driver, count in self._n_limits.items() if count > 0)
        if limited == self.limited:
            return False
        self.limited, self._frozen = limited, None
        return True

    def pod_came(self, node: str, handles: tuple[VolumeHandle, ...]) -> None:
        """Count the volumes of a pod on a node."""
        if handles:
            self._of_pods.setdefault(node, Counter()).update(handles)
            self._changed.add(node)

    def pod_left(self, node: str, handles: tuple[VolumeHandle, ...]) -> None:
        """Count the volumes of a pod out."""
        if handles:
            _subtract(self._of_pods, node, handles)
            self._changed.add(node)

    def attach(self, node: str, handle: VolumeHandle) -> None:
        """Count an attachment."""
        self._attached.setdefault(node, Counter())[handle] += 1
        self._changed.add(node)

    def detach(self, node: str, handle: VolumeHandle) -> None:
        """Count an attachment out."""
        _subtract(self._attached, node, (handle,))
        self._changed.add(node)

    def freeze(self, statics: NodeStatics) -> AttachLimits:
        """Return a copy for the nodes of a snapshot."""
        if not self.limited:
            self._changed.clear()
            return NO_LIMITS
        drivers = tuple(sorted(self.limited))
        if self._frozen is None or self._frozen[0] is not statics:
            shape = (len(drivers), len(statics.names))
            limits = AttachLimits(drivers, np.zeros(shape), np.full(shape, np.inf))
            changed = set(statics.names)
        else:
            before = self._frozen[1]
            limits = AttachLimits(drivers, before.used.copy(), before.most.copy())
            changed = self._changed
        rows = statics.row_of
        # A Python loop over the nodes on which a volume or a limit has changed.
        for node in changed:
            row = rows.get(node)
            if row is not None:
                limits.used[:, row] = self._used(node, drivers)
                most = self._limits.get(node, {})
                limits.most[:, row] = [most.get(driver, np.inf) for driver in drivers]
        self._changed.clear()
        self._frozen = (statics, limits)
        return AttachLimits(drivers, limits.used.copy(), limits.most)

    def _used(self, node: str, drivers: tuple[str, ...]) -> list[int]:
        there = self._of_pods.get(node, Counter()).keys() | self._attached.get(node, Counter()).keys()
        counts = Counter(handle.driver for handle in there)
        return [counts[driver] for driver in drivers]


def _subtract(counts: dict[str, Counter[VolumeHandle]], node: str, handles: tuple[VolumeHandle, ...]) -> None:
    counter = counts[node]
    counter.subtract(handles)
    for handle in handles:
        if not counter[handle]:
            del counter[handle]
    if not counter:
        del counts[node]
