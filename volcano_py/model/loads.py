"""How busy nodes really are, as measured outside of Kubernetes' accounting of requests."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from volcano_py.model.arrays import Floats

DEFAULT_INTERVAL_S: Final = 30.0
"""Between two measurements if nobody says otherwise."""


class NodeLoad(NamedTuple):
    """The averages of one node over the last ten minutes."""

    cpu: float  # percent of its cores
    memory: float  # percent of its memory
    measured: float  # seconds since the epoch


@dataclass(frozen=True, eq=False, slots=True)
class NodeLoads:
    """The load of every node, in the order of the nodes of a snapshot; read only."""

    percent: Floats  # (2, n_nodes): cpu and memory
    measured: Floats  # (n_nodes,), seconds since the epoch, minus infinity for never
    interval_s: float = DEFAULT_INTERVAL_S  # between two measurements: how long a started pod may not show in them
