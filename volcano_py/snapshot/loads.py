"""The store of measured node loads, which makes columns in node order for a snapshot."""

from collections.abc import Mapping

import numpy as np

from volcano_py.model.loads import DEFAULT_INTERVAL_S, NodeLoad, NodeLoads
from volcano_py.snapshot.columns import NodeStatics

_NEVER = NodeLoad(0.0, 0.0, -np.inf)


class LoadStore:
    """The last measured load of each node; columns are made once per change of loads or nodes."""

    def __init__(self) -> None:
        self._loads: dict[str, NodeLoad] = {}
        self._interval_s = DEFAULT_INTERVAL_S
        self._made: tuple[tuple[object, int], NodeLoads] | None = None

    def set(self, loads: Mapping[str, NodeLoad], interval_s: float) -> None:
        """Set newly measured loads; nodes without a new measurement keep their old one."""
        self._loads.update(loads)
        self._interval_s = interval_s
        self._made = None

    def columns(self, statics: NodeStatics) -> NodeLoads | None:
        """Return the loads of the nodes, None if no load was ever measured."""
        if not self._loads:
            return None
        if self._made is None or self._made[0] != statics.layout:
            self._loads = {name: load for name, load in self._loads.items() if name in statics.row_of}
            found = [self._loads.get(name, _NEVER) for name in statics.names]
            table = np.array(found, dtype=float).reshape(len(found), len(_NEVER))
            loads = NodeLoads(table[:, :2].T.copy(), table[:, 2].copy(), self._interval_s)
            for column in (loads.percent, loads.measured):
                column.flags.writeable = False
            self._made = (statics.layout, loads)
        return self._made[1]
