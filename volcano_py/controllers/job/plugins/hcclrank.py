"""Plugin hcclrank: the annotation ``hccl/rankIndex`` has the rank of a pod, for Huawei's collective communication.

The rank is the variable RANK if a container of the pod has it (plugin pytorch, which goes first, sets it). Otherwise it
is i for pod i of the master task, and the replicas of the master task + i for pod i of the worker task. Pods of other
tasks have none. An annotation of the template stays.

Arguments: ``--master`` (master) and ``--worker`` (worker) name the tasks.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from volcano_py.api import keys
from volcano_py.api.batch import Job, Task
from volcano_py.api.plugin_arguments import parse
from volcano_py.controllers.job.plugins.contract import KeyPair, PluginObject
from volcano_py.controllers.job.plugins.hosts import task_of


class HcclrankArguments(msgspec.Struct, frozen=True):
    """Arguments of hcclrank."""

    master: str = "master"
    worker: str = "worker"


class Hcclrank:
    """Annotates pods with their rank."""

    needs_key_pair = False
    fixed_at_start: tuple[str, ...] = ()

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments, self._unusable = parse(HcclrankArguments, arguments)

    def warnings(self, job: Job) -> Sequence[str]:
        """Return unusable arguments."""
        return self._unusable

    def objects(self, job: Job, key_pair: KeyPair | None) -> Sequence[PluginObject]:
        """Return nothing: the annotation is all."""
        return ()

    def customize(self, pod: dict[str, Any], job: Job, task: Task, index: int) -> None:
        """Add the annotation if the pod has a rank."""
        annotations = pod["metadata"].get("annotations") or {}
        if annotations.get(keys.HCCL_RANK):
            return
        rank = _rank_variable(pod) or self._rank(job, task, index)
        if rank:
            pod["metadata"] = {**pod["metadata"], "annotations": {**annotations, keys.HCCL_RANK: rank}}

    def _rank(self, job: Job, task: Task, index: int) -> str:
        """Return the rank by task and number; "" for a task without ranks."""
        if task.name == self._arguments.master:
            return str(index)
        if task.name != self._arguments.worker:
            return ""
        master = task_of(job, self._arguments.master)
        return str((master.replicas if master else 0) + index)


def _rank_variable(pod: dict[str, Any]) -> str:
    """Return the variable RANK of the first container that has one with a value."""
    for container in (pod.get("spec") or {}).get("containers") or ():
        for one in container.get("env") or ():
            if one.get("name") == "RANK" and one.get("value"):
                return str(one["value"])
    return ""
