"""The names under which the pods of a job find each other: host and subdomain, which a headless Service makes known.

The host is the name of the pod and the subdomain the name of the job, unless the template of the task sets its own.
"""

import re
from typing import Any, Final

from volcano_py.api import keys
from volcano_py.api.batch import Job, Task
from volcano_py.controllers.job.plugins.contract import PluginProblem

MAX_OBJECT_BYTES: Final = 1 << 20
"""The most that the data of a ConfigMap or a Secret may have (Kubernetes)."""

_MAX_VARIABLE_BYTES: Final = 128 << 10  # Linux: a variable with its name, "=" and a final zero byte
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def task_of(job: Job, name: str) -> Task | None:
    """Return the task of that name."""
    return next((task for task in job.spec.tasks if task.name == name), None)


def host_names(job: Job, task: Task) -> list[tuple[str, str]]:
    """Return host and subdomain of each pod of a task; one pair for all pods if the template sets the host."""
    spec = _spec(task)
    name = job.metadata.name
    subdomain = spec.get("subdomain") or name
    if host := spec.get("hostname"):
        return [(host, subdomain)] if task.replicas else []
    return [(f"{name}-{task.name}-{index}", subdomain) for index in range(task.replicas)]


def addresses(job: Job, task: Task) -> list[str]:
    """Return the addresses of the pods of a task, such as ``train-worker-0.train``."""
    return [f"{host}.{subdomain}" for host, subdomain in host_names(job, task)]


def size_of_addresses(job: Job, task: Task) -> int:
    """Return how many bytes the addresses of a task have as one text, with a character between two of them.

    A job may ask for 200,000 pods, and templates may have long names. So nothing is built to find out.
    """
    if not task.replicas:
        return 0
    first = len(first_address(job, task).encode())
    if _spec(task).get("hostname"):
        return first  # one address for all pods
    return task.replicas * first - 1 + _digits(task.replicas)


def _digits(count: int) -> int:
    """Return how many digits the numbers below ``count`` have together."""
    return sum(count - (10**digit if digit else 0) for digit in range(len(str(max(count - 1, 0)))))


def first_address(job: Job, task: Task) -> str:
    """Return the address of pod 0 of a task, whether or not the task has pods."""
    spec = _spec(task)
    name = job.metadata.name
    return f"{spec.get('hostname') or f'{name}-{task.name}-0'}.{spec.get('subdomain') or name}"


def selector(job: Job) -> dict[str, str]:
    """Return the labels that select the pods of a job."""
    return {keys.JOB_NAME: job.metadata.name, keys.JOB_NAMESPACE: job.metadata.namespace}


def fits_a_variable(name: str, size: int) -> bool:
    """Say whether a container can have a variable of so many bytes: Linux starts no program with a longer one."""
    return len(name) + size + 2 <= _MAX_VARIABLE_BYTES


def check_service_name(name: str) -> None:
    """Raise PluginProblem if a Service of a job cannot have this name."""
    if not _LABEL.fullmatch(name):
        raise PluginProblem(
            f'it needs a Service "{name}", whose name may have at most 63 lower-case letters, digits and "-": '
            "create the job with a name that allows it"
        )


def check_lists(what: str, job: Job, lists: int) -> None:
    """Raise PluginProblem if an object cannot hold so many lists of all addresses, before any is built."""
    _check(what, lists * sum(size_of_addresses(job, task) for task in job.spec.tasks))


def check_size(what: str, data: dict[str, str]) -> None:
    """Raise PluginProblem if an object cannot hold the hosts of the job."""
    _check(what, sum(len(key) + len(value.encode()) for key, value in data.items()))


def _check(what: str, size: int) -> None:
    if size > MAX_OBJECT_BYTES:
        raise PluginProblem(
            f"the hosts of the job take {size} bytes in {what}, which holds at most {MAX_OBJECT_BYTES}: create the "
            "job with fewer replicas, with shorter names, or without the plugin"
        )


def _spec(task: Task) -> dict[str, Any]:
    return task.template.get("spec") or {}
