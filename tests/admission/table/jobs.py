"""Rules about jobs: what is wrong with a new one, and what may not change."""

from typing import Any, Final

from tests.admission.asking import policy, queue, task
from tests.admission.changes import GONE
from tests.admission.table.case import NAMES, NEVER_ASKED, SCHEMA, Case
from volcano_py.admission.contract import UPDATE

_PATH: Final = "/jobs/validate"
_TASK: Final = "spec/tasks/0"
_AT_TASK: Final = "spec.tasks[0]"
_C: Final = f"{_TASK}/template/spec/containers/0"
_TIER: Final = {"mode": "hard", "highestTierAllowed": 1}
_BOTH: Final = {**_TIER, "highestTierName": "rack"}
_TWICE: Final = "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously"
_CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_INIT: Final = {"name": "first", "image": "busybox:1", "resources": {"requests": {"cpu": "2"}}}
_NUMA: Final = {f"{_TASK}/topologyPolicy": "restricted", f"{_C}/resources": {"requests": {"cpu": "2"}}}


def _partitions(**more: Any) -> dict[str, Any]:
    return {"totalPartitions": 2, "partitionSize": 2, **more}


def _policies(*found: Any) -> dict[str, Any]:
    return {"spec/policies": list(found)}


def _volumes(*found: Any) -> dict[str, Any]:
    return {"spec/volumes": list(found)}


def _named(**fields: Any) -> dict[str, Any]:
    return {"mountPath": "/a", "volumeClaimName": "b", **fields}


def _job(bad: dict[str, Any], good: dict[str, Any], says: str, at: str, unreachable: str = "", **more: Any) -> Case:
    return Case(path=_PATH, bad=bad, good=good, says=says, at=at, unreachable=unreachable, **more)


JOB_CREATIONS: Final = {
    "the operation": Case(
        path=_PATH, operation="CONNECT", says="expect operation to be 'CREATE' or 'UPDATE'", unreachable=NEVER_ASKED
    ),
    "defaults of another operation": Case(
        path="/jobs/mutate", operation="CONNECT", says="expect operation to be 'CREATE'", unreachable=NEVER_ASKED
    ),
    "types of fields": _job(
        {f"{_TASK}/replicas": "four"},
        {f"{_TASK}/replicas": 4},
        "Expected `int`, got `str` at spec.tasks[0].replicas",
        "spec.tasks[0].replicas",
        SCHEMA,
    ),
    "no tasks": _job({"spec/tasks": GONE}, {}, "No task specified in job spec", "spec.tasks"),
    "mpi without master": _job(
        {"spec/plugins": {"mpi": ["--master=boss"]}},
        {"spec/plugins": {"mpi": ["--master=main"]}},
        "The specified mpi master task was not found",
        "spec.plugins[mpi]",
    ),
    "topology twice": _job(
        {"spec/networkTopology": _BOTH}, {"spec/networkTopology": _TIER}, _TWICE, "spec.networkTopology"
    ),
    "topology of partitions twice": _job(
        {f"{_TASK}/partitionPolicy": _partitions(networkTopology=_BOTH)},
        {f"{_TASK}/partitionPolicy": _partitions(networkTopology=_TIER)},
        f"{_TWICE} in task: main, job: j",
        f"{_AT_TASK}.partitionPolicy.networkTopology",
    ),
    "minimum of a task": _job(
        {f"{_TASK}/minAvailable": 5},
        {f"{_TASK}/minAvailable": 4},
        "'minAvailable' is greater than 'replicas' in task: main, job: j",
        f"{_AT_TASK}.minAvailable",
    ),
    "two tasks of one name": _job(
        {"spec/tasks/1": task("main")},
        {"spec/tasks/1": task("other")},
        "duplicated task name main",
        "spec.tasks[1].name",
    ),
    "names of pods": _job(
        {"metadata/name": "j" * 57},
        {"metadata/name": "j" * 56},
        f"create pod with name {'j' * 57}-main-0 validate failed [name part must be no more than 63 bytes]",
        f"{_AT_TASK}.name",
    ),
    "a long name": _job(
        {"metadata/name": "j" * 64},
        {"metadata/name": "j" * 56},
        f"create job with name {'j' * 64} validate failed [name part must be no more than 63 bytes]",
        "metadata.name",
    ),
    "a name that is none": _job(
        {"metadata/name": "a_"},
        {"metadata/name": "a"},
        "create job with name a_ validate failed",
        "metadata.name",
        NAMES,
    ),
    "a template": _job(
        {f"{_C}/imagePullPolicy": "Sometimes"},
        {f"{_C}/imagePullPolicy": "IfNotPresent"},
        'spec.task[0].template.spec.containers[0].imagePullPolicy: Unsupported value: "Sometimes"',
        f"{_AT_TASK}.template.spec.containers[0].imagePullPolicy",
    ),
    "resources of a template": _job(
        {f"{_C}/resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
        {f"{_C}/resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}},
        "must be less than or equal to cpu limit of 1",
        f"{_AT_TASK}.template.spec.containers[0].resources.requests",
    ),
    "half a CPU for NUMA": _job(
        {**_NUMA, f"{_C}/resources": {"requests": {"cpu": "1500m"}}},
        _NUMA,
        "the cpu request isn't  an integer in spec.task[0] container[0]",
        f"{_AT_TASK}.template.spec.containers[0].resources.requests.cpu",
    ),
    "half a CPU of an init container for NUMA": _job(
        {**_NUMA, f"{_TASK}/template/spec/initContainers": [{**_INIT, "resources": {"limits": {"cpu": "0.5"}}}]},
        {**_NUMA, f"{_TASK}/template/spec/initContainers": [_INIT]},
        "the cpu request isn't  an integer in spec.task[0] container[0]",
        f"{_AT_TASK}.template.spec.initContainers[0].resources.requests.cpu",
    ),
    "no CPU for NUMA": _job(
        {f"{_TASK}/topologyPolicy": "best-effort"},
        {f"{_TASK}/topologyPolicy": "none"},
        "the cpu request isn't  an integer in spec.task[0] container[0]",
        f"{_AT_TASK}.template.spec.containers[0].resources.requests.cpu",
    ),
    "no partitions": _job(
        {f"{_TASK}/partitionPolicy": _partitions(totalPartitions=0)},
        {f"{_TASK}/partitionPolicy": _partitions()},
        "'TotalPartitions' must be greater than 0 in task: main, job: j",
        f"{_AT_TASK}.partitionPolicy.totalPartitions",
        SCHEMA,
    ),
    "empty partitions": _job(
        {f"{_TASK}/partitionPolicy": _partitions(partitionSize=0)},
        {f"{_TASK}/partitionPolicy": _partitions()},
        "'PartitionSize' must be greater than 0 in task: main, job: j",
        f"{_AT_TASK}.partitionPolicy.partitionSize",
        SCHEMA,
    ),
    "partitions of too few": _job(
        {f"{_TASK}/partitionPolicy": _partitions(totalPartitions=3)},
        {f"{_TASK}/partitionPolicy": _partitions()},
        "'Replicas' are not equal to TotalPartitions*PartitionSize in task: main, job: j",
        f"{_AT_TASK}.partitionPolicy",
    ),
    "least partitions against the minimum": _job(
        {f"{_TASK}/minAvailable": 3, f"{_TASK}/partitionPolicy": _partitions(minPartitions=1)},
        {f"{_TASK}/minAvailable": 2, f"{_TASK}/partitionPolicy": _partitions(minPartitions=1)},
        "'MinAvailable' is not equal to MinPartitions*PartitionSize in task: main, job: j",
        f"{_AT_TASK}.partitionPolicy",
    ),
    "minimum of the job": _job(
        {"spec/minAvailable": 5},
        {"spec/minAvailable": 4},
        "job 'minAvailable' should not be greater than total replicas in tasks",
        "spec.minAvailable",
    ),
    "an unknown plugin": _job(
        {"spec/plugins": {"magic": []}},
        {"spec/plugins": {"svc": [], "env": []}},
        "unable to find job plugin: magic",
        "spec.plugins[magic]",
    ),
    "an estimate": _job(
        {"spec/runningEstimate": "long"},
        {"spec/runningEstimate": "2h"},
        'time: invalid duration "long"',
        "spec.runningEstimate",
    ),
    # Policies
    "event and exit code": _job(
        _policies(policy(exitCode=1)),
        _policies(policy(), {"exitCode": 1, "action": "RestartJob"}),
        "must not specify event and exitCode simultaneously",
        "spec.policies[0]",
    ),
    "neither event nor exit code": _job(
        _policies({"action": "AbortJob"}),
        _policies({"action": "AbortJob", "event": "PodEvicted"}),
        "either event and exitCode should be specified",
        "spec.policies[0]",
    ),
    "an event that is none": _job(
        _policies(policy(event="Rain")), _policies(policy()), "invalid policy event", "spec.policies[0].event", SCHEMA
    ),
    "an internal event": _job(
        _policies(policy(event="OutOfSync")),
        _policies(policy(event="PodPending")),
        'spec.policies: Invalid value: "OutOfSync": invalid policy event',
        "spec.policies[0].event",
    ),
    "a command as an event": _job(
        _policies({"events": ["PodFailed", "CommandIssued"], "action": "AbortJob"}),
        _policies({"events": ["PodFailed", "JobUpdated"], "action": "AbortJob"}),
        "invalid policy event",
        "spec.policies[0].event",
    ),
    "a running pod as an event": _job(
        _policies(policy(event="PodRunning")),
        _policies(policy(event="TaskCompleted")),
        "invalid policy event",
        "spec.policies[0].event",
    ),
    "an action that is none": _job(
        _policies(policy(action="Dance")),
        _policies({"exitCode": 3, "action": "Dance"}),
        'spec.policies: Invalid value: "Dance": invalid policy action',
        "spec.policies[0].action",
    ),
    "an internal action": _job(
        _policies(policy(action="SyncJob")),
        _policies(policy(action="RestartPartition")),
        "invalid policy action",
        "spec.policies[0].action",
    ),
    "events and actions that there are": _job(
        _policies(policy(action="EnqueueJob")),
        _policies(policy(action="ResumeJob")),
        "valid events are [* PodFailed PodEvicted PodPending Unknown TaskCompleted TaskFailed JobUpdated], "
        "valid actions are [AbortJob RestartJob RestartTask RestartPod RestartPartition TerminateJob CompleteJob "
        "ResumeJob]",
        "spec.policies[0].action",
    ),
    "one event in two policies": _job(
        _policies(policy(), {"events": ["PodEvicted", "PodFailed"], "action": "AbortJob"}),
        _policies(policy(events=["PodFailed"]), policy(event="PodEvicted")),
        "duplicate event PodFailed  across different policy",
        "spec.policies[1]",
    ),
    "exit code 0": _job(
        _policies({"action": "AbortJob", "exitCode": 0}),
        _policies({"action": "AbortJob", "exitCode": -1}),
        "0 is not a valid error code",
        "spec.policies[0].exitCode",
    ),
    "one exit code in two policies": _job(
        _policies({"exitCode": 3}, {"exitCode": 3}),
        _policies({"exitCode": 3}, {"exitCode": 4}),
        "duplicate exitCode 3",
        "spec.policies[1].exitCode",
    ),
    "any event beside another": _job(
        _policies(policy(event="*"), policy()),
        _policies(policy(event="*"), {"exitCode": 3}),
        "if there's * here, no other policy should be here",
        "spec.policies",
    ),
    "a timeout": _job(
        _policies(policy(timeout="soon")),
        _policies(policy(timeout="1m30s")),
        'time: invalid duration "soon"',
        "spec.policies[0].timeout",
    ),
    "a policy of a task": _job(
        {f"{_TASK}/policies": [policy(event="PodRunning")]},
        {f"{_TASK}/policies": [policy()], **_policies(policy())},
        'spec.tasks.policies: Invalid value: "PodRunning": invalid policy event',
        f"{_AT_TASK}.policies[0].event",
    ),
    # Volumes
    "a volume without path": _job(
        _volumes({"mountPath": "", "volumeClaimName": "b"}),
        _volumes(_named()),
        "mountPath is required;",
        "spec.volumes[0].mountPath",
        SCHEMA,
    ),
    "two volumes at one path": _job(
        _volumes(_named(), _named(volumeClaimName="c")),
        _volumes(_named(), _named(mountPath="/c")),
        "duplicated mountPath: /a;",
        "spec.volumes[1].mountPath",
    ),
    "a volume of nothing": _job(
        _volumes({"mountPath": "/a"}),
        _volumes({"mountPath": "/a", "volumeClaim": _CLAIM}),
        "either VolumeClaim or VolumeClaimName must be specified;",
        "spec.volumes[0]",
    ),
    "a volume of two claims": _job(
        _volumes(_named(volumeClaim=_CLAIM)),
        _volumes(_named()),
        "conflict: If you want to use an existing PVC, just specify VolumeClaimName.",
        "spec.volumes[0]",
    ),
    "a volume of a bad name": _job(
        _volumes(_named(volumeClaimName="A_B")),
        _volumes(_named(volumeClaimName="a.b")),
        "invalid VolumeClaimName A_B : [a lowercase RFC 1123 subdomain must consist of",
        "spec.volumes[0].volumeClaimName",
    ),
    # Dependences
    "dependence on an unknown task": _job(
        {f"{_TASK}/dependsOn": {"name": ["nobody"]}},
        {f"{_TASK}/dependsOn": {"name": ["other"]}, "spec/tasks/1": task("other")},
        "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG)",
        "spec.tasks",
    ),
    "dependence in a circle": _job(
        {f"{_TASK}/dependsOn": {"name": ["b"]}, "spec/tasks/1": task("b", dependsOn={"name": ["main"]})},
        {f"{_TASK}/dependsOn": {"name": ["b"]}, "spec/tasks/1": task("b", dependsOn={"name": []})},
        "doesn't form a directed acyclic graph(DAG)",
        "spec.tasks",
    ),
    # The queue
    "a queue that does not exist": _job(
        {"spec/queue": "gone"},
        {"spec/queue": "default"},
        'unable to find job queue: queue.scheduling.volcano.sh "gone" not found',
        "spec.queue",
    ),
    "a closed queue": _job(
        {"spec/queue": "t"},
        {"spec/queue": "t"},
        "can only submit job to queue with state `Open`, queue `t` status is `Closed`",
        "spec.queue",
        queues=(queue("t", "Closed"),),
        good_queues=(queue("t"),),
    ),
    "a closing queue": _job(
        {"spec/queue": "t"},
        {"spec/queue": "default"},
        "can only submit job to queue with state `Open`, queue `t` status is `Closing`",
        "spec.queue",
        queues=(queue("t", "Closing"),),
    ),
    "a queue of unknown state": _job(
        {"spec/queue": "t"},
        {"spec/queue": "t"},
        "can only submit job to queue with state `Open`, queue `t` status is `Unknown`",
        "spec.queue",
        queues=(queue("t", "Unknown"),),
        good_queues=(queue("t", ""),),
    ),
    "the root": _job(
        {"spec/queue": "root"}, {"spec/queue": "default"}, "can not submit job to root queue", "spec.queue"
    ),
    "a queue with children": _job(
        {"spec/queue": "t"},
        {"spec/queue": "t-a"},
        "can only submit job to leaf queue, queue `t` has 1 child queues",
        "spec.queue",
        queues=(queue("t"), queue("t-a", parent="t")),
    ),
}


def _change(
    bad: dict[str, Any], good: dict[str, Any], says: str, at: str, before: Any = None, unreachable: str = ""
) -> Case:
    return Case(
        path=_PATH,
        operation=UPDATE,
        before={f"{_TASK}/minAvailable": 2, "spec/minAvailable": 2, **(before or {})},
        bad=bad,
        good=good,
        says=says,
        at=at,
        unreachable=unreachable,
    )


_ONLY: Final = (
    "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and "
    "`PriorityClassName`"
)
_PARTED: Final = {f"{_TASK}/partitionPolicy": _partitions(minPartitions=1)}
JOB_UPDATES: Final = {
    "negative replicas": _change(
        {f"{_TASK}/replicas": -1},
        {f"{_TASK}/replicas": 6},
        "'replicas' must be >= 0 in task: main",
        f"{_AT_TASK}.replicas",
        unreachable=SCHEMA,
    ),
    "a negative minimum of a task": _change(
        {f"{_TASK}/minAvailable": -1},
        {f"{_TASK}/minAvailable": 0},
        "'minAvailable' must be >= 0 in task: main",
        f"{_AT_TASK}.minAvailable",
        unreachable=SCHEMA,
    ),
    "the minimum of a task": _change(
        {f"{_TASK}/minAvailable": 5},
        {f"{_TASK}/minAvailable": 4},
        "'minAvailable' must be <= 'replicas' in task: main",
        f"{_AT_TASK}.minAvailable",
    ),
    "partitions of too few": _change(
        {f"{_TASK}/replicas": 5},
        {"spec/minAvailable": 1},
        "'Replicas' are not equal to TotalPartitions*PartitionSize in task: main, job: j",
        f"{_AT_TASK}.partitionPolicy",
        _PARTED,
    ),
    "least partitions against the minimum": _change(
        {f"{_TASK}/minAvailable": 3},
        {"spec/minAvailable": 4},
        "'MinAvailable' is not equal to MinPartitions*PartitionSize in task: main, job: j",
        f"{_AT_TASK}.partitionPolicy",
        _PARTED,
    ),
    "topology of partitions twice": _change(
        {f"{_TASK}/partitionPolicy/networkTopology": _BOTH},
        {"spec/priorityClassName": "high"},
        f"{_TWICE} in task: main, job: j",
        f"{_AT_TASK}.partitionPolicy.networkTopology",
        {f"{_TASK}/partitionPolicy": _partitions(minPartitions=1, networkTopology=_TIER)},
    ),
    "the minimum of the job": _change(
        {"spec/minAvailable": 5},
        {"spec/minAvailable": 4},
        "job 'minAvailable' must not be greater than total replicas",
        "spec.minAvailable",
    ),
    "a negative minimum of the job": _change(
        {"spec/minAvailable": -1},
        {"spec/minAvailable": 0},
        "job 'minAvailable' must be >= 0",
        "spec.minAvailable",
        unreachable=SCHEMA,
    ),
    "topology twice": _change(
        {"spec/networkTopology/highestTierName": "rack"},
        {"spec/priorityClassName": "high"},
        _TWICE,
        "spec.networkTopology",
        {"spec/networkTopology": _TIER},
    ),
    "another task": _change(
        {"spec/tasks/1": task("other")},
        {f"{_TASK}/replicas": 9},
        "job updates may not add or remove tasks",
        "spec.tasks",
    ),
    "another queue": _change({"spec/queue": "other"}, {"spec/priorityClassName": "high"}, _ONLY, "spec.queue"),
    "another image": _change(
        {f"{_C}/image": "busybox:2"},
        {f"{_TASK}/replicas": 0, f"{_TASK}/minAvailable": 0, "spec/minAvailable": 0},
        _ONLY,
        "spec.tasks[0].template.spec.containers[0].image",
    ),
    "another plugin": _change({"spec/plugins": {"svc": []}}, {"metadata/labels": {"a": "b"}}, _ONLY, "spec.plugins"),
    "types of fields": _change(
        {"spec/maxRetry": "often"},
        {"metadata/annotations": {"a": "b"}},
        "Expected `int`",
        "spec.maxRetry",
        unreachable=SCHEMA,
    ),
}
