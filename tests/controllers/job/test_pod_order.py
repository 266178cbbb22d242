"""Pods are created one job after the other, and what fails for all pods of a job is tried with one."""

from typing import Any

from tests.controllers.managing import GROUPS, controllers, pod_spec
from tests.effects.waiting import until
from volcano_py.api import keys
from volcano_py.apiserver import ApiServer
from volcano_py.apiserver.faults import Fault
from volcano_py.controllers.writes import IN_FLIGHT
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import PODGROUPS, VCJOBS

JOBS, PODS_PER_JOB = 10, 20
PODS = JOBS * PODS_PER_JOB


def put_job(server: ApiServer, name: str) -> None:
    task = {"name": "w", "replicas": PODS_PER_JOB, "template": {"spec": pod_spec()}}
    meta = {"name": name, "namespace": "default"}
    server.create({"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "metadata": meta, "spec": {"tasks": [task]}})


async def enqueue(server: ApiServer, user: ApiClient, jobs: int) -> None:
    """Wait for the PodGroups of the jobs, and enqueue them as the scheduler does."""
    await until(lambda: len(server.list(GROUPS)) == jobs)
    for group in server.list(GROUPS):
        body = {"status": {"phase": "Inqueue"}}
        await user.patch(PODGROUPS, group["metadata"]["name"], body, dict, namespace="default")


def version(pod: dict[str, Any]) -> int:
    return int(pod["metadata"]["resourceVersion"])


async def test_a_gang_is_complete_before_the_pods_of_later_jobs_are_created(server: ApiServer) -> None:
    server.faults.add(Fault("delay", verb="create", resource="pods", delay_s=0.02))
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        for number in range(JOBS):
            put_job(server, f"job-{number}")
        await enqueue(server, user, JOBS)
        await until(lambda: len(server.list("pods")) == PODS)

    in_order = [pod["metadata"]["labels"][keys.JOB_NAME] for pod in sorted(server.list("pods"), key=version)]
    for job in set(in_order):
        places = [place for place, name in enumerate(in_order) if name == job]
        assert places[-1] - places[0] < PODS_PER_JOB + IN_FLIGHT


async def test_after_a_failure_one_pod_is_tried_before_all(server: ApiServer) -> None:
    fault = Fault("reply", verb="create", resource="pods", code=403, message="quota is used up")
    server.faults.add(fault)
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        put_job(server, "job")
        await enqueue(server, user, 1)
        await until(lambda: fault.hits >= PODS_PER_JOB + 3)
        assert fault.hits < 2 * PODS_PER_JOB, "each later attempt has cost one request"

        server.faults.clear()
        await until(lambda: len(server.list("pods")) == PODS_PER_JOB)
