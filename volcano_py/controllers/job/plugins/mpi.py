"""Plugin mpi: the master knows the hosts of the workers, by the variable ``MPI_HOST`` (addresses, joined by commas).

Containers and init containers get a port ``mpijob-port``, where SSH listens. The pods of the master task get nothing if
there is no worker task. The plugin needs svc, for the addresses, and ssh.

Arguments: ``--master`` (master) and ``--worker`` (worker) name the tasks; ``--port`` (22).

Different from Volcano: a list that Linux does not allow as a variable (128 KiB and more) is left out, with a warning.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from volcano_py.api.batch import Job, Task
from volcano_py.api.plugin_arguments import Port, parse
from volcano_py.controllers.job.plugins.containers import ALL, change, own_spec, variable, with_env, with_port
from volcano_py.controllers.job.plugins.contract import KeyPair, PluginObject
from volcano_py.controllers.job.plugins.hosts import addresses, fits_a_variable, size_of_addresses, task_of

PORT_NAME: Final = "mpijob-port"
_VARIABLE: Final = "MPI_HOST"


class MpiArguments(msgspec.Struct, frozen=True):
    """Arguments of mpi."""

    master: str = "master"
    worker: str = "worker"
    port: Port = 22


class Mpi:
    """Adds the port to all containers, and the hosts of the workers to those of the master."""

    needs_key_pair = False
    fixed_at_start = (_VARIABLE,)

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments, self._unusable = parse(MpiArguments, arguments)
        self._hosts: str | None = None

    def warnings(self, job: Job) -> Sequence[str]:
        """Return unusable arguments, missing tasks, and that the list of hosts is too long."""
        absent = [
            f'no task is named "{name}", so no pod gets {_VARIABLE}: set --{role}'
            for role, name in (("master", self._arguments.master), ("worker", self._arguments.worker))
            if task_of(job, name) is None
        ]
        if not self._fits(job):
            size = f"{self._size(job)} bytes are too many"
            absent.append(f"a container cannot have variable {_VARIABLE}: {size}; read the file that svc mounts")
        return (*self._unusable, *absent)

    def objects(self, job: Job, key_pair: KeyPair | None) -> Sequence[PluginObject]:
        """Return nothing: what pods get is all."""
        return ()

    def customize(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        """Add the port, and MPI_HOST to a pod of the master."""
        hosts = ""
        if task.name == self._arguments.master:
            if task_of(job, self._arguments.worker) is None:
                return
            hosts = self._workers(job) if self._fits(job) else ""
        port = self._arguments.port
        if hosts:
            added = [variable(_VARIABLE, hosts)]
            change(own_spec(pod), lambda container: with_env(with_port(container, PORT_NAME, port), added), ALL)
        else:
            change(own_spec(pod), lambda container: with_port(container, PORT_NAME, port), ALL)

    def _fits(self, job: Job) -> bool:
        return fits_a_variable(_VARIABLE, self._size(job))

    def _size(self, job: Job) -> int:
        workers = task_of(job, self._arguments.worker)
        return 0 if workers is None else size_of_addresses(job, workers)

    def _workers(self, job: Job) -> str:
        if self._hosts is None:
            workers = task_of(job, self._arguments.worker)
            self._hosts = "" if workers is None else ",".join(addresses(job, workers))
        return self._hosts
