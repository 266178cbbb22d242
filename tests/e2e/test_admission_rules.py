"""Every rule of the eleven webhooks on the real API server, with failurePolicy Fail: refused once, accepted once.

The table of `tests/admission/table` says what is wrong; here real queues stand around the objects. An object that the
API server never shows to a rule is refused, changed or answered by the API server itself, and the table says why.
"""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.admission.asking import policy, queue, task
from tests.admission.changes import Changes, changed
from tests.admission.table import CASES, DEFAULTS, RESOURCE_GROUPS, Case
from tests.admission.table.case import ABSENT, ALWAYS_THERE, NEVER_ASKED, PLAIN, STATUS, Obj, at
from tests.controlplane.namespaces import create_namespace, discard_namespace
from tests.controlplane.waiting import wait_until
from tests.e2e.control_plane import ControlPlane
from tests.e2e.webhooks import Webhooks
from volcano_py.admission.contract import DELETE, UPDATE

LEAST, MOST = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"
DENIED = "denied the request: "
DRY = "?dryRun=All"
MERGE = "application/merge-patch+json"
KINDS = {
    "jobs": ("batch.volcano.sh/v1alpha1", "Job"),
    "queues": ("scheduling.volcano.sh/v1beta1", "Queue"),
    "podgroups": ("scheduling.volcano.sh/v1beta1", "PodGroup"),
    "pods": ("v1", "Pod"),
    "jobflows": ("flow.volcano.sh/v1alpha1", "JobFlow"),
    "hypernodes": ("topology.volcano.sh/v1alpha1", "HyperNode"),
    "cronjobs": ("batch.volcano.sh/v1alpha1", "CronJob"),
}
OF_NAMESPACE = """
- resourceGroup: ours
  object: {{key: namespace, value: [{}]}}
  labels: {{owner: us}}
"""
"""What pods of our namespace get that are in no other group."""
WITHOUT_NAMESPACE = ("queues", "hypernodes")
REACHED = [name for name, case in CASES.items() if not case.unreachable]
NOT_REACHED = [name for name, case in CASES.items() if case.unreachable not in ("", NEVER_ASKED)]


@dataclass(frozen=True)
class Answer:
    """What the API server answered."""

    code: int
    body: Mapping[str, Any]
    warnings: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Whether it took the object."""
        return self.code < 300

    @property
    def said(self) -> str:
        """Why it did not, "" if it did."""
        return "" if self.accepted else f"{self.code}: {self.body.get('message')}"

    @property
    def fields(self) -> list[str]:
        """The fields that the causes of a refusal name."""
        return [cause.get("field", "") for cause in self.body.get("details", {}).get("causes", [])]


class Cluster:
    """Writes to the API server, and the queues around an object."""

    def __init__(self, plane: ControlPlane, namespace: str) -> None:
        self._plane = plane
        self._namespace = namespace

    def send(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> Answer:
        """Send one request; return the answer with its warnings."""
        address = urlsplit(self._plane.url)
        connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, timeout=30, context=self._plane.ssl_context
        )
        with contextlib.closing(connection):
            connection.request(method, path, None if body is None else json.dumps(body), {"Content-Type": content_type})
            response = connection.getresponse()
            content = json.loads(response.read())
        return Answer(response.status, content, tuple(response.headers.get_all("Warning") or ()))

    def path(self, kind: str, name: str = "") -> str:
        """Return where objects of a kind are, or the one of a name."""
        version, _ = KINDS[kind]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        inside = "" if kind in WITHOUT_NAMESPACE else f"/namespaces/{self._namespace}"
        return f"{root}{inside}/{kind}" + (f"/{name}" if name else "")

    def whole(self, kind: str, obj: Obj) -> dict[str, Any]:
        """Return an object with its type and our namespace."""
        version, name = KINDS[kind]
        metadata = {key: value for key, value in obj["metadata"].items() if key != "namespace"}
        return {**obj, "apiVersion": version, "kind": name, "metadata": metadata}

    def create(self, kind: str, obj: Obj, dry: bool = True) -> Answer:
        """Create an object."""
        return self.send("POST", self.path(kind) + (DRY if dry else ""), self.whole(kind, obj))

    def judged(self, case: Case) -> tuple[Answer, Answer]:
        """Return the answers about the object that is refused, and about its counterpart."""
        if case.good_queues is not None:
            return self._judged(case, case.queues, case.bad)[0], self._judged(case, case.good_queues, case.good)[0]
        refused, accepted = self._judged(case, case.queues, case.bad, case.good)
        return refused, accepted

    def _judged(self, case: Case, around: tuple[Obj, ...], *different: Changes) -> list[Answer]:
        with self._objects(case, around):
            return [self._write(case, changes) for changes in different]

    def _write(self, case: Case, changes: Changes) -> Answer:
        """Try to write an object without changing anything."""
        if case.operation == DELETE:
            return self.send("DELETE", self.path(case.kind, changes["metadata/name"]) + DRY)
        if case.operation == UPDATE:
            path = self.path(case.kind, case.old["metadata"]["name"])
            return self.send("PUT", path + DRY, changed(self.send("GET", path).body, changes))
        return self.create(case.kind, changed(PLAIN[case.kind], changes))

    @contextlib.contextmanager
    def _objects(self, case: Case, queues: tuple[Obj, ...]) -> Iterator[None]:
        """Have queues around an object, and before an update the object itself."""
        found = {one["metadata"]["name"]: one for one in queues}
        with contextlib.ExitStack() as undo:
            if case.operation == UPDATE and case.kind == "queues":
                found.setdefault(case.old["metadata"]["name"], case.old)
                found.pop("root", None)
            self.have_queues(found, undo)
            if case.operation == UPDATE and case.kind != "queues":
                made = self.create(case.kind, case.old, dry=False)
                assert made.accepted, made.said
                undo.callback(self.send, "DELETE", self.path(case.kind, case.old["metadata"]["name"]))
            yield

    def have_queues(self, queues: Mapping[str, Obj], undo: contextlib.ExitStack) -> None:
        """Create queues, parents first, and take them away again."""
        left = dict(queues)
        while left:
            name = next(name for name, one in left.items() if one["spec"].get("parent") not in left)
            one = left.pop(name)
            made = self.create("queues", {key: one[key] for key in ("metadata", "spec")}, dry=False)
            assert made.accepted, made.said
            undo.callback(self._remove, name)
        for name, one in queues.items():
            self._set_status(name, one["status"])

    def annotate(self, annotations: Mapping[str, str], undo: contextlib.ExitStack) -> None:
        """Annotate our namespace, and take the annotations away again."""

        def write(found: Mapping[str, Any]) -> None:
            answer = self.send(
                "PATCH", f"/api/v1/namespaces/{self._namespace}", {"metadata": {"annotations": found}}, MERGE
            )
            assert answer.accepted, answer.said

        if annotations:
            write(annotations)
            undo.callback(write, dict.fromkeys(annotations))

    def _remove(self, name: str) -> None:
        self._set_status(name, None)  # a queue with pods is not deleted
        gone = self.send("DELETE", self.path("queues", name))
        assert gone.accepted, gone.said

    def _set_status(self, name: str, status: Any) -> None:
        path = self.path("queues", name) + "/status"
        wanted = None if status is None else {key: value for key, value in status.items() if value}
        assert self.send("PATCH", path, {"status": wanted}, MERGE).accepted


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane, installed: object, tmp_path_factory: Any) -> Iterator[Cluster]:
    """A cluster with all eleven webhooks, root and default."""
    if not control_plane.owned:
        pytest.skip("webhooks of our own would decide about the objects of others")
    groups: Path = tmp_path_factory.mktemp("admission") / "admission.conf"
    namespace = create_namespace(control_plane.cluster, wait_for_account=True)
    groups.write_text(RESOURCE_GROUPS + OF_NAMESPACE.format(namespace))
    flags = ("--enable-queue-allocated-pods-check", f"--admission-conf={groups}", "--leader-elect=false")
    hooks = Webhooks(control_plane, *flags)
    found = Cluster(control_plane, namespace)
    with contextlib.ExitStack() as undo:
        undo.callback(discard_namespace, control_plane.cluster, namespace)
        wait_until("queues are served", lambda: found.send("GET", found.path("queues")).accepted, 20.0)
        there = {one["metadata"]["name"] for one in found.send("GET", found.path("queues")).body["items"]}
        missing = {one["metadata"]["name"]: one for one in ALWAYS_THERE if one["metadata"]["name"] not in there}
        found.have_queues(missing, undo)
        try:
            hooks.start().install()
            yield found
        finally:
            hooks.uninstall()
            hooks.stop()


@pytest.mark.parametrize("name", REACHED)
def test_what_is_wrong_is_refused_and_its_counterpart_is_accepted(cluster: Cluster, name: str) -> None:
    case = CASES[name]
    refused, accepted = cluster.judged(case)

    assert accepted.said == ""
    assert DENIED in refused.said
    assert case.says in refused.said
    assert case.at in refused.fields
    assert refused.warnings, "no way out was told"


@pytest.mark.parametrize("name", NOT_REACHED)
def test_what_no_rule_is_asked_about(cluster: Cluster, name: str) -> None:
    case = CASES[name]
    refused, accepted = cluster.judged(case)

    assert accepted.said == ""
    assert DENIED not in refused.said
    if case.unreachable == STATUS:
        assert refused.accepted
        assert at(refused.body, "status/state") != case.bad["status/state"]
    else:
        assert refused.code == (404 if case.unreachable == ABSENT else 422)


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_are_filled_in(cluster: Cluster, name: str) -> None:
    default = DEFAULTS[name]
    with contextlib.ExitStack() as undo:
        cluster.have_queues({"t": queue("t")}, undo)
        cluster.annotate(default.namespace, undo)
        made = cluster.create(default.kind, default.object)

    assert made.said == ""
    assert {path: at(made.body, path) for path in default.gets} == default.gets


def test_a_pod_gets_what_its_namespace_gives(cluster: Cluster) -> None:
    made = cluster.create("pods", PLAIN["pods"])

    assert made.said == ""
    assert at(made.body, "spec/nodeSelector") == {"owner": "us"}


STRANGE: dict[str, tuple[str, dict[str, Any]]] = {
    "no spec of a job": ("jobs", {"spec": None}),
    "a text for a job": ("jobs", {"spec": "job"}),
    "no task": ("jobs", {"spec/tasks": [None]}),
    "no tasks": ("jobs", {"spec/tasks": None}),
    "no annotations": ("jobs", {"metadata/annotations": None, "metadata/labels": None}),
    "no policies": ("jobs", {"spec/policies": None, "spec/volumes": None, "spec/plugins": {"svc": None}}),
    "no template": ("jobs", {"spec/tasks/0/template": None}),
    "no containers": ("jobs", {"spec/tasks/0/template/spec/containers": [None]}),
    "no name of a task": ("jobs", {"spec/tasks/0/name": None}),
    "no number": ("jobs", {"spec/tasks/0/replicas": None, "spec/minAvailable": None}),
    "half a pod": ("jobs", {"spec/tasks/0/replicas": 1.5}),
    "a whole number as a fraction": ("jobs", {"spec/tasks/0/replicas": 4.0}),
    "fewer than none": ("jobs", {"spec/tasks/0/replicas": -1, "spec/minAvailable": -1}),
    "more than there can be": ("jobs", {"spec/tasks/0/replicas": 2**31}),
    "more than anybody can count": ("jobs", {"spec/tasks/0/replicas": 2**80}),
    "letters of everywhere": ("jobs", {"spec/queue": "éǅ\u0000\U0001f600", "spec/plugins": {"\u0000": ["٣"]}}),
    "a name of a thousand letters": ("jobs", {"metadata/name": "j" * 1000}),
    "a name that is made": ("jobs", {"metadata": {"generateName": "made-"}}),
    "a name that is made and too long": ("jobs", {"metadata": {"generateName": "made-" * 20}}),
    "lists in lists": ("jobs", {"spec/tasks/0/template/spec/strange": [[[[[]]]]] * 100}),
    "no spec of a queue": ("queues", {"spec": None}),
    "a text for a queue": ("queues", {"spec": "queue"}),
    "no capability": ("queues", {"spec/capability": None, "spec/guarantee": {"resource": None}}),
    "an amount that is none": ("queues", {"spec/capability": {"cpu": None}}),
    "a huge amount": ("queues", {"spec/capability": {"cpu": "9" * 400, "memory": 10**30}}),
    "a place that is none": ("queues", {"metadata/annotations": {"volcano.sh/hierarchy": None}}),
    "no spec of a PodGroup": ("podgroups", {"spec": None}),
    "no policy": ("podgroups", {"spec/subGroupPolicy": [None]}),
    "no annotation of a pod": ("pods", {"metadata/annotations": {LEAST: None}}),
    "no container": ("pods", {"spec/containers": None}),
    "no flow": ("jobflows", {"spec/flows": [None]}),
    "no dependence": ("jobflows", {"spec/flows/0/dependsOn": {"targets": [None]}}),
    "no member": ("hypernodes", {"spec/members": [None]}),
    "no pattern": ("hypernodes", {"spec/members/0/selector": {"regexMatch": None}}),
    "a pattern of many brackets": ("hypernodes", {"spec/members/0/selector": {"regexMatch": {"pattern": "(" * 5000}}}),
    "no zone": ("cronjobs", {"spec/timeZone": None, "spec/jobTemplate/spec/tasks": [None]}),
    "no template of jobs": ("cronjobs", {"spec/jobTemplate": None}),
    "an endless schedule": ("cronjobs", {"spec/schedule": "*/1" * 20_000}),
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_is_strange_gets_an_answer(cluster: Cluster, name: str) -> None:
    kind, changes = STRANGE[name]

    answer = cluster.create(kind, changed(PLAIN[kind], changes))

    assert answer.code in (201, 400, 422), answer.said
    assert "failed calling webhook" not in answer.said
    assert "the review at" not in answer.said


def test_a_thousand_tasks_are_judged_in_time(cluster: Cluster) -> None:
    tasks = {f"spec/tasks/{index}": task(f"t{index}") for index in range(1000)}

    assert cluster.create("jobs", changed(PLAIN["jobs"], tasks)).said == ""


BOTH = {"mode": "hard", "highestTierAllowed": 1, "highestTierName": "rack"}
MANY: dict[str, tuple[dict[str, Any], set[str]]] = {
    "jobs": (
        {
            "metadata/name": "j" * 64,
            "spec/queue": "gone",
            "spec/minAvailable": 99,
            "spec/plugins": {"magic": []},
            "spec/policies": [policy(action="Dance"), policy(), policy()],
            "spec/networkTopology": BOTH,
            "spec/volumes": [{"mountPath": "/a"}],
            "spec/tasks/0/minAvailable": 9,
            "spec/tasks/1": task("main", dependsOn={"name": ["nobody"]}),
        },
        {
            *("metadata.name", "spec.queue", "spec.minAvailable", "spec.plugins[magic]", "spec.networkTopology"),
            *("spec.policies[0].action", "spec.policies[1]", "spec.policies[2]", "spec.volumes[0]", "spec.tasks"),
            *("spec.tasks[0].minAvailable", "spec.tasks[0].name", "spec.tasks[1].name"),
        },
    ),
    "queues": (
        {
            "spec/parent": "gone",
            "spec/capability": {"cpu": "-1", "pods": "1.5"},
            "spec/guarantee": {"resource": {"memory": "1Gi"}},
            "metadata/annotations": {"volcano.sh/hierarchy": "root/a", "volcano.sh/hierarchy-weights": "1/x/0"},
        },
        {
            *("spec.parent", "spec.capability.cpu", "spec.capability.pods", "spec.deserved.memory"),
            *("metadata.annotations[volcano.sh/hierarchy]", "metadata.annotations[volcano.sh/hierarchy-weights]"),
        },
    ),
    "podgroups": (
        {"spec/queue": "gone", "spec/networkTopology": BOTH, "spec/subGroupPolicy": [{"networkTopology": BOTH}]},
        {"spec.queue", "spec.networkTopology", "spec.subGroupPolicy[0].networkTopology"},
    ),
    "pods": (
        {"metadata/annotations": {LEAST: "0", MOST: "all"}},
        {f"metadata.annotations[{LEAST}]", f"metadata.annotations[{MOST}]", "metadata.annotations"},
    ),
    "hypernodes": (
        {
            "spec/members": [
                {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}} for pattern in ("(", "a", "[")
            ]
        },
        {f"spec.members[{index}].selector.regexMatch.pattern" for index in (0, 2)},
    ),
    "cronjobs": (
        {"metadata/name": "c" * 53, "spec/schedule": "", "spec/timeZone": "../x"},
        {"metadata.name", "spec.schedule", "spec.timeZone"},
    ),
}


@pytest.mark.parametrize("kind", MANY)
def test_everything_that_is_wrong_is_said_at_once(cluster: Cluster, kind: str) -> None:
    changes, fields = MANY[kind]

    answer = cluster.create(kind, changed(PLAIN[kind], changes))

    assert DENIED in answer.said
    assert set(answer.fields) == fields


def test_what_is_wrong_with_the_jobs_of_a_cron_job_is_a_warning(cluster: Cluster) -> None:
    answer = cluster.create("cronjobs", changed(PLAIN["cronjobs"], {"spec/jobTemplate/spec/plugins": {"magic": []}}))

    assert answer.said == ""
    assert any("unable to find job plugin: magic" in warning for warning in answer.warnings)
