"""Rules that the history of every job keeps, whatever happens to it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from tests.e2e.recorder import Seen

Obj = Mapping[str, Any]

FINAL = frozenset({"Completed", "Failed", "Terminated"})
AT_REST = FINAL | {"Aborted"}
ENDING = frozenset({"Aborting", "Terminating", "Completing"})
NEXT: Mapping[str, frozenset[str]] = {
    "": frozenset({"Pending"}),
    "Pending": frozenset({"Running", "Completed", "Restarting", *ENDING}),
    "Running": frozenset({"Pending", "Completed", "Failed", "Restarting", *ENDING}),
    "Restarting": frozenset({"Pending", "Failed", *ENDING}),
    "Aborting": frozenset({"Aborted", "Restarting"}),
    "Aborted": frozenset({"Restarting"}),
    "Terminating": frozenset({"Terminated"}),
    "Completing": frozenset({"Completed"}),
    **{phase: frozenset() for phase in FINAL},
}
"""The phases that may follow a phase."""
COUNTERS = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
WRITES_PER_PHASE = 2


def broken_rules(versions: Sequence[Seen], pods: Sequence[Sequence[Seen]]) -> list[str]:
    """Return which rules the versions of a job, and of each of its pods, break."""
    statuses = [each.obj.get("status", {}) for each in versions]
    return [
        *_phases(statuses),
        *_numbers_only_grow(statuses),
        *_no_pod_is_counted_twice(versions),
        *_running_has_enough(statuses),
        *_final_counters(versions, statuses),
        *_reasons(statuses),
        *_conditions(statuses),
        *_writes(versions, statuses),
        *_pods(versions, pods),
    ]


def _phase(status: Obj) -> str:
    return str(status.get("state", {}).get("phase", ""))


def _entries(statuses: Sequence[Obj]) -> list[Obj]:
    """Return the first status of each phase entered."""
    return [next(group) for phase, group in groupby(statuses, _phase) if phase]


def _phases(statuses: Sequence[Obj]) -> list[str]:
    found = [phase for phase, _ in groupby(statuses, _phase)]
    return [
        f"{after} followed {before or 'no phase'}" for before, after in pairwise(found) if after not in NEXT[before]
    ]


def _numbers_only_grow(statuses: Sequence[Obj]) -> list[str]:
    return [
        f"{name} fell from {before[name]} to {after.get(name, 0)}"
        for before, after in pairwise(statuses)
        for name in ("retryCount", "version")
        if before.get(name, 0) > after.get(name, 0)
    ]


def _no_pod_is_counted_twice(versions: Sequence[Seen]) -> list[str]:
    found: list[str] = []
    most: dict[str, int] = {}
    for each in versions:
        # Pods of a larger job that are still terminating after it was scaled down count as well.
        for task in each.obj["spec"].get("tasks", ()):
            most[task["name"]] = max(most.get(task["name"], 0), task.get("replicas", 0))
        status = each.obj.get("status", {})
        counts = {name: status[name] for name in COUNTERS if status.get(name)}
        if sum(counts.values()) > sum(most.values()):
            found.append(f"more pods are counted than there can be: {counts}")
    return found


def _running_has_enough(statuses: Sequence[Obj]) -> list[str]:
    found = []
    for status in _entries(statuses):
        there = sum(status.get(name, 0) for name in ("running", "succeeded", "failed"))
        if _phase(status) == "Running" and there < status.get("minAvailable", 0):
            found.append(f"Running was entered with {there} pods of {status.get('minAvailable')}")
    return found


def _final_counters(versions: Sequence[Seen], statuses: Sequence[Obj]) -> list[str]:
    last = statuses[-1]
    if _phase(last) not in AT_REST or "deletionTimestamp" in versions[-1].obj["metadata"]:
        return []
    left = {name: last[name] for name in ("pending", "running", "terminating") if last.get(name)}
    return [f"{_phase(last)} ended with {left}"] if left else []


def _reasons(statuses: Sequence[Obj]) -> list[str]:
    found = []
    for status in _entries(statuses):
        phase = _phase(status)
        if phase in {"Pending", "Running"}:
            continue
        found += [f"{phase} has no {field}" for field in ("reason", "message") if not status["state"].get(field)]
    return found


def _conditions(statuses: Sequence[Obj]) -> list[str]:
    found = []
    for status in statuses:
        names = [condition["status"] for condition in status.get("conditions", ())]
        if _phase(status) and (not names or names[-1] != _phase(status)):
            found.append(f"in {_phase(status)}, the conditions are {names}")
        if len(set(names)) < len(names):
            found.append(f"a phase has two conditions: {names}")
    return found[:1]


def _writes(versions: Sequence[Seen], statuses: Sequence[Obj]) -> list[str]:
    """Judge the number of status writes: two for each phase entered, and one more each second."""
    written = sum(before != after for before, after in pairwise([{}, *statuses]))
    seconds = math.ceil(versions[-1].at - versions[0].at)
    allowed = WRITES_PER_PHASE * len(_entries(statuses)) + seconds
    return [f"{written} writes of the status; {allowed} are allowed"] if written > allowed else []


def _pods(versions: Sequence[Seen], pods: Sequence[Sequence[Seen]]) -> list[str]:
    found = []
    going = next((each.at for each in versions if each.kind == "DELETED"), math.inf)
    for history in pods:
        meta = history[0].obj["metadata"]
        if history[0].at > going:
            found.append(f"pod {meta['name']} was created after its job was gone")
        owner = meta["ownerReferences"][0]
        if not (owner.get("controller") and owner.get("blockOwnerDeletion")):
            found.append(f"pod {meta['name']} does not have its job as controller")
    return found
