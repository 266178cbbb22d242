"""Area controllers/job_pods: pods and PodGroups of a job."""

from typing import Any, Final

import msgspec

from tests.conformance.handlers.controllers.job_world import world_of
from tests.conformance.handlers.scheduler.world import open_session
from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.api import keys
from volcano_py.api.batch import Job, JobCondition, Task
from volcano_py.api.job_defaults import with_defaults
from volcano_py.controllers.job import depends_on, objects, pod_group, policies
from volcano_py.controllers.job import status as statuses
from volcano_py.controllers.job.happenings import Trigger
from volcano_py.controllers.job.members import Member
from volcano_py.controllers.job.min_resources import ranked
from volcano_py.controllers.job.objects import JobPod
from volcano_py.controllers.job.pods import PodFactory

_RESTARTS: Final = {
    "task": policies.RESTART_TASK,
    "pod": policies.RESTART_POD,
    "partition": policies.RESTART_PARTITION,
}


def _create_pod_group(case: Case) -> Outcome:
    body = pod_group.create(with_defaults(msgspec.convert(case.input["job"], Job)), {}).body
    assert isinstance(body, dict)
    return {"minTaskMember": body["spec"]["minTaskMember"], "error": None}


def _kill_pods(case: Case) -> Outcome:
    """Let a policy restart the target: what happened names it."""
    info, target = case.input["jobInfo"], case.input["target"]
    assert target.keys() <= {"type", "taskName", "podName", "partitionId"}
    job = {**info["job"], "spec": {"policies": [{"event": "PodFailed", "action": _RESTARTS[target["type"]]}]}}
    world = world_of(job, info["pods"], "Running")
    name = target.get("podName", "")
    known = world.record.members.get(name)
    annotations = {keys.TASK_SPEC: target["taskName"], keys.JOB_VERSION: str(world.job.status.version)}
    labels = {keys.PARTITION_ID: target.get("partitionId", "")}
    meta = {"name": name, "uid": known.uid if known else "", "annotations": annotations, "labels": labels}
    failed = Member.of(msgspec.convert({"metadata": meta, "status": {"phase": "Failed"}}, JobPod))
    world.record.triggers.clear()
    world.record.triggers.append(Trigger(policies.POD_FAILED, failed))
    world.look()
    return {"remaining": {pod: pod in world.alive() for pod in world.pods}, "error": None}


def _sub_group_policy(case: Case) -> Outcome:
    task = msgspec.convert(case.input["task"], Task)
    policy = pod_group.sub_group_policy(task)
    assert policy is not None
    assert policy["labelSelector"] == {"matchLabels": {keys.TASK_SPEC: task.name}}
    return {name: policy.get(name) for name in ("subGroupSize", "minSubGroups")}


def _append_condition(case: Case) -> Outcome:
    before = msgspec.convert(case.input.get("conditions", []), list[JobCondition])
    after = statuses.appended(before, msgspec.convert(case.input["condition"], JobCondition))
    return {"count": len(after), "last": after[-1].status}


def _dependency_ready(case: Case) -> Outcome:
    job = msgspec.convert(case.input["job"], Job)
    ready = sum(Member.of(msgspec.convert(pod, JobPod)).ready for pod in case.input["pods"])
    return {"ready": depends_on.dependency_ready(policies.task_of(job, case.input["task"]), ready)}


def _pod_name(case: Case) -> Outcome:
    return {"name": objects.pod_name(case.input["job"], case.input["task"], case.input["index"])}


def _partition(case: Case) -> Outcome:
    size, index = case.input["partitionSize"], case.input["index"]
    task = msgspec.convert({"name": case.input["task"], "partitionPolicy": {"partitionSize": size}}, Task)
    job = msgspec.convert({"metadata": {"name": "job"}, "spec": {"tasks": [msgspec.to_builtins(task)]}}, Job)
    labels = PodFactory(job, task).pod(index)["metadata"]["labels"]
    return {"partition": labels[keys.PARTITION_ID], "task": labels[keys.TASK_SPEC]}


def _task_priority(case: Case) -> Outcome:
    """Left sorts before right if it comes first, whichever of the two stands first in the job."""
    sides = ["left", "right"]
    priorities = {side: case.input["tasks"][case.input[side]]["priority"] for side in sides}
    firsts = [ranked(_job_of_classes(order), priorities)[0].task.name for order in (sides, sides[::-1])]
    return {"less": firsts == ["left", "left"]}


def _job_of_classes(names: list[str]) -> Job:
    tasks = [{"name": name, "template": {"spec": {"priorityClassName": name}}} for name in names]
    return msgspec.convert({"metadata": {"name": "job"}, "spec": {"tasks": tasks}}, Job)


def _compare_task(case: Case) -> Outcome:
    """Ask the scheduler in which order it serves two pending pods of one job."""
    group = {"metadata": {"name": "group", "namespace": "ns"}, "spec": {"queue": "q"}}
    pods = [_pending(case.input[side]) for side in ("left", "right")]
    inputs = {"queues": [{"metadata": {"name": "q"}}], "podGroups": [group], "pods": pods}
    scheduler: dict[str, Any] = {"tiers": [], "effectivePlugins": []}
    ssn = open_session(Case(case.operation, inputs, {}, scheduler))
    (job,) = ssn.state.jobs.present().tolist()
    first, _ = ssn.hooks.pending.of(job).tolist()
    return {"leftFirst": ssn.state.tasks.record(first).uid == case.input["left"]["uid"]}


def _pending(task: dict[str, Any]) -> dict[str, Any]:
    assert task.keys() == {"name", "pod", "uid"}
    meta = task["pod"]["metadata"]
    meta = {**meta, "name": task["name"], "namespace": "ns", "uid": task["uid"]}
    return {
        "metadata": {**meta, "annotations": {keys.GROUP_NAME: "group"}},
        "spec": {"containers": [{}]},
        "status": {"phase": "Pending"},
    }


def _task_index(case: Case) -> Outcome:
    pod = msgspec.convert(case.input["pod"], JobPod)
    try:
        return {"index": objects.index_of(pod.metadata), "error": False}
    except ValueError:
        return {"index": Member.of(pod).index, "error": True}


def _task_replicas(case: Case) -> Outcome:
    task = policies.task_of(msgspec.convert(case.input["job"], Job), case.input["task"])
    return {"replicas": 0 if task is None else task.replicas}


_LABELS: Final = frozenset({"task", "partitionSize", "index"})

OPERATIONS: Final = {
    "createPodGroup": Operation(_create_pod_group, {"minTaskMember": same, "error": same}, frozenset({"job"})),
    "killPods": Operation(_kill_pods, {"remaining": same, "error": same}, frozenset({"jobInfo", "target"})),
    "subGroupPolicy": Operation(_sub_group_policy, {"subGroupSize": same, "minSubGroups": same}, frozenset({"task"})),
    "appendCondition": Operation(
        _append_condition, {"count": same, "last": same}, frozenset({"conditions", "condition"})
    ),
    "dependencyReady": Operation(_dependency_ready, {"ready": same}, frozenset({"job", "task", "pods"})),
    "podName": Operation(_pod_name, {"name": same}, frozenset({"job", "task", "index"})),
    "partition": Operation(_partition, {"partition": same, "task": same}, _LABELS),
    "taskPriority": Operation(_task_priority, {"less": same}, frozenset({"tasks", "left", "right"})),
    "compareTask": Operation(_compare_task, {"leftFirst": same}, frozenset({"left", "right"})),
    "taskIndex": Operation(_task_index, {"index": same, "error": same}, frozenset({"pod"})),
    "taskReplicas": Operation(_task_replicas, {"replicas": same}, frozenset({"job", "task"})),
}
