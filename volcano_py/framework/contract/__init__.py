"""The plugin API: what a plugin is, the questions it answers, how answers combine, and what it is given.

Plugin authors import everything from here. `RENAMED` lists old names.
"""

from typing import Final

from volcano_py.framework.contract.extension_point import ExtensionPoint
from volcano_py.framework.contract.extension_points import (
    POINTS,
    Allocatable,
    InterPodFilter,
    InterPodOrder,
    InterPodPredicate,
    InterPodScores,
    JobEnqueueable,
    JobEnqueued,
    JobOrder,
    JobPipelined,
    JobReady,
    JobStarving,
    JobValid,
    NamespaceOrder,
    NodeOrder,
    NormalizedOrder,
    Overused,
    PlacementWatch,
    Predicate,
    Preemptable,
    Preemptive,
    Preemptor,
    Purpose,
    QueueOrder,
    Reclaimable,
    SeesEvictions,
    StaticPredicate,
    TaskOrder,
    UnifiedEvictable,
    Verdicts,
    VictimFilter,
    VictimQueueOrder,
    VictimTasks,
    Vote,
)
from volcano_py.framework.contract.normalization import NormalizedScore, Normalizer
from volcano_py.framework.contract.plugin import DependsOn, Plugin, PluginFailed
from volcano_py.framework.contract.topology import DomainOrder, DomainView, NearOrder, Part, TierLimits
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.framework.state.state import State

RENAMED: Final = {
    "Claim": "Preemptor",
    "Evictables": "VictimCandidates",
    "NeighbourFilter": "InterPodFilter",
    "NeighbourOrder": "InterPodOrder",
    "NeighbourPredicate": "InterPodPredicate",
    "NeighbourScores": "InterPodScores",
}
"""Old name -> new name, for what plugin authors may import from retired modules such as `framework.extension`."""

__all__ = [
    "POINTS",
    "Allocatable",
    "DependsOn",
    "DomainOrder",
    "DomainView",
    "ExtensionPoint",
    "InterPodFilter",
    "InterPodOrder",
    "InterPodPredicate",
    "InterPodScores",
    "JobEnqueueable",
    "JobEnqueued",
    "JobInfo",
    "JobOrder",
    "JobPipelined",
    "JobReady",
    "JobStarving",
    "JobValid",
    "NamespaceOrder",
    "NearOrder",
    "NodeOrder",
    "NormalizedOrder",
    "NormalizedScore",
    "Normalizer",
    "Overused",
    "Part",
    "PlacementWatch",
    "Plugin",
    "PluginFailed",
    "Predicate",
    "Preemptable",
    "Preemptive",
    "Preemptor",
    "Purpose",
    "QueueInfo",
    "QueueOrder",
    "Reclaimable",
    "SeesEvictions",
    "State",
    "StaticPredicate",
    "TaskInfo",
    "TaskOrder",
    "TierLimits",
    "UnifiedEvictable",
    "Verdicts",
    "VictimCandidates",
    "VictimFilter",
    "VictimQueueOrder",
    "VictimTasks",
    "Vote",
]
