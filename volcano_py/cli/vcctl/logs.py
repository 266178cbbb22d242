"""`vcctl job logs`."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from volcano_py.api import keys
from volcano_py.cli.vcctl.call import Call
from volcano_py.cli.vcctl.job_reading import job_of
from volcano_py.client import pods
from volcano_py.client.api import Api, Obj
from volcano_py.client.problem import Problem
from volcano_py.client.sizes import tasks_of
from volcano_py.kube.resource import PODS

_FOLLOWED: Final = 20
"""Each pod that is followed takes a connection."""
_SILENT_S: Final = 24 * 3600.0
"""A pod that is followed may say nothing for this long."""


def print_logs(call: Call) -> int:
    """Print the logs of the chosen pods, each line with its pod if there are several."""
    flags = call.flags
    if not flags.text("name"):
        raise Problem("job name (specified by --name or -N) is mandatory to print the logs of a particular job")
    job = job_of(call)
    with call.about(PODS):
        found = call.api.list(PODS, flags.text("namespace"), labelSelector=f"{keys.JOB_NAME}={job['metadata']['name']}")
    chosen = _chosen(call, job, found)
    following = flags.on("follow")
    if following and len(chosen) > _FOLLOWED:
        raise Problem(f"--follow takes at most {_FOLLOWED} pods, and these are {len(chosen)}; add --task and --index")
    failed: list[Problem] = []
    for said in _said_by(call, chosen, following=following):
        for one in said:
            if isinstance(one, Problem):
                failed.append(one)
            else:
                call.write(one)
        if following:
            call.flush()
    if failed:
        more = len(failed) - 1
        others = f" (and {more} more pod{'' if more == 1 else 's'})" if more else ""
        raise Problem(f"{failed[0]}{others}")
    return 0


def _said_by(call: Call, pods_: Sequence[Obj], *, following: bool) -> Iterator[list[str | Problem]]:
    """Yield lines of all pods: one pod after the other or, if they are followed, as they come."""
    prefixed = len(pods_) > 1
    if following and prefixed:
        from volcano_py.client.following import together

        yield from together([partial(_lines, call, call.api.another(), pod, prefixed=True) for pod in pods_])
    else:
        yield from ([one] for pod in pods_ for one in _lines(call, call.api, pod, prefixed=prefixed))


def _chosen(call: Call, job: Obj, found: list[Obj]) -> list[Obj]:
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    task, index = call.flags.text("task"), call.flags.text("index")
    tasks = list(tasks_of(job))
    if task and task not in tasks:
        raise Problem(f"job {namespace}/{name} has no task {task!r}; its tasks: {', '.join(tasks)}")
    if not found:
        raise Problem(f'job {namespace}/{name} has no pods now; "vcctl job why {name} -n {namespace}" says why')
    chosen = [pod for pod in found if task in ("", _task(pod)) and index in ("", _index(pod))]
    if not chosen:
        known = ", ".join(sorted(f"{_task(pod)}/{_index(pod)}" for pod in found)[:10])
        raise Problem(f"job {namespace}/{name} has no pod with that task and index; it has {known}")
    # Users may give pods the label of a job, so that an index need not be a number.
    return sorted(chosen, key=lambda pod: (_task(pod), len(_index(pod)), _index(pod), pod["metadata"]["name"]))


def _lines(call: Call, api: Api, pod: Obj, *, prefixed: bool) -> Iterator[str | Problem]:
    """Yield the log of one pod and, if it cannot be read to its end, why."""
    flags, name, namespace = call.flags, pod["metadata"]["name"], pod["metadata"]["namespace"]
    if not (pod.get("spec") or {}).get("nodeName"):  # the API server answers with an empty log
        why = f'"vcctl job why {flags.text("name")} -n {namespace}" says why'
        yield Problem(f"pod {namespace}/{name} ({pods.state(pod)}): it has no node yet and has written nothing; {why}")
        return
    containers = [str(one.get("name")) for one in (pod.get("spec") or {}).get("containers") or ()]
    query: dict[str, str] = {"container": flags.text("container") or containers[0]}
    query |= {flag: "true" for flag in ("follow", "previous") if flags.on(flag)}
    if "tail" in flags.given:
        query["tailLines"] = flags.text("tail")
    prefix = f"[{name}] " if prefixed else ""
    try:
        for line in api.text(PODS.item(name, namespace, "log"), query, _SILENT_S if flags.on("follow") else None):
            yield f"{prefix}{line if line.endswith(chr(10)) else line + chr(10)}"
    except Problem as problem:
        more = f'"kubectl -n {namespace} describe pod {name}" says more'
        yield Problem(f"pod {namespace}/{name} ({pods.state(pod)}): {problem}; {more}")


def _task(pod: Mapping[str, Any]) -> str:
    return _said(pod, keys.TASK_SPEC)


def _index(pod: Mapping[str, Any]) -> str:
    return _said(pod, keys.TASK_INDEX)


def _said(pod: Mapping[str, Any], key: str) -> str:
    metadata = pod["metadata"]
    return str((metadata.get("annotations") or {}).get(key) or (metadata.get("labels") or {}).get(key) or "")
