"""A pod in one line: ready containers, one word for its state, restarts. The words are kubectl's."""

from collections.abc import Iterable, Mapping
from typing import Any

from volcano_py.api import keys
from volcano_py.client.problem import Problem

Obj = Mapping[str, Any]
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"


def ready(pod: Obj) -> str:
    """Return how many containers are ready, such as 1/2; sidecars count."""
    counted = _counted(pod)
    total = len(_of(pod, "spec", "containers")) + len(_sidecars(pod))
    done = sum(bool(one.get("ready")) and "running" in (one.get("state") or {}) for one in counted)
    return f"{done}/{total}"


def restarts(pod: Obj) -> int:
    """Return how often its containers were started again."""
    return sum(int(one.get("restartCount") or 0) for one in _counted(pod))


def state(pod: Obj) -> str:
    """Return its phase, or the more precise reason of a container."""
    status = pod.get("status") or {}
    phase = str(status.get("phase") or "")
    word = str(status.get("reason") or phase)
    conditions = {one.get("type"): one for one in status.get("conditions") or ()}
    if (conditions.get("PodScheduled") or {}).get("reason") == "SchedulingGated":
        word = "SchedulingGated"
    initial = "" if _true(conditions, "Initialized") else _initial(pod)
    word = initial or _of_containers(_of(pod, "status", "containerStatuses"), word, ready=_true(conditions, "Ready"))
    if not (pod.get("metadata") or {}).get("deletionTimestamp"):
        return word
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return word if phase in ("Succeeded", "Failed") else "Terminating"


def in_queue(pods: Iterable[Obj], queue: str) -> list[Obj]:
    """Return the pods of a queue: by the label of jobs, or by the annotation of bare pods."""
    return [pod for pod in pods if queue in (_label(pod, keys.JOB_QUEUE), _annotation(pod, QUEUE_ANNOTATION))]


def selected(pods: Iterable[Obj], job: str, queue: str) -> list[Obj]:
    """Return the pods that a list shows; raise Problem if the job exists and is in another queue."""
    found = list(pods)
    if not queue:
        return found
    kept = in_queue(found, queue)
    if job and found and not kept:
        raise Problem(f"the input vcjob {job} does not match the queue {queue}")
    return kept


def _label(pod: Obj, name: str) -> str:
    return str(((pod.get("metadata") or {}).get("labels") or {}).get(name) or "")


def _annotation(pod: Obj, name: str) -> str:
    return str(((pod.get("metadata") or {}).get("annotations") or {}).get(name) or "")


def _of(pod: Obj, part: str, field: str) -> list[Obj]:
    return list((pod.get(part) or {}).get(field) or ())


def _true(conditions: Mapping[Any, Obj], kind: str) -> bool:
    return (conditions.get(kind) or {}).get("status") == "True"


def _sidecars(pod: Obj) -> set[str]:
    return {str(one.get("name")) for one in _of(pod, "spec", "initContainers") if one.get("restartPolicy") == "Always"}


def _counted(pod: Obj) -> list[Obj]:
    sidecars = _sidecars(pod)
    initial = [one for one in _of(pod, "status", "initContainerStatuses") if one.get("name") in sidecars]
    return [*_of(pod, "status", "containerStatuses"), *initial]


def _initial(pod: Obj) -> str:
    """Return the state of the first unfinished init container; empty if all are done."""
    sidecars = _sidecars(pod)
    for place, one in enumerate(_of(pod, "status", "initContainerStatuses")):
        ended = (one.get("state") or {}).get("terminated")
        waiting = str(((one.get("state") or {}).get("waiting") or {}).get("reason") or "")
        if (ended and not ended.get("exitCode")) or (one.get("name") in sidecars and one.get("started")):
            continue
        if ended:
            return f"Init:{_end(ended)}"
        if waiting not in ("", "PodInitializing"):
            return f"Init:{waiting}"
        return f"Init:{place}/{len(_of(pod, 'spec', 'initContainers'))}"
    return ""


def _of_containers(statuses: list[Obj], word: str, *, ready: bool) -> str:
    """Return the state of the first container that has a reason; a running one outweighs a completed one."""
    running, failure = False, ""
    for one in reversed(statuses):
        found = one.get("state") or {}
        if reason := (found.get("waiting") or {}).get("reason"):
            word = str(reason)
        elif ended := found.get("terminated"):
            word = _end(ended)
            failure = word if ended.get("exitCode") else failure
        elif one.get("ready") and "running" in found:
            running = True
    if word != "Completed":
        return word
    if running:
        return "Running" if ready else "NotReady"
    return failure or word


def _end(ended: Obj) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"
