"""Area controllers/job_plugins: what job plugins do to a pod."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from tests.conformance.operations import Operation, Outcome, same
from tests.conformance.row_files import Case
from volcano_py.api import keys
from volcano_py.api.batch import Job, Task
from volcano_py.controllers.job.plugins.registry import Plugins, build_plugins
from volcano_py.controllers.job.plugins.ssh import Ssh
from volcano_py.kube.resource import SERVICES

_POD: Final = frozenset({"job", "pod"})
_RANKED: Final = _POD | {"master", "worker"}


def _hccl_rank(case: Case) -> Outcome:
    arguments = [f"--{role}={case.input[role]}" for role in ("master", "worker")]
    pod, _ = _customized(case, "hcclrank", arguments)
    return {"rank": pod["metadata"].get("annotations", {}).get(keys.HCCL_RANK, ""), "error": False}


def _mpi_port(case: Case) -> Outcome:
    pod, _ = _customized(case, "mpi")
    return {"port": pod["spec"]["containers"][0]["ports"][0]["containerPort"]}


def _mpi_host(case: Case) -> Outcome:
    pod, _ = _customized(case, "mpi")
    name = case.expect["env"].get("name", "MPI_HOST")
    found = [one for container in pod["spec"]["containers"] for one in container.get("env", ()) if one["name"] == name]
    assert case.input["master"] or not found, "a worker has the hosts of the workers"
    assert len(found) <= 1, "a variable stands twice"
    return {"env": found[0] if found else {}}


def _pytorch(case: Case) -> Outcome:
    pod, _ = _customized(case, "pytorch")
    (container,) = pod["spec"]["containers"]
    ports = container.get("ports", ())
    return {"port": ports[0]["containerPort"] if ports else -1, "env": container.get("env")}


def _ray(case: Case) -> Outcome:
    pod, plugins = _customized(case, case.input["plugin"], case.input.get("arguments"))
    container = pod["spec"]["containers"][0]
    (service,) = (one.body for one in plugins.objects(_job(case)) if one.resource is SERVICES)
    return {
        "serviceName": service["metadata"]["name"],
        "servicePorts": len(service["spec"]["ports"]),
        "command": container["command"],
        "ports": [port["containerPort"] for port in container.get("ports", ())],
    }


def _tensorflow(case: Case) -> Outcome:
    pod, _ = _customized(case, case.input["plugin"], case.input.get("arguments"))
    return {"env": pod["spec"]["containers"][0]["env"][:1]}


def _ssh(case: Case) -> Outcome:
    settings = Ssh(case.input.get("arguments", ())).arguments
    return {
        "keyFilePath": settings.ssh_key_file_path,
        "privateKey": settings.ssh_private_key,
        "publicKey": settings.ssh_public_key,
        "port": settings.ssh_port,
    }


def _customized(case: Case, plugin: str, arguments: Sequence[str] | None = None) -> tuple[dict[str, Any], Plugins]:
    """Return the pod after a plugin has changed it, and the plugins; arguments stand in the job unless given."""
    job = _job(case)
    given = job.spec.plugins.get(plugin) or () if arguments is None else arguments
    job = msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, plugins={plugin: list(given)}))
    plugins = build_plugins(job)
    assert plugins.problems == ()
    pod: dict[str, Any] = dict(case.input["pod"])
    task, index = _place(pod, job)
    plugins.customize(pod, job, task, index)
    return pod, plugins


def _job(case: Case) -> Job:
    return msgspec.convert(case.input.get("job", {"metadata": {"name": "absent"}}), Job)


def _place(pod: Mapping[str, Any], job: Job) -> tuple[Task, int]:
    """Return the task of a pod and its number, by annotation and label or else by its name."""
    metadata = pod["metadata"]
    role = metadata.get("annotations", {}).get(keys.TASK_SPEC, "")
    index = metadata.get("labels", {}).get(keys.TASK_INDEX) or metadata["name"].rpartition("-")[2]
    task = next((task for task in job.spec.tasks if task.name == role), Task(name=role))
    return task, int(index) if index.isdecimal() else 0


OPERATIONS: Final = {
    "hcclRank": Operation(_hccl_rank, {"rank": same, "error": same}, _RANKED),
    "hcclRankCustom": Operation(_hccl_rank, {"rank": same}, _RANKED),
    "hcclRankEdge": Operation(_hccl_rank, {"error": same}, _RANKED),
    "mpiPort": Operation(_mpi_port, {"port": same}, _POD),
    "mpiHost": Operation(_mpi_host, {"env": same}, _POD | {"master"}),
    "pytorch": Operation(_pytorch, {"port": same, "env": same}, _POD),
    "ray": Operation(
        _ray,
        {"serviceName": same, "servicePorts": same, "command": same, "ports": same},
        _POD | {"plugin", "arguments"},
    ),
    "tensorflow": Operation(_tensorflow, {"env": same}, _POD | {"plugin", "arguments"}),
    "ssh": Operation(
        _ssh,
        {"keyFilePath": same, "privateKey": same, "publicKey": same, "port": same},
        frozenset({"arguments"}),
    ),
}
