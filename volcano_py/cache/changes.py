"""Kinds of changes: just enough to know whether another cycle could place something."""

from collections.abc import Callable
from enum import Enum, auto
from typing import Final


class Change(Enum):
    """A kind of change of the cluster's state."""

    POD_PENDING = auto()  # a pod of ours waits for a node, or asks for something else than before
    POD_GONE = auto()  # a pod ended, was deleted or left its node: there is more room, or one pod less waits for it
    POD = auto()  # any other change of a pod: started, confirmed on its node, terminating, another condition
    GROUP = auto()  # a PodGroup is new, asks for something else, is gone, or became ours
    GROUP_STATUS = auto()  # only the status of a PodGroup
    QUEUE = auto()
    PRIORITY = auto()  # jobs have another priority
    NODE = auto()  # a node is new, or may accept pods that it refused before
    NODE_WORSE = auto()  # a node changed; it accepts no pod that it refused before
    BIND_FAILED = auto()  # an assumed bind was refused or failed: its pod waits again
    EVICTION_FAILED = auto()  # an assumed eviction was refused or failed: its beneficiary needs another plan
    WRITE_LOST = auto()  # a decided status was given up: it is out of date until a cycle decides it again
    FACT = auto()  # a namespace, quota, budget, shard or HyperNode changed so that it might allow more
    FACT_WORSE = auto()  # one of them changed; it allows nothing that it refused before


HELPFUL: Final = frozenset(
    {
        Change.POD_PENDING,
        Change.POD_GONE,
        Change.GROUP,
        Change.QUEUE,
        Change.PRIORITY,
        Change.NODE,
        Change.BIND_FAILED,
        Change.EVICTION_FAILED,
        Change.FACT,
    }
)
"""The changes after which a pending job might be placed; after the others, only its status may be out of date."""

ChangeCallback = Callable[[frozenset[Change]], None]
"""Called once per batch of events, on the thread that owns the cache."""
