"""The two cases of the demo, and the state of their jobs. A job works once all its pods run.

E1: five training jobs of 2 parameter servers and 4 workers on a cluster with room for one job and a part of a second.
A1: a job of 100 pods of one GPU each on 99 free GPUs; then a hundredth GPU is added.

All of them are Volcano jobs (vcjobs): the job controller makes their PodGroups and pods.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from volcano_py.api import keys
from volcano_py.kube.resource import PODGROUPS, VCJOBS
from volcano_py.local import objects
from volcano_py.local.cluster import LocalCluster

TRAINING_JOBS: Final = 5
GPU_GANG: Final = "gpu-gang"
GPU_PODS: Final = 100
_JOBS: Final = f"{VCJOBS.plural}.{VCJOBS.group}"
_GROUPS: Final = f"{PODGROUPS.plural}.{PODGROUPS.group}"
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
    """Yield five jobs of 2 x 1 CPU + 4 x 2 CPU each."""
    for number in range(TRAINING_JOBS):
        servers = objects.task("ps", 2, {"cpu": "1", "memory": "1Gi"})
        workers = objects.task("worker", 4, {"cpu": "2", "memory": "2Gi"})
        yield objects.job(f"train-{number}", [servers, workers])


def gpu_gang() -> objects.Obj:
    """Return one job of 100 pods."""
    requests = {"cpu": "1", "memory": "1Gi", objects.GPU: "1"}
    return objects.job(GPU_GANG, [objects.task("worker", GPU_PODS, requests, tolerations=(dict(_GPU_TOLERATION),))])


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as the table shows it."""

    name: str
    phase: str
    minimum: int
    pods: int  # that it shall have
    placed: int
    running: int
    ended: int
    why: str  # what its PodGroup says while it waits


def jobs(cluster: LocalCluster) -> list[JobView]:
    """Return all jobs of the API server, sorted by name."""
    why = {}
    for group in cluster.registry.objects(_GROUPS):
        for owner in group["metadata"].get("ownerReferences", []):
            why[owner["uid"]] = _why(group)
    views = []
    for job in cluster.registry.objects(_JOBS):
        name, spec = job["metadata"]["name"], job["spec"]
        pods = list(pods_of(cluster, name))
        phases = [pod["status"].get("phase") for pod in pods]
        views.append(
            JobView(
                name=name,
                phase=job.get("status", {}).get("state", {}).get("phase", "Pending"),
                minimum=spec["minAvailable"],
                pods=sum(task["replicas"] for task in spec["tasks"]),
                placed=sum(bool(pod["spec"].get("nodeName")) for pod in pods),
                running=phases.count("Running"),
                ended=phases.count("Succeeded"),
                why=why.get(job["metadata"]["uid"], ""),
            )
        )
    return sorted(views, key=lambda view: view.name)


def pods_of(cluster: LocalCluster, job: str) -> Iterator[objects.Obj]:
    """Yield the pods of a job."""
    for pod in cluster.pods():
        if pod["metadata"].get("labels", {}).get(keys.JOB_NAME) == job:
            yield pod


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
