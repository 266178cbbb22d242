"""The kinds of Volcano on an API server, for contract tests."""

from __future__ import annotations

import copy
from typing import Any

from tests.contract.api import CRDS, Answer, Api, unique
from volcano_py.local.manifests import definitions

Obj = dict[str, Any]

DEFINITIONS: dict[str, Obj] = {one["spec"]["names"]["plural"]: one for one in definitions()}
POD: Obj = {"containers": [{"name": "main", "image": "example.com/none:1"}]}
TASK: Obj = {"name": "worker", "replicas": 1, "template": {"spec": POD}}
JOB: Obj = {"tasks": [TASK]}
MEMBER: Obj = {"type": "Node", "selector": {"exactMatch": {"name": "node-1"}}}
OBJECTS: dict[str, Obj] = {
    "jobs": {"spec": JOB},
    "cronjobs": {"spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": JOB}}},
    "commands": {
        "action": "AbortJob",
        "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a", "uid": "u"},
    },
    "podgroups": {"spec": {"minMember": 1}},
    "queues": {"spec": {}},
    "jobflows": {"spec": {"flows": [{"name": "first"}]}},
    "jobtemplates": {"spec": JOB},
    "hypernodes": {"spec": {"tier": 1, "members": [MEMBER]}},
    "numatopologies": {"spec": {"policies": {"CPUManagerPolicy": "static"}}},
    "nodeshards": {"spec": {"nodesDesired": []}},
    "colocationconfigurations": {"spec": {}},
}
"""A valid object of each kind."""


class Kinds:
    """The kinds on one server; on the embedded one, a test defines only those that it uses."""

    def __init__(self, api: Api, lasting: bool) -> None:
        self.api = api
        self._lasting = lasting
        self._made: list[str] = []

    async def path(self, plural: str) -> str:
        """The path of a kind: in the test's namespace, or of the whole cluster."""
        definition = DEFINITIONS[plural]
        if not self._lasting:
            await self.api.post(CRDS, definition)
        spec = definition["spec"]
        root = f"{spec['group']}/{spec['versions'][0]['name']}"
        path = self.api.path(plural, group_version=root)
        return path if spec["scope"] == "Namespaced" else f"/apis/{root}/{plural}"

    def an_object(self, plural: str, changes: Obj | None = None) -> Obj:
        """A valid object, with some fields changed: `{"spec.tasks.0.name": "x"}`; None takes a field away."""
        spec = DEFINITIONS[plural]["spec"]
        made = {
            "apiVersion": f"{spec['group']}/{spec['versions'][0]['name']}",
            "kind": spec["names"]["kind"],
            "metadata": {"name": unique("a")},
            **copy.deepcopy(OBJECTS[plural]),
        }
        for path, value in (changes or {}).items():
            _set(made, path.split("."), value)
        return made

    async def post(self, plural: str, changes: Obj | None = None, **query: str) -> Answer:
        """Try to create an object without keeping it; unknown fields are refused."""
        path = await self.path(plural)
        query = {"dryRun": "All", "fieldValidation": "Strict", **query}
        return await self.api.post(path, self.an_object(plural, changes), **query)

    async def made(self, plural: str, changes: Obj | None = None) -> tuple[str, Obj]:
        """Create an object; returns its path and what was stored."""
        path = await self.path(plural)
        answer = await self.api.made(path, self.an_object(plural, changes))
        self._made.append(f"{path}/{answer.meta['name']}")
        return self._made[-1], answer.body

    async def clean_up(self) -> None:
        """Delete what was made."""
        for path in self._made:
            await self.api.delete(path)


def _set(obj: Any, path: list[str], value: Any) -> None:
    *parents, last = path
    for part in parents:
        if isinstance(obj, list):
            obj = obj[int(part)]
        else:
            obj = obj.setdefault(part, {})
    if value is None:
        del obj[last]
    elif isinstance(obj, list):
        obj[int(last)] = value
    else:
        obj[last] = value
