"""Plugin tensorflow: every container knows the cluster and its place in it, by the variable ``TF_CONFIG``.

``TF_CONFIG`` is JSON: ``cluster`` lists the addresses of each role, ``task`` has the role and the number of this pod. A
task with another name than the four roles is no part of the cluster, and its name is its type. A job with one task of
one pod has no cluster, so it gets no variable. The plugin needs svc, for the addresses.

Arguments: ``--ps``, ``--worker``, ``--chief``, ``--evaluator`` name the tasks of the roles (by default as the roles);
``--port`` (2222).
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from volcano_py.api.batch import Job, Task
from volcano_py.api.plugin_arguments import Port, parse
from volcano_py.controllers.job.plugins.containers import change, own_spec, variable, with_env
from volcano_py.controllers.job.plugins.contract import KeyPair, PluginObject, PluginProblem
from volcano_py.controllers.job.plugins.hosts import first_address, fits_a_variable, host_names

_VARIABLE: Final = "TF_CONFIG"


class TensorflowArguments(msgspec.Struct, frozen=True):
    """Arguments of tensorflow."""

    ps: str = "ps"
    worker: str = "worker"
    chief: str = "chief"
    evaluator: str = "evaluator"
    port: Port = 2222

    def roles(self) -> dict[str, str]:
        """Return the role of each task, in the order of ``TF_CONFIG``."""
        return {self.ps: "ps", self.worker: "worker", self.chief: "chief", self.evaluator: "evaluator"}


class Tensorflow:
    """Adds TF_CONFIG to containers, not to init containers."""

    needs_key_pair = False
    fixed_at_start = (_VARIABLE,)

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments, self._unusable = parse(TensorflowArguments, arguments)
        self._roles = self._arguments.roles()
        self._cluster: str | None = None

    def warnings(self, job: Job) -> Sequence[str]:
        """Return unusable arguments, and that no task has a role."""
        if any(task.name in self._roles for task in job.spec.tasks):
            return self._unusable
        names = ", ".join(self._roles)
        return (*self._unusable, f"no task is named {names}: the cluster in {_VARIABLE} is empty")

    def objects(self, job: Job, key_pair: KeyPair | None) -> Sequence[PluginObject]:
        """Return nothing: the variable is all."""
        return ()

    def customize(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        """Add TF_CONFIG, unless the job is a single pod."""
        tasks = job.spec.tasks
        if len(tasks) == 1 and tasks[0].replicas == 1:
            return
        if self._cluster is None:
            self._cluster = self._new_cluster(job)
        place = _json({"type": self._roles.get(task.name, task.name), "index": index})
        added = [variable(_VARIABLE, f'{{"cluster":{self._cluster},"task":{place}}}')]
        change(own_spec(pod), lambda container: with_env(container, added))

    def _new_cluster(self, job: Job) -> str:
        """Return the JSON of all addresses, which is the same for all pods."""
        tasks = {task.name: task for task in job.spec.tasks if task.replicas}
        self._check(sum(len(first_address(job, task)) * task.replicas for task in tasks.values() if self._role(task)))
        cluster = {role: self._addresses(job, tasks[name]) for name, role in self._roles.items() if name in tasks}
        text = _json(cluster)
        self._check(len(text))
        return text

    def _role(self, task: Task) -> str:
        return self._roles.get(task.name, "")

    def _check(self, size: int) -> None:
        """Refuse a cluster that has so many bytes at least; a job may ask for more pods than memory has room for."""
        if not fits_a_variable(_VARIABLE, size + 128):  # what the place of a pod takes
            raise PluginProblem(
                f"{_VARIABLE} would have {size} bytes or more, and no container can start with a variable that long: "
                "create the job with fewer replicas or with shorter names"
            )

    def _addresses(self, job: Job, task: Task) -> list[str]:
        """Return an address for each pod, all equal if the template sets the host: positions are numbers of pods."""
        port = self._arguments.port
        found = [f"{host}.{subdomain}:{port}" for host, subdomain in host_names(job, task)]
        return found if len(found) == task.replicas else [f"{first_address(job, task)}:{port}"] * task.replicas


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
