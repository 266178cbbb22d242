"""The PodGroup of a job: what is created, and what follows later changes of the job."""

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from volcano_py.api import keys
from volcano_py.api.batch import Job, PartitionPolicy, Task
from volcano_py.api.job_defaults import least_of
from volcano_py.api.scheduling import NetworkTopology, PodGroup, SubGroupPolicy
from volcano_py.controllers.job import objects
from volcano_py.controllers.job.min_resources import min_resources
from volcano_py.controllers.quota_usage import same_amounts
from volcano_py.controllers.writes import Create, Patch
from volcano_py.kube.resource import PODGROUPS


def create(job: Job, priorities: Mapping[str, int], waiting: Collection[str] = ()) -> Create:
    """Return the creation of the PodGroup; ``waiting`` are tasks whose dependencies are not ready."""
    meta = job.metadata
    body = {
        "apiVersion": PODGROUPS.api_version,
        "kind": PODGROUPS.kind,
        "metadata": {
            "name": objects.group_name(meta.name, meta.uid),
            "namespace": meta.namespace,
            "annotations": {
                **{name: text for name, text in meta.annotations.items() if name != keys.LAST_APPLIED},
                keys.JOB_VERSION: str(job.status.version),
                keys.GROUP_SCHEDULER: job.spec.scheduler_name,
            },
            "labels": meta.labels,
            "ownerReferences": [objects.owner_reference(meta.name, meta.uid)],
        },
        "spec": {
            **_following(job, priorities, waiting),
            "queue": job.spec.queue,
            **_topology(job.spec.network_topology),
        },
    }
    return Create(PODGROUPS, meta.namespace, body)


def follow(job: Job, group: PodGroup, priorities: Mapping[str, int], waiting: Collection[str] = ()) -> Patch | None:
    """Return the patch that brings an existing PodGroup up to the job, None if it is."""
    wanted, spec = _following(job, priorities, waiting), group.spec
    changed: dict[str, Any] = {}
    if wanted["minMember"] != spec.min_member:
        changed["minMember"] = wanted["minMember"]
    now = spec.min_task_member
    members = {task: count for task, count in wanted["minTaskMember"].items() if now.get(task) != count}
    members |= dict.fromkeys(task for task in waiting if task in now)
    if members:
        changed["minTaskMember"] = members
    if wanted.get("priorityClassName", "") != spec.priority_class_name:
        changed["priorityClassName"] = wanted.get("priorityClassName")
    resources = wanted.get("minResources") or {}
    if not same_amounts(resources, spec.min_resources or {}):
        changed["minResources"] = {**dict.fromkeys(spec.min_resources or {}), **resources}
    policies = wanted.get("subGroupPolicy") or []
    if _stripped(msgspec.convert(policies, list[SubGroupPolicy])) != _stripped(spec.sub_group_policy):
        changed["subGroupPolicy"] = policies
    meta: dict[str, Any] = {"uid": group.metadata.uid}
    if version_of(group) is None:  # another program created it
        meta["annotations"] = {keys.JOB_VERSION: str(job.status.version)}
    elif not changed:
        return None
    return Patch(PODGROUPS, group.metadata.namespace, group.metadata.name, {"metadata": meta, "spec": changed})


def left_of(job: Job, completed: Mapping[str, Collection[int]]) -> Job:
    """Return a job without the pods that have done their work and are gone: a gang must not wait for them."""
    if not completed:
        return job
    done = {task: len(indices) for task, indices in completed.items()}
    tasks = [
        msgspec.structs.replace(
            task,
            replicas=task.replicas - done[task.name],
            min_available=max(0, least_of(task) - done[task.name]),
            partition_policy=_partitions_left(task, completed[task.name]),
        )
        if task.name in done
        else task
        for task in job.spec.tasks
    ]
    least = max(0, job.spec.min_available - sum(done.values()))
    if job.spec.min_available >= sum(least_of(task) for task in job.spec.tasks):  # the minimums of tasks hold, too
        least = max(least, sum(least_of(task) for task in tasks))
    return msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, tasks=tasks, min_available=least))


def _partitions_left(task: Task, completed: Collection[int]) -> PartitionPolicy | None:
    """Return the partitions of a task without those that are done as a whole.

    Their size is that of the smallest one that is left: no partition can have more pods than it still needs.
    """
    policy = task.partition_policy
    if policy is None or policy.partition_size <= 0:
        return policy
    size = policy.partition_size
    left = [size - done for done in Counter(index // size for index in completed).values()]
    whole = left.count(0)
    return msgspec.structs.replace(
        policy,
        partition_size=min(filter(None, left), default=size),
        min_partitions=max(0, policy.min_partitions - whole),
    )


def version_of(group: PodGroup) -> int | None:
    """Return the version of the job for which a PodGroup was created, None if it does not say."""
    return objects.number(group.metadata.annotations.get(keys.JOB_VERSION, ""))


def min_task_member(job: Job) -> dict[str, int]:
    """Return the least number of pods of each task."""
    return {task.name: least_of(task) for task in job.spec.tasks}


def sub_group_policy(task: Task) -> dict[str, Any] | None:
    """Return the sub-group of a task with a partition policy."""
    partitions = task.partition_policy
    if partitions is None:
        return None
    return {
        "name": task.name,
        "subGroupSize": partitions.partition_size,
        "minSubGroups": partitions.min_partitions,
        "labelSelector": {"matchLabels": {keys.TASK_SPEC: task.name}},
        "matchLabelKeys": [keys.PARTITION_ID],
        **_topology(partitions.network_topology),
    }


def _following(job: Job, priorities: Mapping[str, int], waiting: Collection[str]) -> dict[str, Any]:
    """Return the fields that follow the job.

    The minimum leaves out tasks whose dependencies are not ready: their pods do not exist yet, so a gang that waited
    for them would never start.
    """
    spec = job.spec
    members = min_task_member(job)
    absent = sum(members[task] for task in waiting)
    present = sum(members.values()) - absent
    resources = min_resources(job, priorities)
    policies = [policy for task in spec.tasks if (policy := sub_group_policy(task)) is not None]
    return {
        "minMember": min(spec.min_available, present) if waiting else spec.min_available,
        "minTaskMember": {task: count for task, count in members.items() if task not in waiting},
        **({"priorityClassName": spec.priority_class_name} if spec.priority_class_name else {}),
        **({"minResources": resources} if resources else {}),
        **({"subGroupPolicy": policies} if policies else {}),
    }


def _topology(topology: NetworkTopology | None) -> dict[str, Any]:
    if topology is None:
        return {}
    limit = msgspec.to_builtins(topology)
    if topology.highest_tier_allowed is not None:
        limit.pop("highestTierName", None)
    return {"networkTopology": limit}


def _stripped(policies: list[SubGroupPolicy]) -> list[SubGroupPolicy]:
    """Return policies without the defaults that the API server adds to a topology."""
    found = []
    for policy in policies:
        topology = policy.network_topology
        if topology is not None and topology.mode == "hard":
            policy = msgspec.structs.replace(policy, network_topology=msgspec.structs.replace(topology, mode=""))
        found.append(policy)
    return found
