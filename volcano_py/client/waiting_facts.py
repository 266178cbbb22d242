"""What is on the API server, and in the scheduler's `/debug`, about something that waits."""

import json
from typing import Any, NamedTuple

from volcano_py.api import keys
from volcano_py.client import room, shapes
from volcano_py.client.access import Access
from volcano_py.client.api import Api, Obj
from volcano_py.client.problem import ApiProblem, Problem
from volcano_py.kube.resource import EVENTS, NODES, PODGROUPS, PODS, QUEUES, VCJOBS, Resource

_SYSTEM = "volcano-system"
_SCHEDULER = "app=volcano-scheduler"
_PORT = 8080
_DEBUG_S = 2.0
_HOLDING = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
"""Selects the pods that hold room on a node."""
_WITHOUT_NODE = "spec.nodeName=,status.phase=Pending"


class Facts(NamedTuple):
    """Everything an explanation rests on; what could not be read is empty, and ``notes`` says so."""

    job: Obj | None
    group: Obj | None
    pods: list[Obj]
    """Of the job or PodGroup; of a queue, those without a node whose gang runs."""
    queues: list[Obj]
    groups: list[Obj]
    nodes: list[Obj]
    placed: list[Obj]
    """The pods of all that hold room on nodes."""
    events: list[Obj]
    debug: dict[str, Any] | None
    notes: list[str]

    def sees(self, kind: Resource) -> bool:
        """Say whether objects of a kind could be read; if not, nothing is known about them."""
        return not any(note.startswith(_unreadable(kind)) for note in self.notes)


def facts_of_job(api: Api, name: str, namespace: str, scheduler_url: str = "") -> Facts:
    """Read all about a job; a PodGroup of that name counts if there is no such job."""
    notes: list[str] = []
    job: Obj | None = None
    try:
        job = api.get(VCJOBS, name, namespace)
    except ApiProblem as problem:
        if problem.status != 404:
            raise
        missing = problem
    groups = _all(api, shapes.Group, PODGROUPS, namespace, notes)
    if job is None:
        group = next((one for one in groups if _is(one, name, namespace)), None)
        if group is None:
            raise _no_such(missing, notes) from missing
    else:
        uid = job["metadata"].get("uid")
        group = next((one for one in groups if uid in _owners(one)), None)
    labels = {"labelSelector": f"{keys.JOB_NAME}={name}"} if job is not None else {}
    near = _read(api, PODS, namespace, notes, shapes.Member, **labels)
    own = [pod for pod in near if _belongs(pod, job, group)]
    subjects = [one for one in (job, group, *own) if one is not None]
    events = [one for one in _read(api, EVENTS, namespace, notes, shapes.Event) if _is_about(one, subjects)]
    debug = _debug(api, scheduler_url, namespace, group["metadata"]["name"] if group else name, notes)
    placed = _all(api, shapes.PlacedPod, PODS, namespace, notes, fieldSelector=_HOLDING)
    queues, nodes = _read(api, QUEUES, "", notes), _read(api, NODES, "", notes, shapes.Node)
    return Facts(job, group, own, queues, groups, nodes, placed, events, debug, notes)


def facts_of_queue(api: Api, name: str, scheduler_url: str = "") -> Facts:
    """Read all about a queue; raise ApiProblem if it does not exist."""
    notes: list[str] = []
    api.get(QUEUES, name)
    queues = _read(api, QUEUES, "", notes)
    groups = _read(api, PODGROUPS, "", notes, shapes.Group)
    placed = _read(api, PODS, "", notes, shapes.PlacedPod, fieldSelector=_HOLDING)
    inside = room.subtree(name, queues)
    members = [one for one in groups if room.queue_of(one) in inside]
    own = {one["metadata"]["name"] for one in members}
    running = {room.key_of(one) for one in members if (one.get("status") or {}).get("phase") == "Running"}
    pods = _read(api, PODS, "", notes, shapes.Member, fieldSelector=_WITHOUT_NODE) if running else []
    pods = [one for one in pods if room.group_of(one) in running]
    events = [
        one
        for kind in ("Queue", "PodGroup")
        for one in _read(api, EVENTS, "", notes, shapes.Event, fieldSelector=f"involvedObject.kind={kind}")
        if (one.get("involvedObject") or {}).get("name") in {name, *own}
    ]
    debug = _debug(api, scheduler_url, "", "", notes)
    return Facts(None, None, pods, queues, groups, [], placed, events, debug, notes)


def _no_such(missing: ApiProblem, notes: list[str]) -> ApiProblem:
    unread = any(note.startswith(_unreadable(PODGROUPS)) for note in notes)
    what = "no job of this name, and podgroups cannot be read" if unread else "no job and no PodGroup of this name"
    return ApiProblem(missing.status, missing.reason, f"there is {what}: {missing}")


def _is_about(event: Obj, subjects: list[Obj]) -> bool:
    """Say whether an event is about one of these objects, and not about an earlier or another one of the same name."""
    about = event.get("involvedObject") or {}
    found = [one["metadata"].get("uid") for one in subjects if one["metadata"]["name"] == about.get("name")]
    return any(not uid or not about.get("uid") or uid == about["uid"] for uid in found)


def _is(obj: Obj, name: str, namespace: str) -> bool:
    return bool(obj["metadata"]["name"] == name and obj["metadata"].get("namespace") == namespace)


def _owners(obj: Obj) -> set[Any]:
    return {one.get("uid") for one in obj["metadata"].get("ownerReferences") or ()}


def _belongs(pod: Obj, job: Obj | None, group: Obj | None) -> bool:
    if job is not None:
        return job["metadata"].get("uid") in _owners(pod)
    annotations = pod["metadata"].get("annotations") or {}
    return group is not None and annotations.get(keys.GROUP_NAME) == group["metadata"]["name"]


def _read(api: Api, kind: Resource, namespace: str, notes: list[str], shape: Any = None, **query: str) -> list[Obj]:
    """Return a list, or nothing and a note if it must not be read."""
    try:
        return api.list_of(shape, kind, namespace, **query) if shape else api.list(kind, namespace, **query)
    except ApiProblem as problem:
        if problem.status not in (401, 403, 404):
            raise
        note = f"{_unreadable(kind)}: {problem}"
        if note not in notes:
            notes.append(note)
        return []


def _unreadable(kind: Resource) -> str:
    return f"{kind.plural} cannot be read"


def _all(api: Api, shape: Any, kind: Resource, namespace: str, notes: list[str], **query: str) -> list[Obj]:
    """Return a list of all namespaces or, without the right to it, of one."""
    try:
        return api.list_of(shape, kind, "", **query)
    except ApiProblem as problem:
        if problem.status != 403:
            raise
        notes.append(f"{kind.plural} of other namespaces cannot be read, so what they hold is not counted")
        return _read(api, kind, namespace, notes, shape, **query)


def _debug(api: Api, url: str, namespace: str, name: str, notes: list[str]) -> dict[str, Any] | None:
    """Return what the scheduler's /debug/jobs says."""
    if url == "none":
        return None
    query = {key: value for key, value in (("namespace", namespace), ("name", name)) if value}
    try:
        if url:
            other = Api(lambda: Access(url.rstrip("/"), origin="--scheduler-url"), _DEBUG_S)
            return _page("".join(other.text("/debug/jobs", query, _DEBUG_S)))
        pods = api.list(PODS, _SYSTEM, labelSelector=_SCHEDULER, fieldSelector="status.phase=Running")
        for pod in pods:
            path = f"{PODS.item(pod['metadata']['name'], _SYSTEM)}:{_PORT}/proxy/debug/jobs"
            found = _page("".join(api.text(path, query, _DEBUG_S)))
            if found.get("cycle"):  # only the leader has cycles
                return found
    except Problem as problem:
        if url:
            told = str(problem).partition(";")[0].replace("the API server ", "")
            notes.append(f"the scheduler's /debug is not available: {told}")
        return None
    return None


def _page(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise Problem("it does not answer with JSON") from error
    if not isinstance(found, dict):
        raise Problem("it does not answer with an object")
    return found
