"""A gang, its queues and nodes, and what else an explanation rests on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from volcano_py.client.waiting_facts import Facts
from volcano_py.client.why import Explanation, why_job

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
THEN = "2026-03-01T11:00:00Z"
UID = "uid-of-train"


def template(cpu: str = "2", **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec}}


def vcjob(phase: str = "Pending", *, replicas: int = 4, reason: str = "Created", message: str = "", **pod: Any) -> Any:
    return {
        "metadata": {"name": "train", "namespace": "a", "uid": UID, "creationTimestamp": THEN},
        "spec": {
            "queue": "research",
            "minAvailable": replicas,
            "tasks": [{"name": "w", "replicas": replicas, "template": template(**pod)}],
        },
        "status": {"state": {"phase": phase, "reason": reason, "message": message, "lastTransitionTime": THEN}},
    }


def gang(phase: str = "Inqueue", name: str = "train-uid", owner: str = UID, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "a",
            "creationTimestamp": THEN,
            "ownerReferences": [{"kind": "Job", "name": name.partition("-")[0], "uid": owner}],
        },
        "spec": {
            "queue": "research",
            "minMember": 4,
            "minResources": {"cpu": "8", "count/pods": "4", "requests.cpu": "8"},
        },
        "status": {"phase": phase, **status},
    }


def share(name: str, parent: str = "root", state: str = "Open", **more: Any) -> dict[str, Any]:
    spec = {"parent": "" if name == "root" else parent, **({"capability": more["may"]} if "may" in more else {})}
    return {"metadata": {"name": name}, "spec": spec, "status": {"state": state, "allocated": more.get("used", {})}}


def machine(name: str, cpu: str = "8", group: str = "", **spec: Any) -> dict[str, Any]:
    labels = {"volcano.sh/nodegroup-name": group} if group else {}
    conditions = [{"type": "Ready", "status": spec.pop("ready", "True")}]
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "pods": "110"}, "conditions": conditions},
    }


def member(name: str, node: str = "", group: str = "train-uid", owner: str = UID, cpu: str = "2", **status: Any) -> Any:
    return {
        "metadata": {
            "name": name,
            "namespace": "a",
            "annotations": {"scheduling.k8s.io/group-name": group, "volcano.sh/task-spec": "w"},
            "ownerReferences": [{"uid": owner}],
        },
        "spec": {**template(cpu)["spec"], **({"nodeName": node} if node else {})},
        "status": {"phase": "Running" if node else "Pending", **status},
    }


QUEUE_TREE = [share("root"), share("research")]


def facts(**given: Any) -> Facts:
    own = given.get("pods", [])
    return Facts(
        job=given.get("job", vcjob()),
        group=given.get("group", gang()),
        pods=own,
        queues=given.get("queues", QUEUE_TREE),
        groups=[*([given["group"]] if given.get("group") else []), *given.get("groups", [])],
        nodes=given.get("nodes", [machine("n1"), machine("n2")]),
        placed=[*own, *given.get("others", [])],
        events=given.get("events", []),
        debug=given.get("debug"),
        notes=given.get("notes", []),
    )


def section(found: Explanation, title: str) -> list[tuple[str, ...]]:
    return next((list(one.rows) for one in found.sections if one.title.startswith(title)), [])


def needing(minimum: int, **spec: Any) -> Any:
    found = gang()
    found["spec"].update(minMember=minimum, **spec)
    return found


def explained(**given: Any) -> Explanation:
    return why_job(facts(**given), NOW)
