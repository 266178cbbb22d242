"""A stand-in for Volcano's job controller: what it would do when it starts and finds a job, its PodGroup and its pods.

It is written from what is known of Volcano's behaviour, not from our controllers: `acts` lists the writes that the
first look at a job leads to. For a job that was handed back as it should be, there are none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.migration.volcano_job_kinds import BATCH, Obj
from tests.migration.volcano_workloads import group_name, group_of

_NEEDED: Final = ("volcano.sh/job-name", "volcano.sh/job-version", "volcano.sh/task-spec")
"""Annotations without which Volcano's controller does not take a pod into its cache."""
_OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"
_GROUP: Final = "scheduling.k8s.io/group-name"
_FINISHED: Final = ("Completed", "Failed", "Terminated", "Aborted")
_KILLING: Final = {"Aborting": "Aborted", "Terminating": "Terminated", "Completing": "Completed"}


@dataclass
class Acts:
    """What Volcano's job controller would do."""

    created: list[str] = field(default_factory=list)
    """Names of pods."""
    deleted: list[str] = field(default_factory=list)
    phase: str = ""
    """The phase after the look."""
    answers: list[str] = field(default_factory=list)
    """Actions of policies that answer what the pods show."""
    new_group: bool = False
    group_changes: list[str] = field(default_factory=list)
    """Fields of the spec of the PodGroup that it would write."""
    unknown: list[str] = field(default_factory=list)
    """Pods that it would not take for pods of the job."""
    objects_created: bool = False
    """Whether plugins would create their objects again."""

    @property
    def restless(self) -> list[str]:
        """What would disturb a job that runs."""
        found = [f"creates {name}" for name in self.created] + [f"deletes {name}" for name in self.deleted]
        found += [f"does not know {name}" for name in self.unknown] + [f"executes {one}" for one in self.answers]
        return found + (["creates a PodGroup"] if self.new_group else [])


def owned_by(job: Obj, objects: Iterable[Obj]) -> list[Obj]:
    """Return the objects that a job controls."""
    uid = job["metadata"]["uid"]
    return [
        one
        for one in objects
        if any(
            ref.get("controller") and ref["uid"] == uid and ref["kind"] == "Job" and ref["apiVersion"] == BATCH
            for ref in one["metadata"].get("ownerReferences", ())
        )
    ]


def acts(job: Obj, groups: Iterable[Obj], pods: Iterable[Obj], queues: Mapping[str, Obj]) -> Acts:
    """Return what happens at the first look at a job."""
    pods = owned_by(job, pods)
    known = {one["metadata"]["name"]: one for one in pods if _is_known(one)}
    found = Acts(unknown=sorted(one["metadata"]["name"] for one in pods if not _is_known(one)))
    by_name = {one["metadata"]["name"]: one for one in groups}
    group = by_name.get(group_name(job), by_name.get(job["metadata"]["name"]))
    phase = job.get("status", {}).get("state", {}).get("phase", "")
    if phase in _FINISHED or phase in _KILLING:
        found.deleted = sorted(name for name, pod in known.items() if not _is_going(pod) and not _has_ended(pod))
        alive = any(not _has_ended(pod) for pod in known.values())
        found.phase = phase if alive or phase in _FINISHED else _KILLING[phase]
        return found
    if job["spec"]["queue"] not in queues:
        found.answers.append("TerminateJob, because its queue does not exist")
    _look_at_group(found, job, group)
    found.objects_created = phase in ("", "Pending") and _lacks_notes(job)
    counts = _look_at_pods(found, job, group, known)
    found.phase = _next_phase(job, phase, counts)
    if phase == "Running":
        found.answers += _answers(job, known.values())
    return found


def _is_known(pod: Obj) -> bool:
    annotations = pod["metadata"].get("annotations") or {}
    return all(annotations.get(key) for key in _NEEDED)


def _is_going(pod: Obj) -> bool:
    return "deletionTimestamp" in pod["metadata"]


def _has_ended(pod: Obj) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def _lacks_notes(job: Obj) -> bool:
    notes = job.get("status", {}).get("controlledResources") or {}
    return any(f"plugin-{name}" not in notes for name in job["spec"].get("plugins") or {} if name != "hcclrank")


def _look_at_group(found: Acts, job: Obj, group: Obj | None) -> None:
    if group is None:
        found.new_group = True
        return
    wanted = group_of(job)["spec"]
    for name in ("minMember", "minTaskMember", "minResources", "priorityClassName", "subGroupPolicy"):
        now = group["spec"].get(name)
        if name == "minTaskMember":  # entries are added and changed, never removed
            now = {task: (now or {}).get(task) for task in wanted[name]}
        if (now or None) != (wanted.get(name) or None):
            found.group_changes.append(name)


def _look_at_pods(found: Acts, job: Obj, group: Obj | None, known: Mapping[str, Obj]) -> Counter[str]:
    """Note which pods are made and deleted; return the numbers of pods by phase."""
    counts: Counter[str] = Counter()
    managed = group is not None and group.get("status", {}).get("phase") not in (None, "", "Pending")
    wanted = set()
    for task in job["spec"]["tasks"]:
        for index in range(task["replicas"]):
            name = f"{job['metadata']['name']}-{task['name']}-{index}"
            wanted.add(name)
            pod = known.get(name)
            if pod is None:
                if managed and _may_start(job, task, known):
                    found.created.append(name)
                    counts["Pending"] += 1
                continue
            if (pod["metadata"].get("annotations") or {}).get(_GROUP) != group_name(job):
                found.unknown.append(f"the PodGroup of {name}")
            if _is_going(pod):
                counts["terminating"] += 1
                continue
            counts[pod["status"].get("phase", "Pending")] += 1
            if managed and pod["metadata"]["annotations"].get(_OUT_OF_SYNC) == "true":
                found.deleted.append(name)
    if managed:
        found.deleted += sorted(name for name, pod in known.items() if name not in wanted and not _is_going(pod))
    return counts


def _may_start(job: Obj, task: Obj, known: Mapping[str, Obj]) -> bool:
    waits_for = task.get("dependsOn") or {}
    names = waits_for.get("name") or []
    ready = [_is_ready(one, known.values()) for one in job["spec"]["tasks"] if one["name"] in names]
    if len(names) > 1 and waits_for.get("iteration") == "any":
        return any(ready)
    return all(ready)


def _is_ready(task: Obj, pods: Iterable[Obj]) -> bool:
    minimum = task.get("minAvailable")
    good = 0
    for pod in pods:
        if pod["metadata"]["annotations"]["volcano.sh/task-spec"] == task["name"]:
            statuses = pod["status"].get("containerStatuses", ())
            running = pod["status"].get("phase") == "Running" and all(one.get("ready") for one in statuses)
            good += running or pod["status"].get("phase") == "Succeeded"
    return minimum is None or good >= minimum


def _next_phase(job: Obj, phase: str, counts: Counter[str]) -> str:
    spec, status = job["spec"], job.get("status", {})
    total = sum(task["replicas"] for task in spec["tasks"])
    ended = counts["Succeeded"] + counts["Failed"]
    if phase in ("", "Pending"):
        return "Running" if counts["Running"] + ended >= spec["minAvailable"] else "Pending"
    if phase == "Restarting":
        if status.get("retryCount", 0) >= spec["maxRetry"]:
            return "Failed"
        return "Pending" if total - counts["terminating"] >= spec["minAvailable"] else phase
    if total == 0:
        return phase
    least = spec.get("minSuccess")
    if least and counts["Succeeded"] >= least:
        return "Completed"
    if ended == total:
        return "Completed" if counts["Succeeded"] >= max(spec["minAvailable"], least or 0) else "Failed"
    return "Pending" if counts["Pending"] > total - spec["minAvailable"] else phase


def _answers(job: Obj, pods: Collection[Obj]) -> list[str]:
    """Return the actions by which policies have answered pods at once, so that the job cannot run as it does."""
    version = job.get("status", {}).get("version", 0)
    found = []
    for pod in pods:
        if int(pod["metadata"]["annotations"]["volcano.sh/job-version"]) < version:
            continue
        event = "PodFailed" if pod["status"].get("phase") == "Failed" else ""
        action = answer(job, pod["metadata"]["annotations"]["volcano.sh/task-spec"], event, exit_code(pod))
        if action:
            found.append(f"{action} because of {pod['metadata']['name']}")
    complete = (task["name"] for task in job["spec"]["tasks"] if _is_complete(task, pods, version))
    actions = ((name, answer(job, name, "TaskCompleted", 0)) for name in complete)
    return [*found, *(f"{action} because of task {name}" for name, action in actions if action)]


def _is_complete(task: Obj, pods: Iterable[Obj], version: int) -> bool:
    """Say whether all pods of a task have succeeded, the last of them in this version of the job."""
    own = [pod for pod in pods if pod["metadata"]["annotations"]["volcano.sh/task-spec"] == task["name"]]
    succeeded = [pod for pod in own if pod["status"].get("phase") == "Succeeded"]
    fresh = any(int(pod["metadata"]["annotations"]["volcano.sh/job-version"]) >= version for pod in succeeded)
    return fresh and len(succeeded) == task["replicas"]


def exit_code(pod: Obj) -> int:
    """Return the exit code that Volcano reads of a pod: that of its first container."""
    statuses = pod["status"].get("containerStatuses") or [{}]
    return int((statuses[0].get("state", {}).get("terminated") or {}).get("exitCode", 0))


def answer(job: Obj, task: str, event: str, code: int) -> str:
    """Return the action by which policies answer an event at once, "" if none does."""
    spec = job["spec"]
    own = next((one.get("policies") or [] for one in spec["tasks"] if one["name"] == task), [])
    for policy in (*own, *(spec.get("policies") or [])):
        events = {policy.get("event"), *(policy.get("events") or ())} - {None}
        if event and (event in events or "*" in events or (code and policy.get("exitCode") == code)):
            return "" if policy.get("timeout") else str(policy["action"])
    return ""
