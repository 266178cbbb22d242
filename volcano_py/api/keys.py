"""Every name that is visible on the wire, once: API groups, annotations, labels, condition types, reasons."""

from typing import Final

SCHEDULER_NAME: Final = "volcano"
PROGRAM: Final = "volcano-py"  # user agent of the scheduler, and so the field manager of what it writes
GO_SCHEDULER: Final = "vc-scheduler"  # the same of Volcano's scheduler
SCHEDULING_GROUP: Final = "scheduling.volcano.sh"
SCHEDULING_VERSION: Final = "v1beta1"
BATCH_GROUP: Final = "batch.volcano.sh"
BATCH_VERSION: Final = "v1alpha1"
BUS_GROUP: Final = "bus.volcano.sh"
BUS_VERSION: Final = "v1alpha1"
FLOW_GROUP: Final = "flow.volcano.sh"
FLOW_VERSION: Final = "v1alpha1"
SHARD_GROUP: Final = "shard.volcano.sh"
SHARD_VERSION: Final = "v1alpha1"

# Pods
GROUP_NAME: Final = "scheduling.k8s.io/group-name"  # annotation: the PodGroup a pod belongs to, in its own namespace
GROUP_POD_NUM: Final = "scheduling.k8s.io/group-pod-num"  # pod annotation: how many pods the gang has
WORKLOAD_GROUP_PREFIX: Final = "podgroup-"  # a PodGroup of a workload: this, and the uid of the owner of its pods
RESOURCE_GROUP: Final = "volcano.sh/resource-group"  # annotation: the resource group of the webhooks' configuration
TASK_SPEC: Final = "volcano.sh/task-spec"  # annotation, else label: the role of a task in its job
TASK_PRIORITY: Final = "volcano.sh/task-priority"  # annotation: integer that replaces spec.priority
REVOCABLE_ZONE: Final = "volcano.sh/revocable-zone"  # label of a node: its zone; annotation of a pod or PodGroup: "*"
JDB_MIN_AVAILABLE: Final = "volcano.sh/jdb-min-available"  # annotation: a number or a percentage of tasks
JDB_MAX_UNAVAILABLE: Final = "volcano.sh/jdb-max-unavailable"
COOLDOWN_TIME: Final = "volcano.sh/cooldown-time"  # label, else annotation: duration
PREEMPTABLE: Final = "volcano.sh/preemptable"  # annotation, else label: "true" or "false"
STRATEGY_TYPE: Final = "volcano.sh/resource-strategy-scoring-type"  # annotation: LeastAllocated or MostAllocated
STRATEGY_WEIGHT: Final = "volcano.sh/resource-strategy-weight"  # annotation: JSON of resource to weight
SYSTEM_NAMESPACE: Final = "kube-system"
CRITICAL_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})
PREEMPT_NEVER: Final = "Never"  # spec.preemptionPolicy
QUEUE_ADMISSION: Final = "SchedulingGatesQueueAdmission"  # the feature that takes this gate away
QUEUE_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"  # scheduling gate lifted once its queue has room

# Pods of jobs
TASK_INDEX: Final = "volcano.sh/task-index"  # annotation and label: the number of the pod in its task
JOB_NAME: Final = "volcano.sh/job-name"  # annotation and label
JOB_NAMESPACE: Final = "volcano.sh/job-namespace"  # label
QUEUE_NAME: Final = "scheduling.volcano.sh/queue-name"  # annotation of a pod: the queue of its PodGroup; of a namespace
JOB_QUEUE: Final = "volcano.sh/queue-name"  # annotation and label
JOB_VERSION: Final = "volcano.sh/job-version"  # annotation: status.version of the job when the pod was created
JOB_RETRY_COUNT: Final = "volcano.sh/job-retry-count"  # annotation: status.retryCount of the job at that time
TEMPLATE_UID: Final = "volcano.sh/template-uid"  # annotation: job and task, joined by "-"
PARTITION_ID: Final = "volcano.sh/partition-id"  # label: the partition of the pod in its task
OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"  # annotation of a pod that its job's controller deletes
NUMA_POLICY: Final = "volcano.sh/numa-topology-policy"  # annotation: topologyPolicy of the task
JOB_FORWARDING: Final = "volcano.sh/job-forwarding"  # annotation and label: the queue forwards to other clusters
HCCL_RANK: Final = "hccl/rankIndex"  # annotation: the rank of the pod for Huawei's collective communication

# Jobs of job flows
BY_JOB_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"  # annotation and label: NAMESPACE.NAME
BY_JOB_FLOW: Final = "volcano.sh/createdByJobFlow"  # annotation and label: NAMESPACE.NAME

# HyperNodes
TOPOLOGY_GROUP: Final = "topology.volcano.sh"
TOPOLOGY_VERSION: Final = "v1alpha1"
TOPOLOGY_SOURCE: Final = "volcano.sh/network-topology-source"  # label: how a HyperNode was found

# Nodes
OVERSUBSCRIPTION_CPU: Final = "volcano.sh/oversubscription-cpu"  # annotation: millicores to give out beyond allocatable
OVERSUBSCRIPTION_MEMORY: Final = "volcano.sh/oversubscription-memory"  # annotation: bytes

# Volumes and claims
PROMISED_BY: Final = (
    "volcano.sh/promised-by"  # annotation: the scheduler that has written a promise, until it is undone
)

# PodGroups
GROUP_SCHEDULER: Final = "volcano.sh/scheduler-name"  # annotation: the scheduler of the job that owns the PodGroup
SLA_WAITING_TIME: Final = "volcano.sh/sla-waiting-time"  # annotation: duration after which it is enqueued
SLA_WAITING_TIME_OLD: Final = "sla-waiting-time"
TOPOLOGY_AFFINITY: Final = "volcano.sh/task-topology-affinity"  # annotation: roles to stand together, "ps,worker;chief"
TOPOLOGY_ANTI_AFFINITY: Final = "volcano.sh/task-topology-anti-affinity"
TOPOLOGY_ORDER: Final = "volcano.sh/task-topology-task-order"  # annotation: which roles go first, "ps,worker"

# ResourceQuotas
NAMESPACE_WEIGHT: Final = "volcano.sh/namespace.weight"  # name in spec.hard: weight of the namespace within a queue

# Taints and node labels
TAINT_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
TAINT_NOT_READY: Final = "node.kubernetes.io/not-ready"
LABEL_HOSTNAME: Final = "kubernetes.io/hostname"
LABEL_ZONE: Final = "topology.kubernetes.io/zone"
LABEL_NODE_GROUP: Final = "volcano.sh/nodegroup-name"
LABEL_NAMESPACE: Final = "kubernetes.io/metadata.name"  # on every namespace: its own name

# Queues
NODE_GROUP_LIMITS: Final = "volcano.sh/nodegroup-resource-limits"  # annotation: JSON of node group to resource list
ROOT_QUEUE: Final = "root"
DEFAULT_QUEUE: Final = "default"

# Resource names
CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
HUGEPAGES_PREFIX: Final = "hugepages-"
ATTACHABLE_VOLUMES_PREFIX: Final = "attachable-volumes-"
NATIVE_DOMAIN: Final = "kubernetes.io/"

# Conditions
CONDITION_POD_SCHEDULED: Final = "PodScheduled"
CONDITION_READY: Final = "Ready"
CONDITION_DISRUPTION_TARGET: Final = "DisruptionTarget"
CONDITION_RESIZE_PENDING: Final = "PodResizePending"
CONDITION_UNSCHEDULABLE: Final = "Unschedulable"
CONDITION_SCHEDULED: Final = "Scheduled"

# Reasons of conditions and events
REASON_UNSCHEDULABLE: Final = "Unschedulable"
REASON_SCHEDULABLE: Final = "Schedulable"
REASON_RESIZE_INFEASIBLE: Final = "Infeasible"
REASON_SCHEDULER_ERROR: Final = "SchedulerError"
REASON_NOT_ENOUGH_RESOURCES: Final = "NotEnoughResources"
REASON_NOT_ENOUGH_TASKS: Final = "NotEnoughTasks"
REASON_NOT_ENOUGH_PODS_OF_TASK: Final = "NotEnoughPodsOfTask"
REASON_PREEMPTION: Final = "PreemptionByScheduler"
REASON_BEST_EFFORT_WAITS: Final = "BestEffortPodsWait"  # ours: a gang lacks only pods without requests
REASON_GANG_READY: Final = "tasks in gang are ready to be scheduled"
EVENT_SCHEDULED: Final = "Scheduled"
EVENT_WAITING_FOR_VOLUMES: Final = "WaitingForVolumes"
EVENT_FAILED_SCHEDULING: Final = "FailedScheduling"
EVENT_UNSCHEDULABLE: Final = "Unschedulable"
EVENT_EVICT: Final = "Evict"
EVENT_PREEMPTING: Final = "Preempting"
EVENT_TOPOLOGY: Final = "TopologyNotEnforced"
UNREADABLE: Final = "Unreadable"  # reason of an event that no cycle decides
EVENT_NORMAL: Final = "Normal"
EVENT_WARNING: Final = "Warning"

# The job as its user wrote it, up to 256 KiB; kubectl keeps it on what it applies
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

# Resources that only Volcano's plugin deviceshare can give out: device plugins start no pod without its annotations
SHARED_DEVICES: Final = (
    *("volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores", "volcano.sh/vgpu-memory-percentage"),
    *("volcano.sh/gpu-memory", "volcano.sh/gpu-number"),
)

# PodGroup phases
PHASE_PENDING: Final = "Pending"
PHASE_INQUEUE: Final = "Inqueue"
PHASE_RUNNING: Final = "Running"
PHASE_UNKNOWN: Final = "Unknown"
PHASE_COMPLETED: Final = "Completed"

# Queue states
QUEUE_OPEN: Final = "Open"
DEQUEUE_FIFO: Final = "fifo"
HIERARCHY: Final = "volcano.sh/hierarchy"
HIERARCHY_WEIGHTS: Final = "volcano.sh/hierarchy-weights"
QUEUE_CLOSED: Final = "Closed"
QUEUE_CLOSING: Final = "Closing"
QUEUE_UNKNOWN: Final = "Unknown"
