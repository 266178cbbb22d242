"""`vcctl job logs`."""

from collections.abc import Mapping
from typing import Any

from volcano_py.api import keys
from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.job_reading import job_of
from volcano_py.client import pods
from volcano_py.client.api import WATCH_S, Obj
from volcano_py.client.problem import ApiProblem, Problem
from volcano_py.kube.resource import PODS


def print_logs(call: Call) -> int:
    """Print the logs of the chosen pods, each line with its pod if there are several."""
    flags = call.flags
    if not flags.text("name"):
        raise Problem("job name (specified by --name or -N) is mandatory to print the logs of a particular job")
    job = job_of(call)
    with call.about(PODS):
        found = call.api.list(PODS, flags.text("namespace"), labelSelector=f"{keys.JOB_NAME}={job['metadata']['name']}")
    chosen = _chosen(call, job, found)
    if flags.on("follow") and len(chosen) > 1:
        names = ", ".join(_task(pod) + "/" + _index(pod) for pod in chosen[:5])
        raise Problem(f"--follow takes one pod, and these are {len(chosen)} ({names}); add --task and --index")
    failed = [_print(call, pod, prefixed=len(chosen) > 1) for pod in chosen]
    told = [one for one in failed if one]
    if told:
        more = f" (and {len(told) - 1} more pods)" if len(told) > 1 else ""
        raise Problem(f"{told[0]}{more}")
    return 0


def _chosen(call: Call, job: Obj, found: list[Obj]) -> list[Obj]:
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    task, index = call.flags.text("task"), call.flags.text("index")
    tasks = [str(one.get("name")) for one in (job.get("spec") or {}).get("tasks") or ()]
    if task and task not in tasks:
        raise Problem(f"job {namespace}/{name} has no task {task!r}; its tasks: {', '.join(tasks)}")
    if not found:
        raise Problem(f'job {namespace}/{name} has no pods now; "vcctl job why {name} -n {namespace}" says why')
    chosen = [pod for pod in found if task in ("", _task(pod)) and index in ("", _index(pod))]
    if not chosen:
        known = ", ".join(sorted(f"{_task(pod)}/{_index(pod)}" for pod in found)[:10])
        raise Problem(f"job {namespace}/{name} has no pod with that task and index; it has {known}")
    return sorted(chosen, key=lambda pod: (_task(pod), int(_index(pod) or "0"), pod["metadata"]["name"]))


def _print(call: Call, pod: Obj, *, prefixed: bool) -> str:
    """Print the log of one pod; return what went wrong."""
    flags, name, namespace = call.flags, pod["metadata"]["name"], pod["metadata"]["namespace"]
    containers = [str(one.get("name")) for one in (pod.get("spec") or {}).get("containers") or ()]
    query: dict[str, str] = {"container": flags.text("container") or containers[0]}
    query |= {flag: "true" for flag in ("follow", "previous") if flags.on(flag)}
    if "tail" in flags.given:
        query["tailLines"] = flags.text("tail")
    prefix = f"[{name}] " if prefixed else ""
    limit = float(WATCH_S) * 360 if flags.on("follow") else None
    try:
        for line in call.api.text(PODS.item(name, namespace, "log"), query, limit):
            call.write(f"{prefix}{line if line.endswith(chr(10)) else line + chr(10)}")
            if flags.on("follow"):
                call.flush()
    except ApiProblem as problem:
        more = f'"kubectl -n {namespace} describe pod {name}" says more'
        return f"pod {namespace}/{name} ({pods.state(pod)}): {problem}; {more}"
    return ""


def _task(pod: Mapping[str, Any]) -> str:
    return _said(pod, keys.TASK_SPEC)


def _index(pod: Mapping[str, Any]) -> str:
    return _said(pod, keys.TASK_INDEX)


def _said(pod: Mapping[str, Any], key: str) -> str:
    metadata = pod["metadata"]
    return str((metadata.get("annotations") or {}).get(key) or (metadata.get("labels") or {}).get(key) or "")
