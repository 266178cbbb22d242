"""What a test asks both: the rules of the webhooks, and the admission policies of an API server."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.admission.dict_view import DictView
from tests.conformance.row_files import Row
from volcano_py.admission.contract import CREATE, DELETE, UPDATE, Options, Request, Verdict
from volcano_py.admission.rules import RULES
from volcano_py.apiserver.patches import json_patch

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind as API servers know it."""

    group_version: str
    kind: str
    plural: str
    namespaced: bool = True

    def collection(self, namespace: str) -> str:
        """Return the path of all objects of a namespace."""
        root = "/api/" if self.group_version == "v1" else "/apis/"
        return f"{root}{self.group_version}/{f'namespaces/{namespace}/' if self.namespaced else ''}{self.plural}"


KINDS: Final = {
    kind.plural: kind
    for kind in (
        Kind("batch.volcano.sh/v1alpha1", "Job", "jobs"),
        Kind("batch.volcano.sh/v1alpha1", "CronJob", "cronjobs"),
        Kind("scheduling.volcano.sh/v1beta1", "Queue", "queues", namespaced=False),
        Kind("scheduling.volcano.sh/v1beta1", "PodGroup", "podgroups"),
        Kind("flow.volcano.sh/v1alpha1", "JobFlow", "jobflows"),
        Kind("topology.volcano.sh/v1alpha1", "HyperNode", "hypernodes", namespaced=False),
        Kind("v1", "Pod", "pods"),
    )
}
REQUIRED: Final[Mapping[str, Obj]] = {
    "cronjobs": {"schedule": "* * * * *", "jobTemplate": {}},
    "hypernodes": {"tier": 1},
    "jobs": {"queue": "default"},
}
"""Fields that every object has on an API server; some rows leave them out."""
OPEN: Final = tuple({"metadata": {"name": name}, "status": {"state": "Open"}} for name in ("default", "root"))


@dataclass(frozen=True, slots=True)
class Ask:
    """One object that somebody writes, and the queues that are there."""

    id: str
    plural: str
    operation: str
    obj: Obj
    old: Obj = field(default_factory=dict)
    queues: tuple[Obj, ...] = OPEN
    options: Options = field(default_factory=Options)
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Of the namespace."""

    @property
    def name(self) -> str:
        """The name of the object."""
        return str(self.obj["metadata"]["name"])

    def defaulted(self) -> Obj:
        """Return the object as the mutating webhook leaves it."""
        rule = RULES.get(f"/{self.plural}/mutate")
        if rule is None or self.operation != CREATE or self.plural == "pods":
            return self.obj
        verdict = rule(self._request(self.obj), self._view(), self.options)
        assert verdict.allowed
        changed: Obj = json_patch(copy.deepcopy(self.obj), list(verdict.patch))
        return changed

    def verdict(self, obj: Obj, old: Obj) -> Verdict:
        """Return what the validating webhook says about the object as the API server has it."""
        return RULES[f"/{self.plural}/validate"](self._request(obj, old), self._view(), self.options)

    def _view(self) -> DictView:
        return DictView(self.queues, {"": self.annotations})

    def _request(self, obj: Obj, old: Obj | None = None) -> Request:
        without = {**obj, "metadata": {key: item for key, item in obj["metadata"].items() if key != "namespace"}}
        return Request(self.operation, "", self.name, {} if self.operation == DELETE else without, old or {})


def an_update(id_: str, plural: str, obj: Obj, old: Obj) -> Ask:
    """Return a question about a change; both objects have their defaults, as they would have had since creation."""
    before, after = (Ask(id_, plural, CREATE, one).defaulted() for one in (old, obj))
    return Ask(id_, plural, UPDATE, after, before)


def ask_of_row(row: Row) -> Ask | None:
    """Return the question of a conformance row; None if no API server could be asked."""
    given = copy.deepcopy(row.case.input)
    area, operation = row.area.removeprefix("admission/"), row.case.operation
    plural = area.partition("_")[0]
    queues = tuple(
        one for one in (*given.get("queues", ()), *given.get("existing", ()), given.get("queue") or {}) if one
    )
    if plural == "pods":
        return None
    if plural == "queues":
        return _ask_about_queue(row, given, queues)
    options = Options(pod_level_resources=given.get("podLevelResources", True))
    if operation == "update":
        return an_update(row.id, plural, _whole(plural, given["job"]), _whole(plural, given["oldJob"]))
    obj = _object_of(plural, operation, given)
    return Ask(row.id, plural, CREATE, _whole(plural, obj), queues=queues or OPEN, options=options)


def _object_of(plural: str, operation: str, given: Obj) -> Obj:
    """Return the object of a row; parts of objects are put into one."""
    if operation == "taskTopologyPolicy":
        for container in given["task"]["template"]["spec"]["containers"]:
            container.update(name="main", image="busybox:1")
        return {"metadata": {"name": "topology"}, "spec": {"tasks": [given["task"]]}}
    if operation == "taskDefaults":
        return {"metadata": {"name": "defaults"}, "spec": {"tasks": given["tasks"]}}
    if operation == "graph":
        flows = [{"name": name, "dependsOn": {"targets": targets}} for name, targets in given["graph"].items()]
        return {"metadata": {"name": "graph"}, "spec": {"flows": flows}}
    if operation == "name":
        return {"metadata": {"name": given["name"]}, "spec": {"schedule": "* * * * *", "jobTemplate": {}}}
    names = {"cronjobs": "cronJob", "jobflows": "jobFlow", "hypernodes": "hyperNode", "podgroups": "podGroup"}
    found: Obj = given[names.get(plural, plural.removesuffix("s"))]
    return found


def _ask_about_queue(row: Row, given: Obj, existing: tuple[Obj, ...]) -> Ask | None:
    obj = given.get("object") or given["queue"]
    verb = given.get("operation", CREATE)
    if verb not in (CREATE, UPDATE, DELETE):
        return None
    obj["metadata"].setdefault("name", given.get("name"))
    old = given.get("oldObject") or (obj if verb != CREATE else {})
    old = {**old, "metadata": {**old.get("metadata", {}), "name": obj["metadata"]["name"]}} if old else {}
    others = tuple(one for one in existing if verb != CREATE or one["metadata"]["name"] != obj["metadata"]["name"])
    options = Options(max_queue_depth=given.get("maxQueueDepth", 5))
    children = tuple(given.get("children", ()))
    whole = _whole("queues", obj)
    return Ask(row.id, "queues", verb, whole, old and _whole("queues", old), (*others, *children), options)


def _whole(plural: str, obj: Obj) -> Obj:
    """Return an object with what its definition requires, under a name that it may have."""
    kind = KINDS[plural]
    metadata = {key: item for key, item in obj.get("metadata", {}).items() if key in ("annotations", "labels")}
    name = obj.get("metadata", {}).get("name", "unnamed").lower()
    spec = {"spec": {**REQUIRED.get(plural, {}), **obj.get("spec", {})}} if plural in REQUIRED else {}
    return {**obj, "apiVersion": kind.group_version, "kind": kind.kind, "metadata": {"name": name, **metadata}, **spec}


def asks_of_rows(rows: list[Row]) -> Iterator[tuple[Row, Ask | None]]:
    """Yield the rows about admission, with their questions."""
    for row in rows:
        if row.area.startswith("admission/") and not row.ignore:
            yield row, ask_of_row(row)
