"""What has the name of something that a job needs and belongs to somebody else is neither changed nor deleted."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.controllers.managing import GROUPS, controllers, pod_spec, put_pod
from tests.daemon.cluster import event_reasons
from tests.effects.waiting import until
from volcano_py.api.meta import ObjectMeta, OwnerReference
from volcano_py.apiserver import ApiServer
from volcano_py.controllers.job import objects
from volcano_py.controllers.view import View
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PODGROUPS, PODS, VCJOBS

JOBS = VCJOBS.label
CLAIMS = PERSISTENT_VOLUME_CLAIMS.label


def put_train(server: ApiServer, **spec: Any) -> dict[str, Any]:
    """Create a job of one pod."""
    task = {"name": "worker", "replicas": 1, "template": {"spec": pod_spec()}}
    meta = {"name": "train", "namespace": "default"}
    return server.create(
        {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "metadata": meta, "spec": {"tasks": [task], **spec}}
    )


async def put_enqueued_train(server: ApiServer, user: ApiClient) -> None:
    """Create the job, and enqueue it as a scheduler does."""
    group = f"train-{put_train(server)['metadata']['uid']}"
    await until(lambda: server.get(GROUPS, group, "default"))
    await user.patch(PODGROUPS, group, {"status": {"phase": "Inqueue"}}, dict, namespace="default")


def message(server: ApiServer, reason: str) -> str:
    """Return the message of the event with a reason."""
    return next(str(event["message"]) for event in server.list("events") if event["reason"] == reason)


@pytest.mark.parametrize(
    ("api_version", "kind", "plural"),
    [
        ("v1", "Service", "services"),
        ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies.networking.k8s.io"),
    ],
)
async def test_an_object_of_a_plugin_that_belongs_to_somebody_else_is_left_alone_and_the_job_says_what_to_do(
    server: ApiServer, api_version: str, kind: str, plural: str
) -> None:
    spec = {"ports": [{"port": 80}]} if kind == "Service" else {"podSelector": {"matchLabels": {"app": "theirs"}}}
    meta = {"name": "train", "namespace": "default"}
    theirs = server.create({"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec})
    async with controllers(server.url):
        put_train(server, plugins={"svc": []})
        await until(lambda: "PluginError" in event_reasons(server, "Job", "train"))

        text = f"{kind} default/train exists and belongs to somebody else: delete it, or give the job another name"
        assert message(server, "PluginError") == text
        assert server.get(plural, "train", "default") == theirs
        assert server.get("pods", "train-worker-0", "default") is None


async def test_what_an_earlier_job_of_the_name_leaves_is_waited_for_and_belongs_to_nobody_else(
    server: ApiServer,
) -> None:
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        put_train(server, plugins={"svc": []})
        await until(lambda: server.get("configmaps", "train-svc", "default"))
        first = server.get("configmaps", "train-svc", "default")["metadata"]["uid"]
        slow = {"metadata": {"finalizers": ["example.com/slow"]}}
        await user.patch(CONFIG_MAPS, "train-svc", slow, dict, namespace="default")
        await user.delete(VCJOBS, "train", namespace="default")
        await until(lambda: server.get(JOBS, "train", "default") is None)
        put_train(server, plugins={"svc": []})
        await asyncio.sleep(1.0)
        assert "FailedCreate" not in _state(server).values()
        assert "PluginError" not in event_reasons(server, "Job", "train")

        await user.patch(CONFIG_MAPS, "train-svc", {"metadata": {"finalizers": None}}, dict, namespace="default")
        await until(lambda: server.list(GROUPS))
        assert server.get("configmaps", "train-svc", "default")["metadata"]["uid"] != first


async def test_a_job_goes_on_when_the_claim_of_an_earlier_job_is_gone(server: ApiServer) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"mountPath": "/data", "volumeClaimName": "data", "volumeClaim": claim}]
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        put_train(server, volumes=volumes)
        await until(lambda: server.get(CLAIMS, "data", "default"))
        protected = {"metadata": {"finalizers": ["kubernetes.io/pvc-protection"]}}
        await user.patch(PERSISTENT_VOLUME_CLAIMS, "data", protected, dict, namespace="default")
        await user.delete(VCJOBS, "train", namespace="default")
        await until(lambda: server.get(JOBS, "train", "default") is None)
        uid = put_train(server, volumes=volumes)["metadata"]["uid"]
        await until(lambda: _state(server).get("reason") == "ClaimNotFound")

        free = {"metadata": {"finalizers": None}}
        await user.patch(PERSISTENT_VOLUME_CLAIMS, "data", free, dict, namespace="default")

        await until(lambda: server.get(GROUPS, f"train-{uid}", "default"))
        (owner,) = server.get(CLAIMS, "data", "default")["metadata"]["ownerReferences"]
        assert owner["uid"] == uid


async def test_a_claim_of_an_earlier_job_that_the_watch_does_not_show_yet_is_not_taken_over(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"mountPath": "/data", "volumeClaimName": "data", "volumeClaim": claim}]
    owner = objects.owner_reference("train", "uid-of-the-earlier-job")
    meta = {"name": "data", "namespace": "default", "ownerReferences": [owner], "finalizers": ["example.com/slow"]}
    late: list[tuple[View[Any], list[Any]]] = []
    show = View.on_events

    def hold(view: View[Any], events: list[Any]) -> None:
        if any(event.key == "default/data" for event in events):
            late.append((view, events))
        else:
            show(view, events)

    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        monkeypatch.setattr(View, "on_events", hold)
        server.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim})
        await until(lambda: late)
        uid = put_train(server, volumes=volumes)["metadata"]["uid"]
        await asyncio.sleep(0.5)
        assert not server.list(GROUPS)

        monkeypatch.undo()
        for view, events in late:
            view.on_events(events)
        await until(lambda: _state(server).get("reason") == "ClaimNotFound")
        free = {"metadata": {"finalizers": None}}
        await user.patch(PERSISTENT_VOLUME_CLAIMS, "data", free, dict, namespace="default")
        await until(lambda: server.get(GROUPS, f"train-{uid}", "default"))
        assert server.get(CLAIMS, "data", "default")["metadata"]["ownerReferences"][0]["uid"] == uid


async def test_what_an_earlier_job_leaves_and_does_not_go_is_named_by_the_job_that_waits_for_it(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "LATE_S", -1.0)
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        put_train(server, plugins={"svc": []})
        await until(lambda: server.get("configmaps", "train-svc", "default"))
        stuck = {"metadata": {"finalizers": ["example.com/stuck"]}}
        await user.patch(CONFIG_MAPS, "train-svc", stuck, dict, namespace="default")
        await user.delete(VCJOBS, "train", namespace="default")
        await until(lambda: server.get(JOBS, "train", "default") is None)
        await until(lambda: server.get("configmaps", "train-svc", "default")["metadata"].get("deletionTimestamp"))
        put_train(server, plugins={"svc": []})

        await until(lambda: _state(server).get("reason") == "FailedCreate")

        assert "ConfigMap default/train-svc was to be gone at " in _state(server)["message"]
        assert "still terminates: look at its finalizers" in _state(server)["message"]


@pytest.mark.parametrize(
    ("deleted_s", "job", "goes"),
    [
        pytest.param(None, "train", True, id="of-an-earlier-job-and-the-garbage-collector-comes"),
        pytest.param(None, "other", False, id="of-another-job"),
        pytest.param(29, "train", True, id="terminates"),
        pytest.param(31, "train", False, id="terminates-for-too-long"),
    ],
)
@pytest.mark.parametrize("kind", [ObjectMeta, objects.JobPodMeta])
def test_what_an_earlier_job_owned_goes_by_itself_unless_something_holds_it(
    kind: type[ObjectMeta | objects.JobPodMeta], deleted_s: int | None, job: str, goes: bool
) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    owner = msgspec.convert(objects.owner_reference(job, "uid-of-the-earlier-job"), OwnerReference)
    found = kind(name="x", owner_references=[owner], deletion_timestamp=None if deleted_s is None else at)

    assert objects.will_go(found, ObjectMeta(name="train", uid="u"), at + timedelta(seconds=deleted_s or 0)) == goes


async def test_a_pod_of_somebody_else_is_left_alone_and_the_job_goes_on_when_it_is_gone(server: ApiServer) -> None:
    theirs = put_pod(server, "train-worker-0")
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        await put_enqueued_train(server, user)
        await until(lambda: _state(server).get("reason") == "FailedCreate")
        assert "belongs to somebody else" in _state(server)["message"]
        assert _uid(server) == theirs["metadata"]["uid"]

        await user.delete(PODS, "train-worker-0", namespace="default")

        await until(lambda: _uid(server) not in ("", theirs["metadata"]["uid"]))
        await until(lambda: "reason" not in _state(server) or _state(server)["reason"] != "FailedCreate")


async def test_a_pod_that_does_not_end_is_named_by_the_job_that_waits_for_its_name(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "LATE_S", -1.0)
    put_pod(server, "train-worker-0")
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        stuck = {"metadata": {"finalizers": ["example.com/stuck"]}}
        await user.patch(PODS, "train-worker-0", stuck, dict, namespace="default")
        await user.delete(PODS, "train-worker-0", namespace="default", grace_period_s=0)
        await put_enqueued_train(server, user)

        await until(lambda: _state(server).get("reason") == "FailedCreate")

        assert "still terminates: look at its finalizers and its node" in _state(server)["message"]


@pytest.mark.parametrize(("after_s", "soon"), [(0, True), (29, True), (31, False)])
def test_a_pod_may_take_a_while_to_end(after_s: int, soon: bool) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)

    assert objects.terminates(objects.JobPodMeta(deletion_timestamp=at), at + timedelta(seconds=after_s)) == soon
    assert not objects.terminates(objects.JobPodMeta(), at)


def _state(server: ApiServer) -> dict[str, Any]:
    found = server.get(JOBS, "train", "default")
    return {} if found is None else dict(found.get("status", {}).get("state", {}))


def _uid(server: ApiServer) -> str:
    found = server.get("pods", "train-worker-0", "default")
    return "" if found is None else str(found["metadata"]["uid"])
