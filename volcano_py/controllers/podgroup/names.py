"""The annotations and labels that a PodGroup takes over from pods and their owners."""

from typing import Final

from volcano_py.api import keys
from volcano_py.kube.resource import DAEMON_SETS, JOBS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS

QUEUE_NAME: Final = keys.QUEUE_NAME
GROUP_MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"  # annotation of the owner, else the pod: minMember
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

REVISION: Final = "controller-revision-hash"  # label of the pods of a StatefulSet: the template that they are made from
GROUP_PREFIX: Final = keys.WORKLOAD_GROUP_PREFIX

OWNERS: Final = {
    resource.kind: resource for resource in (REPLICA_SETS, STATEFUL_SETS, DAEMON_SETS, JOBS, REPLICATION_CONTROLLERS)
}
"""The kinds of owners whose annotations count; owners of other kinds, such as custom resources, are not read."""

# What a LeaderWorkerSet writes on its pods and their stateful sets (kubernetes-sigs/lws, api/leaderworkerset/v1)
LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"  # label of pods and stateful sets
LWS_WORKER_INDEX: Final = "leaderworkerset.sigs.k8s.io/worker-index"  # label of pods; the leader has 0
LWS_SIZE: Final = "leaderworkerset.sigs.k8s.io/size"  # annotation of pods: pods of a group
