"""The admission policies of manifests/policies on an API server, and what it answers to a write."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import yaml

from tests.admission.policies.asks import KINDS, Ask, Obj
from tests.admission.policies.variations import GOOD
from tests.controlplane.install import MANIFESTS
from tests.controlplane.namespaces import create_namespace, discard_namespace
from tests.controlplane.rest import ApiFailure
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from volcano_py.admission.contract import CREATE, DELETE
from volcano_py.api import keys

FOLDER = MANIFESTS / "policies"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
MERGE = "application/merge-patch+json"
DRY = "?dryRun=All"
OF_QUEUES = FOLDER / "queues"
WORK = ("jobs", "podgroups")
MUTATING = "Mutating"
VALIDATING = "Validating"
OF_SERVER = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "namespace")
_DENIED = re.compile(r"(?:ValidatingAdmissionPolicy|policy) '([^']+)' .*?denied request: (.*)", re.DOTALL)


def objects(kind: str = "") -> list[Obj]:
    """Return the objects of manifests/policies whose kind begins like this."""
    names = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    found = [one for name in names for one in yaml.safe_load_all((FOLDER / name).read_text())]
    return [one for one in found if one["kind"].startswith(kind)]


@dataclass(frozen=True, slots=True)
class Answer:
    """What an API server makes of a write."""

    obj: Obj = field(default_factory=dict)
    """As it would be stored, without what the server adds; empty if it is refused."""
    policy: str = ""
    """The policy that refuses it, "" if it is something else that does."""
    refusal: str = ""
    old: Obj = field(default_factory=dict)
    """What was there, as it was stored."""


LASTING: Mapping[str, Obj] = {
    name: {
        "apiVersion": KINDS["queues"].group_version,
        "kind": KINDS["queues"].kind,
        "metadata": {"name": name},
        "spec": {"weight": 1, "reclaimable": name != "root"},
    }
    for name in ("root", "default")
}
"""Queues that no one may delete, as the controllers make them: tests that come later find them."""


class Policies:
    """The policies, and an API server that has them or not."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._namespaces: dict[str, str] = {}

    def namespace_with(self, annotations: Mapping[str, str]) -> str:
        """Return a namespace that has these annotations; it is made when it is first asked for."""
        key = json.dumps(dict(annotations), sort_keys=True)
        if key not in self._namespaces:
            name = self._namespaces[key] = create_namespace(self._plane.cluster)
            body = {"metadata": {"annotations": dict(annotations)}}
            self._plane.request("PATCH", f"/api/v1/namespaces/{name}", body, content_type=MERGE)
        return self._namespaces[key]

    def close(self) -> None:
        """Remove everything."""
        self.delete()
        for name in self._namespaces.values():
            discard_namespace(self._plane.cluster, name)

    def apply(self, kind: str) -> None:
        """Install the policies of one kind (Mutating or Validating), and wait until they hold."""
        wanted = objects(kind)
        self._plane.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": wanted}))
        probe = self._refusing if kind == VALIDATING else self._filling
        wait_until(f"{kind} policies hold", lambda: all(probe()), 30.0, every=0.05)

    def delete(self) -> None:
        """Take all policies away, and wait until they hold no more."""
        self._plane.kubectl("delete", "--ignore-not-found", "-k", str(FOLDER))
        wait_until("the policies are gone", lambda: not any((*self._refusing(), *self._filling())), 30.0)

    @contextlib.contextmanager
    def knowing(self, queues: list[Obj]) -> Iterator[None]:
        """Have queues, the last of them closed and with a child, and the policies that know queues."""
        path = KINDS["queues"].collection("")
        made = []
        self._plane.kubectl("apply", "-k", str(OF_QUEUES))
        try:
            for queue in queues:
                self._plane.request("POST", path, {key: item for key, item in queue.items() if key != "status"})
                made.append(queue["metadata"]["name"])
                state = {"status": queue.get("status", {})}
                self._plane.request("PATCH", f"{path}/{made[-1]}/status", state, content_type=MERGE)
            wait_until("the policies know the queues", lambda: self._shut(made[-1]), 30.0, every=0.05)
            yield
        finally:
            self._plane.kubectl("delete", "-k", str(OF_QUEUES))
            for name in made:
                wait_until(f"{name} may be deleted", partial(self._gone, f"{path}/{name}"), 30.0)

    @contextlib.contextmanager
    def queue_that_is_open(self, name: str) -> Iterator[None]:
        """Have a queue that takes work."""
        path = KINDS["queues"].collection("")
        self._ensure(path, f"{path}/{name}", _canary("queues", {}, name=name))
        self._plane.request("PATCH", f"{path}/{name}/status", {"status": {"state": "Open"}}, content_type=MERGE)
        yield

    def _shut(self, queue: str) -> bool:
        """Say whether each of the policies refuses something for this queue, which is closed and has a child."""
        work = {plural: _canary(plural, {**GOOD[plural], "queue": queue}) for plural in WORK}
        refused = [self.answer(Ask("", plural, CREATE, one)) for plural, one in work.items()]
        return all("queue" in one.policy for one in (*refused, self.deletion(queue)))

    def deletion(self, queue: str) -> Answer:
        """Ask whether a queue that is there may be deleted."""
        return self._send("DELETE", f"{KINDS['queues'].collection('')}/{queue}{DRY}")

    def _gone(self, path: str) -> bool:
        return not self._send("DELETE", path).policy

    @contextlib.contextmanager
    def having(self, obj: Obj) -> Iterator[None]:
        """Have one more policy, without a binding."""
        path = f"{REGISTRATION}/{obj['kind'].lower().removesuffix('y')}ies"
        self._plane.request("POST", path, obj)
        try:
            yield
        finally:
            self._plane.request("DELETE", f"{path}/{obj['metadata']['name']}")

    def status(self, name: str) -> Mapping[str, Any]:
        """Return the status of a validating policy when a controller has checked its types."""

        def checked() -> Mapping[str, Any]:
            found = self._plane.request("GET", f"{REGISTRATION}/validatingadmissionpolicies/{name}")
            status: Mapping[str, Any] = found.get("status", {})
            return status if status.get("observedGeneration") == found["metadata"]["generation"] else {}

        return wait_until(f"the types of {name} are checked", checked, 30.0)

    def _refusing(self) -> list[bool]:
        """Say of each kind whether its policy refuses what it is to refuse."""
        return [bool(self.answer(ask).policy) for ask in CANARIES]

    def _filling(self) -> list[bool]:
        """Say of each kind with defaults whether a policy fills them in."""
        specs = [self.answer(ask).obj.get("spec", {}) for ask in BARE]
        return [any(spec.get(field) == value for field, value in FILLED_IN) for spec in specs]

    # Asking

    def answer(self, ask: Ask, obj: Obj | None = None, old: Obj | None = None) -> Answer:
        """Ask the API server about a write that changes nothing; what must be there for it is there for a moment."""
        kind = KINDS[ask.plural]
        collection = kind.collection(self.namespace_with(ask.annotations))
        body = obj or ask.obj
        if ask.operation == CREATE:
            return self._send("POST", collection + DRY, body)
        path = f"{collection}/{ask.name}"
        lasting = ask.name in LASTING
        stored = self._ensure(collection, path, LASTING[ask.name] if lasting else old or ask.old)
        try:
            if ask.operation == DELETE:
                gone = self._send("DELETE", path + DRY)
                return replace(gone, obj=gone.obj and ask.obj, old=stored)
            version = stored["metadata"]["resourceVersion"]
            changed = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
            return replace(self._send("PUT", path + DRY, changed), old=stored)
        finally:
            if not lasting:
                self._plane.request("DELETE", path)

    def _ensure(self, collection: str, path: str, old: Obj) -> Obj:
        try:
            found: Obj = self._plane.request("POST", collection, old)
        except ApiFailure as failure:
            if failure.reason != "AlreadyExists":
                raise
            found = self._plane.request("GET", path)
        return found

    def _send(self, method: str, path: str, body: object = None) -> Answer:
        try:
            made: Obj = self._plane.request(method, path, body)
        except ApiFailure as failure:
            words = ast.literal_eval(str(failure).split(f": {failure.code} {failure.reason}: ", 1)[1])
            denied = _DENIED.search(words)
            return Answer(policy=denied[1], refusal=denied[2]) if denied else Answer(refusal=words)
        kept = {key: item for key, item in made.get("metadata", {}).items() if key not in OF_SERVER}
        return Answer({**made, "metadata": kept})


def _canary(plural: str, spec: Obj, **metadata: Any) -> Obj:
    kind = KINDS[plural]
    name = {"name": f"canary-{secrets.token_hex(2)}", **metadata}
    return {"apiVersion": kind.group_version, "kind": kind.kind, "metadata": name, "spec": spec}


_TWICE = {"networkTopology": {"highestTierAllowed": 1, "highestTierName": "a"}}
_PATTERN = {"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}
_POD = {"schedulerName": "volcano", "containers": [{"name": "main", "image": "busybox:1"}]}
CANARIES = (
    Ask("canary", "jobs", CREATE, _canary("jobs", {})),
    Ask("canary", "cronjobs", CREATE, _canary("cronjobs", {"schedule": "never", "jobTemplate": {}})),
    Ask("canary", "queues", CREATE, _canary("queues", {"capability": {"cpu": "-1"}})),
    Ask("canary", "podgroups", CREATE, _canary("podgroups", _TWICE)),
    Ask("canary", "jobflows", CREATE, _canary("jobflows", {"flows": [{"name": "a", "dependsOn": {"targets": ["b"]}}]})),
    Ask("canary", "hypernodes", CREATE, _canary("hypernodes", {"tier": 1, "members": [_PATTERN]})),
    Ask("canary", "pods", CREATE, _canary("pods", _POD, annotations={"volcano.sh/jdb-min-available": "many"})),
)
"""One object of each kind that its policy refuses, and nothing else does."""
BARE = (
    Ask("bare", "jobs", CREATE, _canary("jobs", {})),
    Ask("bare", "queues", CREATE, _canary("queues", {})),
    Ask("bare", "podgroups", CREATE, _canary("podgroups", {}), annotations={keys.QUEUE_NAME: "team"}),
)
FILLED_IN = (("schedulerName", "volcano"), ("reclaimable", True), ("queue", "team"))
"""Fields that only a policy fills in, and objects without them."""
