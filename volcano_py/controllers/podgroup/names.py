"""The annotations and labels that a PodGroup takes over from pods and their owners."""

from typing import Final

from volcano_py.kube.resource import DAEMON_SETS, JOBS, REPLICA_SETS, STATEFUL_SETS

QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"  # pod annotation: the queue of its PodGroup
GROUP_MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"  # annotation of the owner: minMember
TOPOLOGY_MODE: Final = "volcano.sh/network-topology-mode"  # pod annotation: hard or soft
TOPOLOGY_TIER: Final = "volcano.sh/network-topology-highest-tier"  # pod annotation: an integer
INHERITED_PREFIX: Final = "volcano.sh/"  # annotations of the owner that are taken over

PREEMPTABLE: Final = "volcano.sh/preemptable"
COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"
POD_ANNOTATIONS: Final = (
    PREEMPTABLE,
    COOLDOWN_TIME,
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
)
POD_LABELS: Final = (PREEMPTABLE, COOLDOWN_TIME)

GROUP_PREFIX: Final = "podgroup-"

OWNERS: Final = {resource.kind: resource for resource in (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS)}
"""The kinds of owners whose annotations count."""
