"""The two cases of the demo, and the state of their jobs. A job works once all its pods run.

E1: five training jobs of 2 parameter servers and 4 workers on a cluster with room for one job and a part of a second.
A1: a gang of 100 pods of one GPU each on 99 free GPUs; then a hundredth GPU is added.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.api import keys
from volcano_py.local import objects
from volcano_py.local.cluster import LocalCluster

TRAINING_JOBS: Final = 5
GPU_GANG: Final = "gpu-gang"
GPU_PODS: Final = 100
_GPU_TAINT: Final = {"key": "example.com/gpu-only", "value": "true", "effect": "NoSchedule"}
_GPU_TOLERATION: Final = {"key": "example.com/gpu-only", "operator": "Exists"}


def nodes() -> Iterator[objects.Obj]:
    """Yield four workers of 4 CPU (16 in all, a job needs 10) and 13 GPU nodes with 99 GPUs together."""
    for i in range(4):
        yield objects.node(f"worker-{i}", {"cpu": "4", "memory": "16Gi"})
    for i in range(12):
        yield _gpu_node(i, 8)
    yield _gpu_node(12, 3)


def hundredth_gpu() -> objects.Obj:
    """Return the node that the GPU gang lacks."""
    return _gpu_node(13, 1)


def _gpu_node(number: int, gpus: int) -> objects.Obj:
    resources = {"cpu": "32", "memory": "256Gi", objects.GPU: str(gpus)}
    return objects.node(f"gpu-{number:02d}", resources, taints=(dict(_GPU_TAINT),))


def training_jobs() -> Iterator[objects.Obj]:
    """Yield five PodGroups and their pods, 2 x 1 CPU + 4 x 2 CPU each, interleaved as from five controllers."""
    names = [f"train-{number}" for number in range(TRAINING_JOBS)]
    for name in names:
        yield objects.pod_group(name, 6)
    for i in range(2):
        for name in names:
            yield objects.pod(f"{name}-ps-{i}", name, "ps", {"cpu": "1", "memory": "1Gi"})
    for i in range(4):
        for name in names:
            yield objects.pod(f"{name}-worker-{i}", name, "worker", {"cpu": "2", "memory": "2Gi"})


def gpu_gang() -> Iterator[objects.Obj]:
    """Yield one PodGroup of 100 and its pods."""
    yield objects.pod_group(GPU_GANG, GPU_PODS)
    for i in range(GPU_PODS):
        requests = {"cpu": "1", "memory": "1Gi", objects.GPU: "1"}
        yield objects.pod(f"{GPU_GANG}-{i}", GPU_GANG, "worker", requests, tolerations=(dict(_GPU_TOLERATION),))


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as the table shows it."""

    name: str
    phase: str
    minimum: int
    pods: int
    placed: int
    running: int
    ended: int
    why: str


def jobs(cluster: LocalCluster) -> list[JobView]:
    """Return all jobs of the API server, sorted by name."""
    members: dict[str, list[dict[str, Any]]] = {}
    for pod in cluster.pods():
        members.setdefault(pod["metadata"].get("annotations", {}).get(keys.GROUP_NAME, ""), []).append(pod)
    views = []
    for group in cluster.registry.objects(f"podgroups.{keys.SCHEDULING_GROUP}"):
        pods = members.get(group["metadata"]["name"], [])
        phases = [pod["status"].get("phase") for pod in pods]
        views.append(
            JobView(
                name=group["metadata"]["name"],
                phase=group.get("status", {}).get("phase", "Pending"),
                minimum=group["spec"]["minMember"],
                pods=len(pods),
                placed=sum(bool(pod["spec"].get("nodeName")) for pod in pods),
                running=phases.count("Running"),
                ended=phases.count("Succeeded"),
                why=_why(group),
            )
        )
    return sorted(views, key=lambda view: view.name)


def _why(group: dict[str, Any]) -> str:
    for condition in group.get("status", {}).get("conditions", []):
        if condition["type"] == keys.CONDITION_UNSCHEDULABLE and condition["status"] == "True":
            return str(condition.get("message", ""))
    return ""


def usage(cluster: LocalCluster) -> list[tuple[str, str, float, float]]:
    """Return (node, resource, requested, allocatable) per node, sorted; the resource is the GPU if a node has any."""
    requested: dict[tuple[str, str], float] = {}
    for pod in cluster.pods():
        where = pod["spec"].get("nodeName")
        if where and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            for name, amount in pod["spec"]["containers"][0]["resources"]["requests"].items():
                if name in (keys.CPU, objects.GPU):
                    requested[where, name] = requested.get((where, name), 0.0) + float(amount)
    rows = []
    for node in cluster.registry.objects("nodes"):
        name, has = node["metadata"]["name"], node["status"]["allocatable"]
        resource = objects.GPU if objects.GPU in has else keys.CPU
        rows.append((name, resource, requested.get((name, resource), 0.0), float(has[resource])))
    return sorted(rows)
