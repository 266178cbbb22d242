"""Plugin ray: the pods of a job form a Ray cluster.

The container ``head`` of the head task runs ``ray start --head`` and gets the ports ``gcs``, ``dashboard`` and
``client-server``. The container ``worker`` of the worker task runs ``ray start`` with the address of the head. The
Service ``<job>-head-svc`` leads to these ports of the head. The plugin needs svc, for the address.

Arguments: ``--head`` (head) and ``--worker`` (worker) name the tasks, ``--headContainer`` (head) and
``--workerContainer`` (worker) the containers; ``--port`` (6379), ``--dashboardPort`` (8265), ``--clientPort`` (10001).

Different from Volcano: the Service also finds a port that the template declares under another name or without one.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from volcano_py.api import keys
from volcano_py.api.batch import Job, Task
from volcano_py.api.plugin_arguments import Port, parse
from volcano_py.controllers.job.plugins.containers import Container, change, own_spec, with_port
from volcano_py.controllers.job.plugins.contract import KeyPair, PluginObject, PluginProblem
from volcano_py.controllers.job.plugins.hosts import check_service_name, first_address, selector, task_of
from volcano_py.kube.resource import SERVICES

_START: Final = "ray start"


class RayArguments(msgspec.Struct, frozen=True, rename="camel"):
    """Arguments of ray."""

    head: str = "head"
    head_container: str = "head"
    worker: str = "worker"
    worker_container: str = "worker"
    port: Port = 6379
    dashboard_port: Port = 8265
    client_port: Port = 10001

    def ports(self) -> dict[str, int]:
        """Return the ports of the head by their names."""
        return {"gcs": self.port, "dashboard": self.dashboard_port, "client-server": self.client_port}


class Ray:
    """Sets commands and ports of head and workers, and adds the Service of the head."""

    needs_key_pair = False
    fixed_at_start: tuple[str, ...] = ()

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments, self._unusable = parse(RayArguments, arguments)
        self._address: str | None = None

    def warnings(self, job: Job) -> Sequence[str]:
        """Return unusable arguments, and containers that nobody finds."""
        arguments = self._arguments
        places = (
            (arguments.head, arguments.head_container, "headContainer"),
            (arguments.worker, arguments.worker_container, "workerContainer"),
        )
        absent = [
            f'task "{name}" has no container "{container}", so none runs Ray: set --{argument}'
            for name, container, argument in places
            if (task := task_of(job, name)) is not None and not _containers(task, container)
        ]
        return (*self._unusable, *absent)

    def objects(self, job: Job, key_pair: KeyPair | None) -> Sequence[PluginObject]:
        """Return the Service of the head."""
        head = self._head(job)
        name = f"{job.metadata.name}-head-svc"
        check_service_name(name)
        declared = [
            port
            for container in _containers(head, self._arguments.head_container)
            for port in container.get("ports") or ()
        ]
        ports = [
            {"name": name, "port": number, "protocol": "TCP", "targetPort": _target(name, number, declared)}
            for name, number in self._arguments.ports().items()
        ]
        body = {
            "apiVersion": SERVICES.api_version,
            "kind": SERVICES.kind,
            "metadata": {"name": name},
            "spec": {"selector": {**selector(job), keys.TASK_SPEC: head.name}, "ports": ports},
        }
        return (PluginObject(SERVICES, body),)

    def customize(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        """Set the command of the head or of a worker."""
        arguments = self._arguments
        if self._address is None:
            self._address = first_address(job, self._head(job))
        if task.name == arguments.head:
            change(own_spec(pod), self._as_head)
        elif task.name == arguments.worker:
            change(own_spec(pod), self._as_worker)

    def _as_head(self, container: Container) -> Container:
        arguments = self._arguments
        if container.get("name") != arguments.head_container:
            return container
        command = (
            f"{_START} --head --block --dashboard-host=0.0.0.0 --port={arguments.port}"
            f" --dashboard-port={arguments.dashboard_port} --ray-client-server-port={arguments.client_port}"
        )
        for name, number in arguments.ports().items():
            container = with_port(container, name, number)
        return {**container, "command": ["sh", "-c", command]}

    def _as_worker(self, container: Container) -> Container:
        if container.get("name") != self._arguments.worker_container:
            return container
        command = f"{_START} --block --address={self._address}:{self._arguments.port}"
        return {**container, "command": ["sh", "-c", command]}

    def _head(self, job: Job) -> Task:
        name = self._arguments.head
        head = task_of(job, name)
        if head is None:
            raise PluginProblem(f'no task is named "{name}": name the task of the head with --head')
        return head


def _containers(task: Task, name: str) -> list[Container]:
    spec = task.template.get("spec") or {}
    return [container for container in spec.get("containers") or () if container.get("name") == name]


def _target(name: str, number: int, declared: Sequence[dict[str, Any]]) -> str | int:
    """Return the port of the container that a port of the Service leads to: its name, or its number if it has none."""
    for port in declared:
        if port.get("containerPort") == number:
            return port.get("name") or number
    taken = any(port.get("name") == name for port in declared)
    return number if taken else name
