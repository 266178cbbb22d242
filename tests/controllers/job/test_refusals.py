"""What pods need is refused or deleted by somebody: the job says why it waits, goes on by itself, and is repaired."""

import asyncio
from typing import Any

import pytest

from tests.controllers.managing import GROUPS, controllers, pod_spec
from tests.daemon.cluster import event_reasons
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.apiserver.faults import Fault
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import COMMANDS, CONFIG_MAPS, PODGROUPS, SECRETS, SERVICES, VCJOBS

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


async def test_a_pod_that_may_not_be_marked_is_deleted_nevertheless(server: ApiServer) -> None:
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        job = put_train(server)
        group = f"train-{job['metadata']['uid']}"
        await until(lambda: server.get(GROUPS, group, "default"))
        await user.patch(PODGROUPS, group, {"status": {"phase": "Inqueue"}}, dict, namespace="default")
        await until(lambda: server.list("pods"))
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
