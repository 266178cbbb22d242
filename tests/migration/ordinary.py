"""Ordinary objects of users in a cluster that runs Volcano: nothing about them is different here."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

Obj = dict[str, Any]

PHASES: Final = (
    *("Pending", "Running", "Restarting", "Aborting", "Aborted"),
    *("Completing", "Completed", "Terminating", "Terminated", "Failed"),
)
_GROUPS: Final = {"Pending": "Pending", "Running": "Running"}
NAMESPACE: Final = "team"


def task(name: str = "worker", replicas: int = 2, **more: Any) -> Obj:
    """Return a task."""
    container = {"name": "main", "image": "busybox:1.36.1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {
        "name": name,
        "replicas": replicas,
        "minAvailable": replicas,
        "maxRetry": 3,
        "template": {"metadata": {}, "spec": {"restartPolicy": "Never", "containers": [container]}},
        **more,
    }


def job_spec(*tasks: Obj, **more: Any) -> Obj:
    """Return the spec of a job as Volcano's webhook leaves it."""
    chosen = list(tasks) or [task()]
    return {
        "schedulerName": "volcano",
        "queue": "default",
        "maxRetry": 3,
        "minAvailable": sum(one["minAvailable"] for one in chosen),
        "tasks": chosen,
        **more,
    }


def job(name: str, phase: str = "Running", spec: Obj | None = None, **status: Any) -> Obj:
    """Return a job."""
    chosen = spec or job_spec()
    counters = {"running": sum(one["replicas"] for one in chosen["tasks"])} if phase == "Running" else {}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}"},
        "spec": chosen,
        "status": {
            "state": {"phase": phase, "lastTransitionTime": "2026-01-01T00:00:00Z"},
            "minAvailable": chosen["minAvailable"],
            **counters,
            **status,
        },
    }


def pods_of(owner: Obj) -> Iterator[Obj]:
    """Yield the pods of a job that runs."""
    name = owner["metadata"]["name"]
    for one in owner["spec"]["tasks"]:
        for index in range(one["replicas"]):
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{name}-{one['name']}-{index}",
                    "namespace": NAMESPACE,
                    "labels": {"volcano.sh/job-name": name, "volcano.sh/job-namespace": NAMESPACE},
                    "annotations": {
                        "volcano.sh/job-name": name,
                        "scheduling.k8s.io/group-name": f"{name}-uid-{name}",
                        "volcano.sh/task-spec": one["name"],
                    },
                    "ownerReferences": [_reference(owner)],
                },
                "spec": {**copy.deepcopy(one["template"]["spec"]), "schedulerName": "volcano", "nodeName": "node-0"},
                "status": {"phase": "Running"},
            }


def group_of(owner: Obj, phase: str = "Running") -> Obj:
    """Return the PodGroup of a job."""
    name, spec = owner["metadata"]["name"], owner["spec"]
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": f"{name}-uid-{name}",
            "namespace": NAMESPACE,
            "ownerReferences": [_reference(owner)],
        },
        "spec": {
            "minMember": spec["minAvailable"],
            "minTaskMember": {one["name"]: one["minAvailable"] for one in spec["tasks"]},
            "queue": spec["queue"],
            "minResources": {"cpu": "2", "memory": "2Gi", "pods": "2", "count/pods": "2"},
        },
        "status": {"phase": phase},
    }


def _reference(owner: Obj) -> Obj:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def queue(name: str, state: str = "Open", parent: str = "root", **spec: Any) -> Obj:
    """Return a queue."""
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": True, "parent": parent, **spec},
        "status": {"state": state, "allocated": {"cpu": "4", "memory": "0", "pods": "4"}},
    }


def bare_pod(name: str = "bare", **spec: Any) -> Obj:
    """Return a pod of the scheduler that no job owns."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "annotations": {}},
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "main", "image": "busybox:1.36.1", "resources": {"requests": {"cpu": "1"}}}],
            **spec,
        },
        "status": {"phase": "Running"},
    }


def hyper_node(name: str, tier: int, kind: str, *members: str) -> Obj:
    """Return a HyperNode."""
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": {
            "tier": tier,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members],
        },
    }


def flow(name: str, *steps: Obj, phase: str = "Running") -> Obj:
    """Return a job flow."""
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"flows": list(steps), "jobRetainPolicy": "retain"},
        "status": {"state": {"phase": phase}},
    }


def template(name: str, spec: Obj | None = None) -> Obj:
    """Return a job template."""
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobTemplate",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec or job_spec(),
    }


def cron_job(name: str, schedule: str = "*/5 * * * *", **spec: Any) -> Obj:
    """Return a cron job."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"schedule": schedule, "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": job_spec()}, **spec},
    }


def node(name: str, **annotations: str) -> Obj:
    """Return a node."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": dict(annotations), "labels": {"rack": "r0"}},
        "status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}},
    }


def _rich_specs() -> Iterator[tuple[str, Obj]]:
    """Yield specs that use what works here as in Volcano."""
    on_failure = [{"event": "PodFailed", "action": "RestartJob"}, {"exitCode": 3, "action": "AbortJob"}]
    yield (
        "policies",
        job_spec(task(policies=[{"event": "TaskCompleted", "action": "CompleteJob"}]), policies=on_failure),
    )
    waiting = [
        {"event": "PodPending", "action": "AbortJob", "timeout": "1h"},
        {"events": ["PodEvicted", "PodFailed"], "action": "RestartJob", "timeout": "10m"},
    ]
    yield "timeouts", job_spec(policies=waiting)
    yield "mpi", job_spec(task("master", 1), task("worker", 2), plugins={"mpi": ["--port=22"], "svc": [], "ssh": []})
    yield "pytorch", job_spec(task("master", 1), task("worker", 2), plugins={"pytorch": [], "svc": [], "env": []})
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"mountPath": "/data", "volumeClaimName": "data"}, {"mountPath": "/out", "volumeClaim": claim}]
    generated = "volumes-pvc-0123456789ab"  # written by the controller
    volumes.append({"mountPath": "/new", "volumeClaimName": generated, "volumeClaim": claim})
    yield "volumes", job_spec(volumes=volumes)
    yield "topology", job_spec(networkTopology={"mode": "hard", "highestTierAllowed": 2})
    partitions = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 2}
    yield "partitions", job_spec(task(replicas=4, partitionPolicy=partitions))
    waits = task("executor", 2, minAvailable=0, dependsOn={"name": ["driver"], "iteration": "any"})
    yield "dependent", job_spec(task("driver", 1), waits)
    yield "finished-soon", job_spec(minSuccess=1, ttlSecondsAfterFinished=60, priorityClassName="high")


def ordinary() -> Iterator[Obj]:
    """Yield the objects of users."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    jobs = [job(f"job-{phase.lower()}", phase) for phase in PHASES]
    jobs += [job(f"{name}", "Running", spec) for name, spec in _rich_specs()]
    for one in jobs:
        phase = one["status"]["state"]["phase"]
        yield one
        if phase in _GROUPS:
            yield group_of(one, _GROUPS[phase])
        if phase == "Running":
            yield from pods_of(one)
    yield from (queue("closed", "Closed"), queue("closing", "Closing"), queue("ml", capability={"cpu": "10"}))
    yield queue("research", deserved={"cpu": "8"}, guarantee={"resource": {"cpu": "4"}}, capability={"cpu": "10"})
    yield queue("vision", parent="research", deserved={"cpu": "5"}, guarantee={"resource": {"cpu": "2"}})
    yield queue("text", parent="research", deserved={"cpu": "3"}, capability={"cpu": "6"}, dequeueStrategy="traverse")
    draining = job("draining", "Running", job_spec(queue="closing"))
    yield from (draining, group_of(draining), *pods_of(draining))
    yield from (
        bare_pod(),
        bare_pod(
            "foreign", schedulerName="default-scheduler", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}]
        ),
    )
    yield from (cron_job("nightly", timeZone="Europe/Berlin"), cron_job("often", "@every 5m"))
    yield from (template("prepare"), template("train"))
    yield flow("pipeline", {"name": "prepare"}, {"name": "train", "dependsOn": {"targets": ["prepare"]}})
    yield from (node("node-0"), node("node-1", **{"volcano.sh/oversubscription-cpu": "1000"}))
    yield from (hyper_node("leaf-0", 1, "Node", "node-0"), hyper_node("leaf-1", 1, "Node", "node-1"))
    yield hyper_node("spine", 2, "HyperNode", "leaf-0", "leaf-1")
