"""Whatever a client sends, it gets an answer that says what is wrong; nothing inside ever breaks."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.apiserver.support import a_bare_pod
from volcano_py.apiserver import ApiServer, ApiServerOptions
from volcano_py.apiserver.objects import encode
from volcano_py.apiserver.routing import route
from volcano_py.apiserver.status import StatusError
from volcano_py.apiserver.verbs import Call, Verbs

JUNK: tuple[Any, ...] = (None, -1, 1.5, "x", True, [], {}, ["x"], {"x": 1}, [{}], [None], 10**30)
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"

_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "a",
        "labels": {"a": "b"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}],
        "finalizers": ["a/b"],
    },
    "spec": {
        "nodeName": "n",
        "tolerations": [{"key": "x", "operator": "Exists", "tolerationSeconds": 3}],
        "schedulingGates": [{"name": "a/b"}],
        "affinity": {"nodeAffinity": {}},
        "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}],
    },
    "status": {"phase": "x", "conditions": [{"type": "a", "status": "True"}]},
}
_SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "enum": [1]}}},
        "list": {"type": "array", "items": {"type": "string", "pattern": "a"}},
        "map": {"type": "object", "additionalProperties": {"anyOf": [{"type": "string"}], "type": "string"}},
    },
}
BODIES: dict[str, Any] = {
    "/api/v1/namespaces/default/pods": _POD,
    "/api/v1/nodes": {
        "metadata": {"name": "a"},
        "spec": {"taints": [{"key": "a", "effect": "b"}], "unschedulable": True},
        "status": {"capacity": {"cpu": "1"}, "conditions": [{"type": "Ready", "status": "True"}]},
    },
    "/api/v1/namespaces": {"metadata": {"name": "a"}, "spec": {"finalizers": ["kubernetes"]}},
    "/api/v1/namespaces/default/events": {"metadata": {"name": "a"}, "involvedObject": {"namespace": "default"}},
    "/apis/scheduling.k8s.io/v1/priorityclasses": {"metadata": {"name": "a"}, "value": 3, "globalDefault": True},
    "/apis/apps/v1/namespaces/default/replicasets": {
        "metadata": {"name": "a"},
        "spec": {"replicas": 1, "selector": {}, "template": {"spec": {"containers": [{}]}}},
    },
    "/api/v1/namespaces/default/resourcequotas": {"metadata": {"name": "a"}, "spec": {"hard": {"cpu": "1"}}},
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing", "shortNames": ["th"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _SCHEMA},
                    "subresources": {"status": {}},
                }
            ],
        },
    },
    "/api/v1/namespaces/default/pods/p/binding": {
        "metadata": {"name": "p", "uid": "x", "annotations": {"a": "b"}},
        "target": {"kind": "Node", "name": "n"},
    },
    "/api/v1/namespaces/default/pods/p/eviction": {
        "metadata": {"name": "p"},
        "deleteOptions": {"preconditions": {"uid": "x"}, "gracePeriodSeconds": 3},
    },
}


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _places(item, (*path, key))


def _spoilt(body: Any) -> Iterator[Any]:
    """The body with every part of it replaced by every piece of junk, one at a time."""
    for path in _places(body):
        for junk in JUNK:
            if not path:
                yield junk
                continue
            made = target = copy.deepcopy(body)
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = junk
            yield made


def _perform(server: ApiServer, method: str, path: str, body: Any, content_type: str = "application/json") -> None:
    target = route(server.resources, method, path, {})
    try:
        Verbs(server.registry, ApiServerOptions()).perform(Call(target, {}, encode(body), content_type))
    except StatusError as error:
        assert error.message  # noqa: PT017 - a refusal is one of the two good outcomes


@pytest.mark.parametrize("path", BODIES, ids=lambda path: path.rpartition("/")[2])
async def test_a_corrupted_object_is_refused_or_stored(path: str) -> None:
    server = ApiServer()
    server.create(a_bare_pod("p"))
    for body in _spoilt(BODIES[path]):
        _perform(server, "POST", path, body)


@pytest.mark.parametrize(
    "path", [path for path in BODIES if "/p/" not in path], ids=lambda path: path.rpartition("/")[2]
)
async def test_a_corrupted_patch_is_refused_or_applied(path: str) -> None:
    server = ApiServer()
    _perform(server, "POST", path, BODIES[path])
    one = f"{path}/{BODIES[path]['metadata']['name']}"
    kinds = (MERGE,) if "definitions" in path else (MERGE, STRATEGIC)
    for content_type in kinds:
        for body in _spoilt(BODIES[path]):
            _perform(server, "PATCH", one, body, content_type)


async def test_a_corrupted_deletion_or_json_patch_is_refused_or_carried_out() -> None:
    server = ApiServer()
    server.create(a_bare_pod("a", nodeName="n"))
    one = "/api/v1/namespaces/default/pods/a"
    options = {"preconditions": {"uid": "x"}, "gracePeriodSeconds": 9, "propagationPolicy": "Orphan", "dryRun": ["All"]}
    for body in _spoilt(options):
        _perform(server, "DELETE", one, body)
    for operation in ("add", "remove", "replace", "move", "copy", "test"):
        patch: list[Any] = [{"op": operation, "path": "/spec/containers/0", "from": "/spec", "value": {}}]
        for body in _spoilt(patch):
            _perform(server, "PATCH", one, body, "application/json-patch+json")
