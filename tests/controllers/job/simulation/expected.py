"""The rules of jobs once more, written slowly from the reference (`platform` 2.3 to 2.6) and on plain JSON.

Where the controller deviates from Volcano on purpose, so do these rules: a job that restarts can be aborted, terminated
and completed; an eviction by a lower number of replicas is none; the retain set of a restart depends on whether it is
the last that maxRetry allows.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

Obj = dict[str, Any]

ENDED: Final = ("Succeeded", "Failed")
FINAL: Final = ("Completed", "Failed", "Terminated", "Aborted")
MAY_FOLLOW: Final = {
    "": "Pending",
    "Pending": "Running Completed Restarting Aborting Terminating Completing",
    "Running": "Pending Completed Failed Restarting Aborting Terminating Completing",
    "Restarting": "Pending Failed Aborting Terminating Completing",
    "Aborting": "Aborted Restarting",
    "Aborted": "Restarting",
    "Terminating": "Terminated",
    "Completing": "Completed",
    "Terminated": "",
    "Completed": "",
    "Failed": "",
}
WHOLE: Final = ("RestartJob", "AbortJob", "TerminateJob", "CompleteJob", "ResumeJob")
PARTS: Final = ("RestartTask", "RestartPod", "RestartPartition")
ACTIONS: Final = (*WHOLE, *PARTS, "SyncJob", "EnqueueJob")
_ENDINGS: Final = {"AbortJob": "Aborting", "TerminateJob": "Terminating", "CompleteJob": "Completing"}

_SAYS: Final = (
    ("PodFailed", re.compile(r"pod default/(\S+) failed with exit code (\d+)")),
    ("PodEvicted", re.compile(r"pod default/(\S+) was evicted or deleted")),
    ("PodPending", re.compile(r"pod default/(\S+) is pending")),
    ("TaskCompleted", re.compile(r"all pods of task (\S+) succeeded")),
    ("TaskFailed", re.compile(r"the pods of task (\S+) used up its restarts")),
    ("CommandIssued", re.compile(r"Command default/(\S+) asked for (\w+)")),
    ("Unknown", re.compile(r"PodGroup phase (Unknown)")),
)


class Said(NamedTuple):
    """What the message of a state says about why it was entered."""

    subject: str
    """A pod, task or Command."""
    detail: str
    delayed: bool


class Answer(NamedTuple):
    """What policies say."""

    action: str
    delay_s: float


def leads_to(phase: str, action: str) -> str | None:
    """Return the phase that an action enters, None if it changes nothing."""
    if phase in ("Pending", "Running", "Restarting"):
        if action in ("RestartJob", *PARTS):
            return "Restarting"
        return _ENDINGS.get(action)
    return "Restarting" if phase in ("Aborting", "Aborted") and action == "ResumeJob" else None


def answer(job: Obj, event: str, task: str, exit_code: int = 0) -> Answer:
    """Return what the policies of a task and of its job say about an event; SyncJob if they say nothing."""
    of_task = [policy for one in job["spec"]["tasks"] if one["name"] == task for policy in one.get("policies", ())]
    for policy in (*of_task, *job["spec"].get("policies", ())):
        named = {policy.get("event"), *policy.get("events", ())}
        if event in named or "*" in named:
            applies = event != "PodPending" or "timeout" in policy
        else:
            applies = event == "PodFailed" and exit_code != 0 and policy.get("exitCode") == exit_code
        if applies:
            return Answer(policy["action"], float(policy.get("timeout", "0s").removesuffix("s")))
    return Answer("SyncJob", 0.0)


def said(event: str, message: str) -> Said | None:
    """Read the message of a state that was entered on an event; None if it does not say what it must."""
    for name, pattern in _SAYS:
        if name == event and (found := pattern.search(message)) is not None:
            return Said(found[1], found[2] if pattern.groups > 1 else "", "after its timeout" in message)
    return None


def is_event(reason: str) -> bool:
    """Say whether the reason of a state is an event."""
    return any(name == reason for name, _ in _SAYS)


# What is gone and counts


def completed(status: Obj) -> set[tuple[str, int]]:
    """Return task and index of all pods that are gone and count as succeeded, as the notes of a job say."""
    found: set[tuple[str, int]] = set()
    for key, text in (status.get("controlledResources") or {}).items():
        for part in text.split(",") if key.startswith("completed-") else ():
            first, last = (part.split("-") * 2)[:2]
            found |= {(key.removeprefix("completed-"), index) for index in range(int(first), int(last) + 1)}
    return found


# The spec


def replicas(job: Obj) -> int:
    """Return the number of pods of a job."""
    return sum(task["replicas"] for task in job["spec"]["tasks"])


def least(task: Obj) -> int:
    """Return the least number of pods of a task."""
    if "minAvailable" in task:
        return int(task["minAvailable"])
    partitions = task.get("partitionPolicy") or {}
    return int(partitions.get("minPartitions", 0) * partitions.get("partitionSize", 0) or task["replicas"])


def min_available(job: Obj) -> int:
    """Return the least number of pods of a job."""
    return int(job["spec"].get("minAvailable") or sum(least(task) for task in job["spec"]["tasks"]))


def max_retry(job: Obj) -> int:
    """Return how often a job may start."""
    return int(job["spec"].get("maxRetry") or 3)


def task_max_retry(task: Obj) -> int:
    """Return how many restarts of its containers a task has; -1 for any number."""
    return int(task.get("maxRetry") or 3)


# Phases that a job enters by itself


def by_itself(job: Obj, status: Obj) -> str | None:
    """Return the phase that follows the phase of a job at these counters, None if it stays."""
    phase = job["status"]["state"]["phase"]
    count = {name: status.get(name, 0) for name in ("pending", "running", "succeeded", "failed", "terminating")}
    alive = count["pending"] + count["running"] + count["terminating"] + status.get("unknown", 0)
    total, least_pods, retries = replicas(job), min_available(job), status.get("retryCount", 0)
    match phase:
        case "Pending":
            if count["running"] + count["succeeded"] + count["failed"] >= least_pods:
                return "Running"
            enough = job["spec"].get("minSuccess")
            return "Completed" if enough is not None and count["succeeded"] >= enough else None
        case "Running":
            return _from_running(job, status, count, total)
        case "Restarting":
            if retries >= max_retry(job):
                return "Failed"
            return "Pending" if total - count["terminating"] >= least_pods else None
        case "Aborting" | "Terminating" | "Completing":
            return {"A": "Aborted", "T": "Terminated", "C": "Completed"}[phase[0]] if alive == 0 else None
    return None


def _from_running(job: Obj, status: Obj, count: Mapping[str, int], total: int) -> str | None:
    least_pods, success = min_available(job), job["spec"].get("minSuccess")
    if total == 0:
        return None
    if success is not None and count["succeeded"] >= success:
        return "Completed"
    if count["succeeded"] + count["failed"] == total:
        if least_pods >= sum(least(task) for task in job["spec"]["tasks"]):
            by_task = status.get("taskStatusCount") or {}
            for task in job["spec"]["tasks"]:
                phases = (by_task.get(task["name"]) or {}).get("phase")
                if phases and phases.get("Succeeded", 0) < least(task):
                    return "Failed"
        if success is not None and count["succeeded"] < success:
            return "Failed"
        return "Completed" if count["succeeded"] >= least_pods else "Failed"
    return "Pending" if count["pending"] > total - least_pods else None


# Pods


def count(pods: Iterable[Obj]) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Count pods as a status does: for the job, and those that do not terminate by task and phase."""
    totals = dict.fromkeys(("pending", "running", "succeeded", "failed", "terminating", "unknown"), 0)
    by_task: dict[str, dict[str, int]] = {}
    for pod in pods:
        if "deletionTimestamp" in pod["metadata"]:
            totals["terminating"] += 1
            continue
        phase = pod["status"]["phase"]
        totals[phase.lower()] += 1
        task = by_task.setdefault(pod["metadata"]["annotations"]["volcano.sh/task-spec"], {})
        task[phase] = task.get(phase, 0) + 1
    return totals, by_task


def restarts(pod: Obj) -> int:
    """Return the restarts that a pod has cost; one that failed for good counts as one."""
    status = pod["status"]
    return sum(one.get("restartCount", 0) for one in status.get("containerStatuses", ())) + (
        status["phase"] == "Failed"
    )


def is_ready(pod: Obj) -> bool:
    """Say whether a pod counts for the tasks that depend on its task."""
    if "deletionTimestamp" in pod["metadata"]:
        return False
    status = pod["status"]
    ready = all(one.get("ready") for one in status.get("containerStatuses", ()))
    return status["phase"] == "Succeeded" or (status["phase"] == "Running" and ready)


def may_start(job: Obj, task: Obj, ready: Mapping[str, int], least_of: Mapping[str, int] | None = None) -> bool:
    """Say whether pods of a task may be created; ``least_of`` replaces the minima of the spec."""
    depends = task.get("dependsOn")
    if not depends:
        return True
    least_of = least_of or {one["name"]: least(one) for one in job["spec"]["tasks"]}
    answers = [ready.get(name, 0) >= least_of[name] for name in depends["name"]]
    return any(answers) if depends.get("iteration") == "any" and len(answers) > 1 else all(answers)
