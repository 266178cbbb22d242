"""The host ports that pods use on nodes.

Nodes with the same used ports share one set. So a question about ports is answered once per set and looked up per node;
most clusters have one or two sets. A set contains a port as often as pods use it, so removing a pod is exact.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from volcano_py.model.arrays import Bools
from volcano_py.model.shape import ALL_ADDRESSES, HostPort

PortSet = tuple[HostPort, ...]
"""The used host ports of a node, sorted."""


class NodePorts:
    """The port set of every node of a snapshot. It is private to the snapshot.

    It changes through the journal, and when nominated pods are counted on their nodes.
    """

    __slots__ = ("_codes", "_conflicts", "_sets", "codes")

    def __init__(self, codes: NDArray[np.int32], sets: Sequence[PortSet]) -> None:
        self.codes = codes  # (n_nodes,), index of the node's set
        self._sets = list(sets)
        self._codes: dict[PortSet, int] = {}  # code by set; filled at the first lookup
        self._conflicts: dict[PortSet, list[bool]] = {}  # wanted ports -> for each set, whether they conflict with it

    def of(self, row: int) -> PortSet:
        """Return the used ports of a node."""
        return self._sets[int(self.codes[row])]

    def with_more(self, row: int, ports: PortSet) -> int:
        """Return the code of a node's set with these ports added."""
        return self._code(tuple(sorted((*self.of(row), *ports))))

    def with_less(self, row: int, ports: PortSet) -> int:
        """Return the code of a node's set with these ports removed."""
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
        """Say for each set whether one of these ports conflicts with it, shape (n_sets,)."""
        known = self._conflicts.setdefault(wanted, [])
        known.extend(conflict(wanted, taken) for taken in self._sets[len(known) :])
        return np.array(known, dtype=bool)


def conflict(wanted: PortSet, taken: PortSet) -> bool:
    """Say whether two port sets conflict: both have the same port and protocol on overlapping addresses.

    The address 0.0.0.0 overlaps every address. Any other, including ``::``, overlaps only itself and 0.0.0.0
    (kube-scheduler: HostPortInfo).
    """
    return any(
        one.port == other.port
        and one.protocol == other.protocol
        and (one.ip == other.ip or ALL_ADDRESSES in (one.ip, other.ip))
        for one in wanted
        for other in taken
    )
