"""The requests by which the objects of a job come onto an API server, under the names of Volcano's programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tests.migration.volcano_job_kinds import Obj
from tests.migration.volcano_workloads import Belongings

MERGE: Final = "application/merge-patch+json"
CONTROLLERS: Final = "vc-controller-manager"
SCHEDULER: Final = "vc-scheduler"
_PLURALS: Final[Mapping[str, str]] = {
    "Job": "jobs",
    "CronJob": "cronjobs",
    "JobFlow": "jobflows",
    "JobTemplate": "jobtemplates",
    "Command": "commands",
    "PodGroup": "podgroups",
    "Pod": "pods",
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "Service": "services",
    "NetworkPolicy": "networkpolicies",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "ReplicaSet": "replicasets",
    "Deployment": "deployments",
}


class Request(NamedTuple):
    """One request to the API server."""

    method: str
    path: str
    body: Obj
    content_type: str = "application/json"


def collection(api_version: str, kind: str, namespace: str) -> str:
    """Return the path of all objects of a kind in a namespace."""
    root = f"/api/{api_version}" if "/" not in api_version else f"/apis/{api_version}"
    return f"{root}/namespaces/{namespace}/{_PLURALS[kind]}"


def path_of(obj: Obj) -> str:
    """Return the path of an object."""
    meta = obj["metadata"]
    return f"{collection(obj['apiVersion'], obj['kind'], meta['namespace'])}/{meta['name']}"


def create(obj: Obj, manager: str = CONTROLLERS) -> Request:
    """Return the creation of an object by a program of Volcano."""
    where = collection(obj["apiVersion"], obj["kind"], obj["metadata"]["namespace"])
    return Request("POST", f"{where}?fieldManager={manager}", obj)


def write_status(obj: Obj, status: Obj, manager: str = CONTROLLERS) -> Request:
    """Return the write of a status over its subresource."""
    return Request("PATCH", f"{path_of(obj)}/status?fieldManager={manager}", {"status": status}, MERGE)


def requests(job: Obj, found: Belongings) -> Iterator[Request]:
    """Yield all that follows the creation of a job."""
    if found.group is not None:
        status = found.group.get("status") or {}
        yield create({key: value for key, value in found.group.items() if key != "status"})
        # PodGroups have no status subresource: the scheduler writes the object.
        yield Request("PATCH", f"{path_of(found.group)}?fieldManager={SCHEDULER}", {"status": status}, MERGE)
    for one in found.objects:
        yield create(one)
    for pod in found.pods:
        yield create({key: value for key, value in pod.items() if key != "status"})
        yield write_status(pod, pod["status"], "kubelet")
    yield write_status(job, found.status)
    for pod in found.pods:
        if pod["metadata"]["name"] in found.dying:
            yield Request("DELETE", path_of(pod), {})
