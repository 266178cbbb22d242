"""Ports of nodes that pods have taken for themselves.

Nodes with the same ports taken share one set, so a question about ports is answered once per set and looked up per
node; most clusters have one or two sets. A set holds a port as often as it was taken, so that giving back is exact.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from volcano_py.model.arrays import Bools
from volcano_py.model.shape import ALL_ADDRESSES, HostPort

PortSet = tuple[HostPort, ...]
"""Ports taken on a node, sorted."""


class NodePorts:
    """The set of every node of a snapshot; private to it, and changed through a journal or for whom a node is held."""

    __slots__ = ("_codes", "_conflicts", "_sets", "codes")

    def __init__(self, codes: NDArray[np.int32], sets: Sequence[PortSet]) -> None:
        self.codes = codes  # (n_nodes,), index of the node's set
        self._sets = list(sets)
        self._codes: dict[PortSet, int] = {}  # by set; made when the first one is looked for
        self._conflicts: dict[PortSet, list[bool]] = {}  # wanted -> by set, whether something of it is taken

    def of(self, row: int) -> PortSet:
        """Return what is taken on a node."""
        return self._sets[int(self.codes[row])]

    def with_more(self, row: int, ports: PortSet) -> int:
        """Return the code of a node's set with these ports taken too."""
        return self._code(tuple(sorted((*self.of(row), *ports))))

    def with_less(self, row: int, ports: PortSet) -> int:
        """Return the code of a node's set with these ports given back."""
        left = list(self.of(row))
        for port in ports:
            left.remove(port)
        return self._code(tuple(left))

    def _code(self, ports: PortSet) -> int:
        if not self._codes:
            self._codes = {known: code for code, known in enumerate(self._sets)}
        code = self._codes.setdefault(ports, len(self._sets))
        if code == len(self._sets):
            self._sets.append(ports)
        return code

    def conflicts(self, wanted: PortSet) -> Bools:
        """Say for each set whether one of these ports cannot be had beside it, shape (n_sets,)."""
        known = self._conflicts.setdefault(wanted, [])
        known.extend(conflict(wanted, taken) for taken in self._sets[len(known) :])
        return np.array(known, dtype=bool)


def conflict(wanted: PortSet, taken: PortSet) -> bool:
    """Say whether two pods cannot stand on one node: the same port of a protocol on addresses that overlap.

    The address 0.0.0.0 is every address; any other, also ``::``, is only itself (kube-scheduler: HostPortInfo).
    """
    return any(
        one.port == other.port
        and one.protocol == other.protocol
        and (one.ip == other.ip or ALL_ADDRESSES in (one.ip, other.ip))
        for one in wanted
        for other in taken
    )
