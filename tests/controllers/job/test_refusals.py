"""What pods need is refused or deleted by somebody: the job says why it waits, goes on by itself, and is repaired."""

import asyncio
from typing import Any

import msgspec
import pytest

from tests.controllers.managing import GROUPS, controllers, pod_spec
from tests.daemon.cluster import event_reasons
from tests.effects.waiting import until
from volcano_py.api import keys
from volcano_py.apiserver import ApiServer
from volcano_py.apiserver.faults import Fault
from volcano_py.controllers.writes import Patch, Write, Writer
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import COMMANDS, CONFIG_MAPS, PODGROUPS, PODS, SECRETS, SERVICES, VCJOBS

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def put_train(server: ApiServer, **spec: Any) -> dict[str, Any]:
    """Create a job of one pod."""
    task = {"name": "worker", "replicas": 1, "template": {"spec": pod_spec()}}
    meta = {"name": "train", "namespace": "default"}
    return server.create(
        {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "metadata": meta, "spec": {"tasks": [task], **spec}}
    )


def state(server: ApiServer) -> dict[str, Any]:
    found = server.get(VCJOBS.label, "train", "default") or {}
    return dict(found.get("status", {}).get("state", {}))


@pytest.mark.parametrize(
    ("resource", "spec", "what", "event"),
    [
        pytest.param(GROUPS, {}, "PodGroup train-", "PodGroupError", id="group"),
        pytest.param(
            "persistentvolumeclaims",
            {"volumes": [{"mountPath": "/data", "volumeClaim": CLAIM}]},
            "PersistentVolumeClaim train-pvc-",
            "PVCError",
            id="claim",
        ),
        pytest.param(
            "networkpolicies.networking.k8s.io",
            {"plugins": {"svc": []}},
            "NetworkPolicy train",
            "PluginError",
            id="svc",
        ),
    ],
)
async def test_a_refusal_stands_on_the_job_until_it_is_over(
    server: ApiServer, resource: str, spec: dict[str, Any], what: str, event: str
) -> None:
    server.faults.add(Fault("reply", verb="create", resource=resource, code=403, message="quota is used up", times=2))
    async with controllers(server.url):
        put_train(server, **spec)
        await until(lambda: state(server).get("reason") == "FailedCreate")
        assert state(server)["message"].startswith(f"{what}")
        assert "quota is used up" in state(server)["message"]
        assert state(server)["phase"] == "Pending"
        await until(lambda: event in event_reasons(server, "Job", "train"))

        await until(lambda: server.list(GROUPS))
        await until(lambda: state(server).get("reason") == "Created")


async def test_one_stray_404_does_not_leave_a_new_job_alone(server: ApiServer) -> None:
    """Found by simulation: a job whose first status was "not found" was not looked at again for five minutes."""
    stray = server.faults.add(Fault("reply", verb="patch", resource=f"{VCJOBS.label}/status", code=404, times=1))
    async with controllers(server.url):
        put_train(server)

        await until(lambda: server.list(GROUPS))
    assert stray.hits == 1


async def test_a_group_whose_end_the_watch_does_not_show_is_patched_less_and_less_often(server: ApiServer) -> None:
    """Found by simulation (short seed 7000696): hundreds of times a second."""
    task = {"name": "worker", "replicas": 2, "template": {"spec": pod_spec()}}
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        group = f"train-{put_train(server, minAvailable=2, tasks=[task])['metadata']['uid']}"
        await until(lambda: server.get(GROUPS, group, "default"))
        for verb in ("list", "watch"):
            server.faults.add(Fault("reply", verb=verb, resource=GROUPS, code=503))
        server.faults.disconnect_watches(GROUPS)
        await user.delete(PODGROUPS, group, namespace="default")
        await user.patch(VCJOBS, "train", {"spec": {"minAvailable": 1}}, dict, namespace="default")
        await until(lambda: server.requests.count("patch", GROUPS))
        await asyncio.sleep(0.5)
        assert server.requests.count("patch", GROUPS) <= 10

        server.faults.clear()
        await until(lambda: (server.get(GROUPS, group, "default") or {}).get("spec", {}).get("minMember") == 1)


async def test_a_status_that_the_server_does_not_keep_is_written_less_and_less_often(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A webhook may put the old status back, and each look asks for the next one: thousands of times a second."""
    send, kept = Writer._send, []

    async def swallowing(writer: Writer, write: Write) -> bytes:
        if isinstance(write, Patch) and write.resource is VCJOBS and write.subresource == "status":
            kept.append(write)
            return msgspec.json.encode(server.get(VCJOBS.label, "train", "default"))
        return await send(writer, write)

    monkeypatch.setattr(Writer, "_send", swallowing)
    async with controllers(server.url):
        put_train(server)
        begin = asyncio.get_running_loop().time()
        await asyncio.sleep(2.0)
        await until(lambda: len(kept) >= 50, 60)  # a busy machine needs longer
        elapsed_s = asyncio.get_running_loop().time() - begin

    assert 50 <= len(kept) <= 125 * max(elapsed_s, 2.0)


async def start(server: ApiServer, user: ApiClient, pods: int = 1, **spec: Any) -> dict[str, Any]:
    """Create a job, have it enqueued, and wait for its pods."""
    job = put_train(server, **spec)
    group = f"train-{job['metadata']['uid']}"
    await until(lambda: server.get(GROUPS, group, "default"))
    await user.patch(PODGROUPS, group, {"status": {"phase": "Inqueue"}}, dict, namespace="default")
    await until(lambda: len(server.list("pods")) == pods)
    return job


def workers(replicas: int, **template: Any) -> list[dict[str, Any]]:
    return [
        {"name": "worker", "replicas": replicas, "minAvailable": 1, "template": {"spec": pod_spec(), **template}},
    ]


async def scale(user: ApiClient, replicas: int) -> None:
    await user.patch(VCJOBS, "train", {"spec": {"tasks": workers(replicas)}}, dict, namespace="default")


@pytest.mark.parametrize("stays", [True, False], ids=["needed-again", "deleted"])
async def test_the_mark_of_a_pod_that_is_needed_again_hides_no_eviction(server: ApiServer, stays: bool) -> None:
    restart = [{"event": "PodEvicted", "action": "RestartJob"}]
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        await start(server, user, 2, tasks=workers(2), minAvailable=1, policies=restart)
        refused = server.faults.add(Fault("reply", verb="delete", resource="pods", code=403, message="no"))
        await scale(user, 1)
        await until(lambda: refused.hits)
        if stays:
            await scale(user, 2)
            await until(lambda: not _marked(server, "train-worker-1"))
        server.faults.clear()
        if stays:
            await user.delete(PODS, "train-worker-1", namespace="default")
            await until(lambda: _retries(server) == 1)
        else:
            await until(lambda: len(server.list("pods")) == 1)
    assert _retries(server) == (1 if stays else 0)


def _marked(server: ApiServer, name: str) -> bool:
    pod = server.get("pods", name, "default") or {"metadata": {}}
    return keys.OUT_OF_SYNC in pod["metadata"].get("annotations", {})


def _retries(server: ApiServer) -> int:
    return int((server.get(VCJOBS.label, "train", "default") or {})["status"].get("retryCount", 0))


@pytest.mark.parametrize("code", [409, 429, 451, 500])
async def test_a_pod_that_cannot_be_marked_twice_is_deleted_without_a_mark(server: ApiServer, code: int) -> None:
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        await start(server, user, 2, tasks=workers(2), minAvailable=1)
        refused = server.faults.add(Fault("reply", verb="patch", resource="pods", code=code, retry_after_s=0))
        await scale(user, 1)

        await until(lambda: len(server.list("pods")) == 1)
    assert refused.hits == 2


async def test_a_template_with_the_mark_of_a_killed_pod_makes_pods_without_it(server: ApiServer) -> None:
    """Such a template comes from `kubectl get pod -o yaml`. Its pods were killed as fast as they were created."""
    marked = workers(1, metadata={"annotations": {keys.OUT_OF_SYNC: "true"}})
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        await start(server, user, 1, tasks=marked)

        assert not _marked(server, "train-worker-0")
        await asyncio.sleep(0.3)
    assert server.requests.count("create", "pods") == 1


async def test_a_pod_that_says_that_it_is_another_one_is_named_and_not_created_again_and_again(
    server: ApiServer,
) -> None:
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        await start(server, user, 2, tasks=workers(2))
        label = {"metadata": {"labels": {keys.TASK_INDEX: "1"}}}
        await user.patch(PODS, "train-worker-0", label, dict, namespace="default")
        await until(lambda: "it exists and says that it is pod 1" in state(server).get("message", ""))
        await asyncio.sleep(0.5)

    assert server.requests.count("create", "pods") <= 12


async def test_a_pod_that_may_not_be_marked_is_deleted_nevertheless(server: ApiServer) -> None:
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        await start(server, user)
        refused = server.faults.add(Fault("reply", verb="patch", resource="pods", code=403, message="a policy says no"))
        task = {"name": "worker", "replicas": 0, "minAvailable": 0, "template": {"spec": pod_spec()}}
        await user.patch(VCJOBS, "train", {"spec": {"minAvailable": 0, "tasks": [task]}}, dict, namespace="default")

        await until(lambda: not server.list("pods"))
    assert refused.hits


async def test_objects_of_plugins_that_somebody_deleted_are_made_again_when_the_job_restarts(
    server: ApiServer,
) -> None:
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        job = put_train(server, plugins={"svc": [], "ssh": []})
        group = f"train-{job['metadata']['uid']}"
        await until(lambda: server.get(GROUPS, group, "default"))
        await user.patch(PODGROUPS, group, {"status": {"phase": "Inqueue"}}, dict, namespace="default")
        await until(lambda: server.list("pods"))
        for resource, name in ((CONFIG_MAPS, "train-svc"), (SERVICES, "train"), (SECRETS, "train-ssh")):
            await user.delete(resource, name, namespace="default")

        target = {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "name": "train", "uid": job["metadata"]["uid"]}
        meta = {"name": "again", "namespace": "default"}
        command = {"apiVersion": COMMANDS.api_version, "kind": COMMANDS.kind, "metadata": meta, "target": target}
        server.create({**command, "action": "RestartJob"})

        await until(lambda: server.get("secrets", "train-ssh", "default"))
        await until(lambda: server.get("configmaps", "train-svc", "default"))
        await until(lambda: server.get("services", "train", "default"))
