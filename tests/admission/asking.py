"""Asking a rule in one line."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from tests.admission.dict_view import DictView
from volcano_py.admission.contract import CREATE, DELETE, UPDATE, Options, Request, Verdict
from volcano_py.admission.rules import RULES

Obj = Mapping[str, Any]


def create(path: str, obj: Obj, queues: Iterable[Obj] = (), options: Options | None = None, **view: Any) -> Verdict:
    """Ask about a new object; what is given is not changed."""
    return _ask(path, Request(CREATE, *_names(obj), obj), DictView(queues, **view), options)


def update(
    path: str, obj: Obj, old: Obj, queues: Iterable[Obj] = (), options: Options | None = None, **view: Any
) -> Verdict:
    """Ask about a change."""
    return _ask(path, Request(UPDATE, *_names(obj), obj, old), DictView(queues, **view), options)


def delete(path: str, name: str, queues: Iterable[Obj] = (), options: Options | None = None) -> Verdict:
    """Ask about a deletion."""
    return _ask(path, Request(DELETE, "", name), DictView(queues), options)


def _ask(path: str, request: Request, view: DictView, options: Options | None) -> Verdict:
    before = copy.deepcopy((request.object, request.old))
    verdict = RULES[path](request, view, options or Options())
    assert (request.object, request.old) == before
    assert all(refusal.hint and refusal.field for refusal in verdict.refusals) or request.operation == DELETE
    return verdict


def _names(obj: Obj) -> tuple[str, str]:
    metadata = obj.get("metadata", {})
    return metadata.get("namespace", ""), metadata.get("name", "")


def queue(name: str, state: str = "Open", pods: int = 0, annotations: Obj | None = None, **spec: Any) -> dict[str, Any]:
    """Return a queue as JSON."""
    guarantee = spec.pop("guarantee", None)
    return {
        "metadata": {"name": name, **({"annotations": dict(annotations)} if annotations else {})},
        "spec": {"weight": 1, **spec, **({"guarantee": {"resource": guarantee}} if guarantee else {})},
        "status": {"state": state, **({"allocated": {"pods": str(pods)}} if pods else {})},
    }


def task(name: str = "main", replicas: int = 1, **fields: Any) -> dict[str, Any]:
    """Return a task as JSON."""
    template = {"spec": {"containers": [{"name": "main", "image": "busybox:1"}]}}
    return {"name": name, "replicas": replicas, "template": template, **fields}


def job(*tasks: Obj, name: str = "j", **spec: Any) -> dict[str, Any]:
    """Return a job as JSON, with one task if none is given."""
    wanted = list(tasks) or [task()]
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"queue": "default", "tasks": wanted, **spec}}


def policy(**fields: Any) -> dict[str, Any]:
    """Return a policy that is right, with changes."""
    return {"event": "PodFailed", "action": "RestartJob", **fields}
