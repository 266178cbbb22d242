"""`vcctl job run`, `suspend`, `resume` and `delete`, `vsub`, `vsuspend`, `vresume` and `vcancel`."""

import os
import shlex
from typing import Any, Final

from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.job_reading import job_of
from volcano_py.client.commanding import send_command
from volcano_py.client.documents import read_documents
from volcano_py.client.jobs import job_of_one_task, lowered, raised, read_resources
from volcano_py.client.problem import Problem, Unreachable
from volcano_py.kube.resource import VCJOBS

_OF_A_JOB: Final = {"name", "image", "min", "replicas", "requests", "limits", "scheduler", "queue"}


def run_job(call: Call) -> int:
    """Create a job from flags or from a file."""
    flags = call.flags
    path, namespace = flags.text("filename"), flags.text("namespace")
    if not path:
        if not flags.text("name"):
            raise Problem("job name cannot be left blank: write --name NAME, or --filename FILE")
        _create(call, _from_flags(call, namespace, flags.text("image"), flags.text("scheduler")), namespace)
        return 0
    if not path.endswith((".yaml", ".yml")):
        raise Problem(f"only support yaml file, and {path} does not end with .yaml or .yml")
    jobs = read_documents(path, VCJOBS, generated=True)
    for job in jobs:
        own = job["metadata"].get("namespace")
        if own and "namespace" in flags.given and own != namespace:
            name = job["metadata"].get("name") or job["metadata"]["generateName"]
            told = f"file {path} puts job {name} into namespace {own}, and --namespace says {namespace}"
            raise Problem(f"{told}: leave one of them out")
    if void := [f"--{flag.name}" for flag in call.command.flags if flag.name in flags.given & _OF_A_JOB]:
        call.warn(f"file {path} says all about its jobs; these flags have no effect: {', '.join(void)}")
    refused: list[str] = []
    for job in jobs:
        meta = job["metadata"]
        try:
            _create(call, job, str(meta.get("namespace") or namespace))
        except Problem as problem:
            if len(jobs) == 1 or isinstance(problem, Unreachable):
                raise
            refused.append(f"job {meta.get('name') or meta['generateName']}: {problem}")
    if refused:
        raise Problem("; ".join(refused))
    return 0


def submit(call: Call) -> int:
    """Create a job from flags; the environment has the defaults."""
    flags = call.flags
    if not flags.text("name"):
        raise Problem("job name cannot be left blank: write --name NAME")
    given = "namespace" in flags.given
    namespace = flags.text("namespace") if given else os.environ.get("VOLCANO_DEFAULT_JOB_NAMESPACE") or "default"
    image = flags.text("image") or os.environ.get("VOLCANO_DEFAULT_IMAGE") or "busybox"
    scheduler = flags.text("scheduler") or os.environ.get("VOLCANO_SCHEDULER_NAME") or "volcano"
    _create(call, _from_flags(call, namespace, image, scheduler), namespace)
    return 0


def suspend_job(call: Call) -> int:
    """Ask the controllers to abort a job."""
    return _command(call, "AbortJob", "suspend")


def resume_job(call: Call) -> int:
    """Ask the controllers to start an aborted job again."""
    return _command(call, "ResumeJob", "resume")


def delete_job(call: Call) -> int:
    """Delete a job."""
    return _delete(call, "delete")


def cancel_job(call: Call) -> int:
    """Delete a job, in the words of `vcancel`."""
    return _delete(call, "cancel")


def _from_flags(call: Call, namespace: str, image: str, scheduler: str) -> dict[str, Any]:
    flags = call.flags
    minimum, replicas = flags.number("min"), flags.number("replicas")
    if minimum < 0 or replicas < 0:
        raise Problem("--min and --replicas must not be negative")
    try:
        command = shlex.split(flags.text("command"))
    except ValueError as error:
        raise Problem(f"--command {flags.text('command')!r} cannot be split into words: {error}") from error
    requests = read_resources(flags.text("requests"), "--requests")
    limits = read_resources(flags.text("limits"), "--limits")
    if "limits" not in flags.given:  # the default limit must not be below what the user requests
        limits = raised(limits, requests)
    elif "requests" not in flags.given:
        requests = lowered(requests, limits)
    return job_of_one_task(
        flags.text("name"),
        namespace,
        image=image,
        scheduler=scheduler,
        minimum=minimum,
        replicas=replicas,
        requests=requests,
        limits=limits,
        command=command,
        queue=flags.text("queue"),
    )


def _create(call: Call, job: dict[str, Any], namespace: str) -> None:
    job["metadata"]["namespace"] = namespace
    name = job["metadata"].get("name") or job["metadata"]["generateName"]
    with call.about(VCJOBS, name, namespace=namespace):
        made = call.api.create(VCJOBS, job, namespace)
    call.line(f"run job {made['metadata']['name']} successfully")


def _command(call: Call, action: str, verb: str) -> int:
    _named(call, verb)
    job = job_of(call)
    with call.about(VCJOBS, job["metadata"]["name"]):
        send_command(call.api, VCJOBS, job, action)
    return 0


def _delete(call: Call, verb: str) -> int:
    name, namespace = _named(call, verb), call.flags.text("namespace")
    with call.about(VCJOBS, name, f"vcctl job list -n {namespace}"):
        call.api.delete(VCJOBS, name, namespace)
    call.line(f"{verb} job {name} successfully")
    return 0


def _named(call: Call, verb: str) -> str:
    name = call.flags.text("name")
    if not name:
        letter = call.command.flag("name").short
        raise Problem(f"job name (specified by --name or -{letter}) is mandatory to {verb} a particular job")
    return name
