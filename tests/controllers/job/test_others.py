"""What others do to the objects of a job: copies in other namespaces, finalizers, deletions, an API that is away."""

import asyncio
import contextlib
from typing import Any

import msgspec
import pytest

from tests.controllers.job.test_collisions import JOBS, put_train
from tests.controllers.managing import GROUPS, controllers, pod_spec
from tests.daemon.cluster import event_reasons, events
from tests.effects.waiting import until
from volcano_py.api.batch import Job
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.controllers.job.controller import JobController
from volcano_py.controllers.job.objects import key_of
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import COMMANDS, CONFIG_MAPS, PODGROUPS, PODS, SECRETS, SERVICES, VCJOBS
from volcano_py.testing import a_namespace, a_pod, manifest

POD = "train-worker-0"


def status(server: ApiServer) -> dict[str, Any]:
    """Return the status of the job."""
    found: dict[str, Any] = server.get(JOBS, "train", "default").get("status") or {}
    return found


async def is_running(server: ApiServer, user: ApiClient, **spec: Any) -> dict[str, Any]:
    """Create the job, and let it run; return it."""
    job = put_train(server, **spec)
    group = f"train-{job['metadata']['uid']}"
    await until(lambda: server.get(GROUPS, group, "default"))
    await user.patch(PODGROUPS, group, {"status": {"phase": "Running"}}, dict, namespace="default")
    await until(lambda: server.get("pods", POD, "default"))
    await pod_is(user, "Running")
    await until(lambda: status(server).get("running") == 1)
    return job


async def pod_is(user: ApiClient, phase: str, **fields: Any) -> None:
    """Change the phase of the pod."""
    body = {"status": {"phase": phase, **fields}}
    await user.patch(PODS, POD, body, dict, namespace="default", subresource="status")


def put_command(server: ApiServer, job: dict[str, Any], name: str, action: str, **meta: Any) -> None:
    """Ask for an action on the job."""
    target = {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "name": "train", "uid": job["metadata"]["uid"]}
    meta |= {"name": name, "namespace": "default"}
    body = {"apiVersion": COMMANDS.api_version, "kind": COMMANDS.kind, "metadata": meta, "action": action}
    server.create({**body, "target": target})


@pytest.mark.parametrize("finalizers", [[], ["example.com/keep"]])
async def test_a_copy_of_a_pod_in_another_namespace_is_no_pod_of_the_job(
    server: ApiServer, finalizers: list[str]
) -> None:
    server.create(manifest(a_namespace("other")))
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        await is_running(server, user, policies=[{"event": "PodEvicted", "action": "RestartJob"}])
        pod = server.get("pods", POD, "default")
        meta = {name: pod["metadata"][name] for name in ("name", "labels", "annotations", "ownerReferences")}
        meta |= {"namespace": "other", "finalizers": finalizers}
        server.create({**manifest(a_pod(POD)), "metadata": meta, "spec": pod["spec"]})
        await asyncio.sleep(0.3)
        with contextlib.suppress(errors.NotFound):  # the garbage collector may be first: it has no owner there
            await user.delete(PODS, POD, namespace="other", grace_period_s=0)
        await asyncio.sleep(1.5)

        assert (status(server)["running"], status(server).get("version", 0)) == (1, 0)
        assert server.get("pods", POD, "default")["metadata"]["uid"] == pod["metadata"]["uid"]


async def test_a_command_that_is_being_deleted_is_not_carried_out_again(server: ApiServer) -> None:
    async with ApiClient(Credentials(server.url)) as user:
        async with controllers(server.url):
            job = await is_running(server, user, maxRetry=10)
            for number in (1, 2):
                put_command(server, job, f"c{number}", "RestartJob", finalizers=["example.com/audit"])
                await until(lambda number=number: status(server).get("version") == number)
                await until(lambda: all(map(_is_deleted, server.list("commands.bus.volcano.sh"))))
        async with controllers(server.url):
            await asyncio.sleep(1.5)

        assert status(server)["version"] == 2


async def test_a_job_goes_on_while_a_command_may_not_be_deleted_and_later_commands_wait(server: ApiServer) -> None:
    async with ApiClient(Credentials(server.url)) as user:
        server.faults.add(Fault("reply", verb="delete", resource=COMMANDS.label, code=403, times=1_000_000))
        async with controllers(server.url):
            job = await is_running(server, user)
            put_command(server, job, "first", "AbortJob")
            await until(lambda: status(server)["state"]["phase"] == "Aborted")
            assert server.get("pods", POD, "default") is None
            put_command(server, job, "second", "ResumeJob")
            await until(lambda: "CommandIssued" in event_reasons(server, "Job", "train"))
            await until(lambda: any("cannot be deleted" in one["message"] for one in events(server, "Job", "train")))
            assert status(server)["state"]["phase"] == "Aborted"

        async with controllers(server.url):  # the first is known to be carried out
            await asyncio.sleep(0.5)
            assert status(server)["state"]["phase"] == "Aborted"
            server.faults.clear()
            await until(lambda: not server.list(COMMANDS.label), 15.0)
            await until(lambda: status(server)["state"]["phase"] == "Pending")


async def test_a_command_of_a_job_that_is_gone_is_not_deleted_before_the_server_wants_it(server: ApiServer) -> None:
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        job = await is_running(server, user)
        busy = server.faults.add(
            Fault("reply", verb="delete", resource=COMMANDS.label, code=429, retry_after_s=3, times=1)
        )
        put_command(server, job, "abort", "AbortJob")
        await until(lambda: busy.hits == 1)
        await user.delete(VCJOBS, "train", namespace="default")
        await asyncio.sleep(1.5)
        assert server.requests.count("delete", COMMANDS.label) == 1

        await until(lambda: not server.list(COMMANDS.label))


async def test_a_command_for_a_job_that_is_being_deleted_goes_with_the_job(server: ApiServer) -> None:
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train"}
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        job = put_train(server)
        await until(lambda: status(server))
        kept = {"metadata": {"finalizers": ["example.com/keep"]}}
        await user.patch(VCJOBS, "train", kept, dict, namespace="default")
        await user.delete(VCJOBS, "train", namespace="default")
        target["uid"] = job["metadata"]["uid"]
        meta = {"name": "c1", "namespace": "default"}
        kind = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command"}
        server.create({**kind, "metadata": meta, "action": "AbortJob", "target": target})
        await asyncio.sleep(0.5)
        await user.patch(VCJOBS, "train", {"metadata": {"finalizers": None}}, dict, namespace="default")

        await until(lambda: not server.list(COMMANDS.label))


async def test_what_a_pod_needs_is_made_again_with_the_pod(server: ApiServer) -> None:
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        await is_running(server, user, plugins={"svc": [], "ssh": []})
        secret = server.list("secrets", "default")[0]["metadata"]["name"]
        uid = server.get("pods", POD, "default")["metadata"]["uid"]
        await user.delete(CONFIG_MAPS, "train-svc", namespace="default")
        await user.delete(SECRETS, secret, namespace="default")
        await user.delete(SERVICES, "train", namespace="default")
        await user.delete(PODS, POD, namespace="default", grace_period_s=0)

        await until(lambda: [one for one in server.list("pods", "default") if one["metadata"]["uid"] != uid])
        assert server.get("configmaps", "train-svc", "default") is not None
        assert server.get("secrets", secret, "default") is not None
        assert server.get("services", "train", "default") is not None


async def test_restarts_are_counted_once_however_often_a_kill_fails(server: ApiServer) -> None:
    policy = {"event": "PodFailed", "action": "RestartTask"}
    task = {"name": "worker", "replicas": 1, "maxRetry": 10, "template": {"spec": pod_spec()}, "policies": [policy]}
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        await is_running(server, user, tasks=[task], maxRetry=20)
        server.faults.add(Fault("reply", verb="delete", resource="pods", code=503, times=3))
        terminated = {"name": "c", "restartCount": 0, "ready": False, "image": "i", "imageID": "", "state": {}}
        terminated["state"] = {"terminated": {"exitCode": 1}}
        await pod_is(user, "Failed", containerStatuses=[terminated])

        await until(lambda: status(server)["state"]["phase"] == "Pending", 15.0)
        assert status(server)["controlledResources"]["restarts-worker"] == "1"


async def test_a_job_that_is_not_served_for_a_while_keeps_its_pods(server: ApiServer) -> None:
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url) as manager:
        await is_running(server, user, policies=[{"event": "PodEvicted", "action": "RestartJob"}])
        controller = next(one for one in manager._controllers if isinstance(one, JobController))
        job = msgspec.convert(server.get(JOBS, "train", "default"), Job, strict=False)
        controller._job_changed("default/train", job, None)
        assert key_of(job.metadata) in controller._records
        controller._job_changed("default/train", None, job)
        await asyncio.sleep(1.5)

        assert (status(server)["running"], status(server).get("version", 0)) == (1, 0)


def _is_deleted(obj: dict[str, Any]) -> bool:
    return "deletionTimestamp" in obj["metadata"]
