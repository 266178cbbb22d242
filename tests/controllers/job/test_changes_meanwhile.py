"""A job that is deleted or edited while a request for it is under way: nothing is made for it that it does not want."""

import asyncio
from typing import Any

import msgspec

from tests.controllers.job.builders import a_job_task, a_vcjob, on
from tests.controllers.job.world import World
from tests.controllers.managing import GROUPS, controllers, pod_spec
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.apiserver.faults import Fault
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import PODGROUPS, VCJOBS

JOBS = VCJOBS.label


def put_train(server: ApiServer, tasks: dict[str, int], **spec: Any) -> dict[str, Any]:
    """Create a job with these numbers of replicas."""
    meta = {"name": "train", "namespace": "default"}
    body = {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "metadata": meta}
    return server.create({**body, "spec": {"tasks": tasks_of(tasks), **spec}})


def tasks_of(tasks: dict[str, int]) -> list[dict[str, Any]]:
    return [{"name": name, "replicas": count, "template": {"spec": pod_spec()}} for name, count in tasks.items()]


async def enqueue(server: ApiServer, user: ApiClient, job: dict[str, Any]) -> None:
    """Let the PodGroup of a job in, as the scheduler does."""
    name = f"train-{job['metadata']['uid']}"
    await until(lambda: server.get(GROUPS, name, "default"))
    await user.patch(PODGROUPS, name, {"status": {"phase": "Inqueue"}}, dict, namespace="default")


async def test_a_status_that_is_answered_after_the_deletion_of_the_job_does_not_bring_it_back(
    server: ApiServer,
) -> None:
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url) as manager:
        send = manager._writer._send  # an answer that comes after the news of the watch

        async def slowly(write: Any) -> bytes:
            answer = await send(write)
            if write.resource is VCJOBS:
                await asyncio.sleep(0.2)
            return answer

        manager._writer._send = slowly  # type: ignore[method-assign]
        put_train(server, {"worker": 1})
        await until(lambda: (server.get(JOBS, "train", "default") or {}).get("status"))
        await user.delete(VCJOBS, "train", namespace="default")
        await asyncio.sleep(0.6)

        assert server.requests.count("create", GROUPS) == 0
        assert server.requests.count("create", "pods") == 0


async def test_a_task_that_is_removed_while_its_pods_are_created_gets_no_more_of_them(server: ApiServer) -> None:
    server.faults.add(Fault("delay", delay_s=0.05, verb="create", resource="pods"))
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        await enqueue(server, user, put_train(server, {"first": 300, "second": 2}))
        await until(lambda: server.list("pods"))

        await user.patch(VCJOBS, "train", {"spec": {"tasks": tasks_of({"second": 2})}}, dict, namespace="default")

        await until(lambda: names(server) == ["train-second-0", "train-second-1"])
        assert server.requests.count("create", "pods") < 200


def names(server: ApiServer) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in server.list("pods"))


async def test_a_plugin_that_is_removed_while_its_keys_are_generated_leaves_no_secret(server: ApiServer) -> None:
    server.faults.add(Fault("delay", delay_s=0.3, verb="get", resource="secrets"))
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        job = put_train(server, {"worker": 1}, plugins={"ssh": []})
        await until(lambda: (server.get(JOBS, "train", "default") or {}).get("status"))
        await asyncio.sleep(0.05)

        await user.patch(VCJOBS, "train", {"spec": {"plugins": None}}, dict, namespace="default")

        await enqueue(server, user, job)
        await until(lambda: names(server) == ["train-worker-0"])
        assert server.get("secrets", "train-ssh", "default") is None


async def test_a_job_that_vanishes_while_its_watch_is_broken_is_not_made_up_again(server: ApiServer) -> None:
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        await enqueue(server, user, put_train(server, {"worker": 2}))
        await until(lambda: len(names(server)) == 2)
        for verb in ("list", "watch"):
            server.faults.add(Fault("reply", verb=verb, resource=JOBS, code=500))
        server.faults.disconnect_watches(JOBS)
        created = server.requests.count("create", GROUPS), server.requests.count("create", "pods")

        await user.delete(VCJOBS, "train", namespace="default")
        await until(lambda: not server.list(GROUPS) and not names(server))
        await asyncio.sleep(0.3)

        assert (server.requests.count("create", GROUPS), server.requests.count("create", "pods")) == created


def test_a_job_that_is_being_deleted_drops_its_delayed_actions() -> None:
    world = World(a_vcjob(a_job_task(replicas=1, policies=[on("PodPending", "RestartJob", timeout="1m")])))
    world.starts()
    assert world.record.armed.next_due_s(world.now) is not None

    world.job = msgspec.structs.replace(
        world.job, metadata=msgspec.structs.replace(world.job.metadata, deletion_timestamp=world.now)
    )
    world.edits()
    world.waits(120)
    world.look()

    assert world.record.armed.next_due_s(world.now) is None
    assert world.phase == "Pending"
