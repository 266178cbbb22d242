"""Plugin pytorch: every container knows the master, the number of processes, and its rank.

``MASTER_ADDR`` and ``MASTER_PORT`` are the address of pod 0 of the master task. ``WORLD_SIZE`` is the number of pods of
the tasks master and worker. ``RANK`` is 0 for the master and 1 + i for pod i of the worker task; pods of other tasks
have none. Containers get a port ``pytorchjob-port``. Nothing is added if there is no master task. The plugin needs svc,
for the address.

Arguments: ``--master`` (master) and ``--worker`` (worker) name the tasks; ``--port`` (23456); ``--wait-master-enabled``
(false) gives pods of the worker task an init container ``wait-for-master``, which ends as soon as the master listens,
or fails after ``--wait-master-timeout`` (300 s); ``--wait-master-image`` (busybox:1.36.1) needs a shell with ``nc``, or
``bash``.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from volcano_py.api.batch import Job, Task
from volcano_py.api.plugin_arguments import Port, Seconds, parse
from volcano_py.controllers.job.plugins.containers import EnvVar, change, own_spec, variable, with_env, with_port
from volcano_py.controllers.job.plugins.contract import KeyPair, PluginObject
from volcano_py.controllers.job.plugins.hosts import first_address, task_of

PORT_NAME: Final = "pytorchjob-port"
WAIT_CONTAINER: Final = "wait-for-master"

_WAIT_SCRIPT: Final = """\
end=$(($(date +%s) + WAIT_SECONDS))
until nc -z -w 2 "$MASTER_ADDR" "$MASTER_PORT" 2>/dev/null ||
  timeout 2 bash -c 'exec 3<>"/dev/tcp/$MASTER_ADDR/$MASTER_PORT"' 2>/dev/null; do
  if [ "$(date +%s)" -ge "$end" ]; then
    echo "the master $MASTER_ADDR:$MASTER_PORT does not listen after $WAIT_SECONDS s" >&2
    exit 1
  fi
  sleep 2
done
"""


class PytorchArguments(msgspec.Struct, frozen=True, rename="kebab"):
    """Arguments of pytorch."""

    master: str = "master"
    worker: str = "worker"
    port: Port = 23456
    wait_master_enabled: bool = False
    wait_master_timeout: Seconds = 300
    wait_master_image: str = "busybox:1.36.1"


class Pytorch:
    """Adds variables and a port to containers, and an init container that waits for the master."""

    needs_key_pair = False
    fixed_at_start = ("WORLD_SIZE",)

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments, self._unusable = parse(PytorchArguments, arguments)
        self._shared: tuple[EnvVar, ...] | None = None

    def warnings(self, job: Job) -> Sequence[str]:
        """Return unusable arguments, a missing master, and several masters."""
        name = self._arguments.master
        master = task_of(job, name)
        if master is None:
            return (*self._unusable, f'no task is named "{name}", so the pods get no variables: set --master')
        if master.replicas > 1:
            return (*self._unusable, f'task "{name}" has {master.replicas} replicas, and all of them get RANK 0')
        return self._unusable

    def objects(self, job: Job, key_pair: KeyPair | None) -> Sequence[PluginObject]:
        """Return nothing: what pods get is all."""
        return ()

    def customize(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        """Add variables, the port and, if asked for, the init container."""
        if self._shared is None:
            self._shared = self._new_shared(job)
        if not self._shared:
            return
        arguments = self._arguments
        added = self._shared
        if task.name == arguments.worker:
            added = (*added, variable("RANK", str(index + 1)))
        elif task.name == arguments.master:
            added = (*added, variable("RANK", "0"))
        spec = own_spec(pod)
        change(spec, lambda container: with_env(with_port(container, PORT_NAME, arguments.port), added))
        if arguments.wait_master_enabled and task.name == arguments.worker:
            spec["initContainers"] = [*(spec.get("initContainers") or ()), self._waiting(self._shared)]

    def _new_shared(self, job: Job) -> tuple[EnvVar, ...]:
        """Return the variables that are the same in all pods; none without a master."""
        names = (self._arguments.master, self._arguments.worker)
        master = task_of(job, names[0])
        if master is None:
            return ()
        return (
            variable("MASTER_ADDR", first_address(job, master)),
            variable("MASTER_PORT", str(self._arguments.port)),
            variable("WORLD_SIZE", str(sum(task.replicas for task in job.spec.tasks if task.name in names))),
        )

    def _waiting(self, env: Sequence[EnvVar]) -> dict[str, Any]:
        limit = variable("WAIT_SECONDS", str(self._arguments.wait_master_timeout))
        return {
            "name": WAIT_CONTAINER,
            "image": self._arguments.wait_master_image,
            "command": ["sh", "-c", _WAIT_SCRIPT],
            "env": [*env[:2], limit],
        }
