"""The measured load of nodes, as opposed to the requests that Kubernetes accounts for."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from volcano_py.model.arrays import Floats

DEFAULT_INTERVAL_S: Final = 30.0
"""Seconds between two measurements when the interval is not configured."""


class NodeLoad(NamedTuple):
    """The average load of one node over the last ten minutes."""

    cpu: float  # percent of its cores
    memory: float  # percent of its memory
    measured: float  # seconds since the epoch


@dataclass(frozen=True, eq=False, slots=True)
class NodeLoads:
    """The load of every node in the order of a snapshot's nodes; read only."""

    percent: Floats  # (2, n_nodes): cpu and memory
    measured: Floats  # (n_nodes,), seconds since the epoch, minus infinity for never
    interval_s: float = DEFAULT_INTERVAL_S  # between two measurements; a new pod may be missing in them that long
