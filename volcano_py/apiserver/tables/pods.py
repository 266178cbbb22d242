"""The row of a pod: how many containers are ready, and its state in one word."""

from __future__ import annotations

from typing import Any

from volcano_py.apiserver.objects import Obj, dig
from volcano_py.apiserver.tables.ages import age
from volcano_py.apiserver.tables.layout import NONE, born, layout


def pod_cells(pod: Obj) -> list[Any]:
    """READY, STATUS, RESTARTS, AGE and, for `-o wide`, the pod's address and node."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    init = spec.get("initContainers") or []
    sidecars = {item.get("name") for item in init if item.get("restartPolicy") == "Always"}
    statuses = status.get("containerStatuses") or []
    init_statuses = status.get("initContainerStatuses") or []
    counted = [*statuses, *(item for item in init_statuses if item.get("name") in sidecars)]
    ready = sum(bool(item.get("ready")) and dig(item, "state", "running") is not None for item in counted)
    total = len(spec.get("containers") or []) + len(sidecars)
    return [
        f"{ready}/{total}",
        pod_status(pod, sidecars),
        _restarts(counted),
        born(pod),
        status.get("podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, status),
    ]


def pod_status(pod: Obj, sidecars: set[Any]) -> str:
    """The pod's state in one word: its phase, or a more precise reason from its containers."""
    status = pod.get("status") or {}
    phase = str(status.get("phase") or "")
    word = str(status.get("reason") or phase)
    conditions = status.get("conditions") or []
    if any(item.get("type") == "PodScheduled" and item.get("reason") == "SchedulingGated" for item in conditions):
        word = "SchedulingGated"
    initial = _initializing(pod, sidecars)
    initialized = any(item.get("type") == "Initialized" and item.get("status") == "True" for item in conditions)
    if initial and not initialized:
        word = initial
    else:
        word = _of_containers(status.get("containerStatuses") or [], conditions, word)
    if "deletionTimestamp" not in pod["metadata"]:
        return word
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return word if phase in ("Succeeded", "Failed") else "Terminating"


def _initializing(pod: Obj, sidecars: set[Any]) -> str:
    """The state of the first unfinished init container; empty if all are done."""
    statuses = dig(pod, "status", "initContainerStatuses") or []
    for index, item in enumerate(statuses):
        state = item.get("state") or {}
        ended, waiting = state.get("terminated"), (state.get("waiting") or {}).get("reason")
        if (ended and not ended.get("exitCode")) or (item.get("name") in sidecars and item.get("started")):
            continue
        if ended:
            return f"Init:{_end_of(ended)}"
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{index}/{len(dig(pod, 'spec', 'initContainers') or [])}"
    return ""


def _end_of(ended: Obj) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _of_containers(statuses: list[Obj], conditions: list[Obj], word: str) -> str:
    """The state of the first container with a reason; a running container takes precedence over a completed one."""
    running, failure = False, ""
    for item in reversed(statuses):
        state = item.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            word = str(state["waiting"]["reason"])
        elif state.get("terminated"):
            word = _end_of(state["terminated"])
            if state["terminated"].get("exitCode"):
                failure = word
        elif item.get("ready") and state.get("running") is not None:
            running = True
    if word != "Completed":
        return word
    ready = any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
    if running and ready:
        return "Running"
    return failure or ("NotReady" if running else word)


def _restarts(statuses: list[Obj]) -> str:
    count = sum(item.get("restartCount") or 0 for item in statuses)
    times = [dig(item, "lastState", "terminated", "finishedAt") for item in statuses]
    last = max((text for text in times if text), default=None)
    return f"{count} ({age(last)} ago)" if count and last else str(count)


def _gates(spec: Obj, status: Obj) -> str:
    gates = [item.get("conditionType") for item in spec.get("readinessGates") or []]
    if not gates:
        return NONE
    conditions = status.get("conditions") or []
    true = {item.get("type") for item in conditions if item.get("status") == "True"}
    return f"{sum(gate in true for gate in gates)}/{len(gates)}"


POD = layout("Ready, Status, Restarts, Age, +IP, +Node, +Nominated Node, +Readiness Gates", pod_cells)
