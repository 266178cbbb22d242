"""A cluster whose definition of PodGroups is older than ours: what it does not keep is not written again and again."""

import asyncio

import aiohttp

from tests.controllers.managing import GROUPS, controllers, pod_spec
from tests.daemon.cluster import comes_to_rest
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import PODGROUPS, VCJOBS

DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


async def without_sub_groups(server: ApiServer) -> None:
    """Take subGroupPolicy away from the definition of PodGroups."""
    definition = server.get(DEFINITIONS, GROUPS)
    assert definition is not None
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["spec"]["properties"]["subGroupPolicy"]
    url = f"{server.url}/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{GROUPS}"
    async with aiohttp.ClientSession() as session, session.put(url, json=definition) as answer:
        assert answer.status == 200


async def test_a_field_that_the_server_does_not_keep_is_written_once_and_the_job_runs(server: ApiServer) -> None:
    await without_sub_groups(server)
    partitions = {"totalPartitions": 2, "partitionSize": 1}
    task = {"name": "worker", "replicas": 2, "template": {"spec": pod_spec()}, "partitionPolicy": partitions}
    body = {
        "apiVersion": VCJOBS.api_version,
        "kind": VCJOBS.kind,
        "metadata": {"name": "train", "namespace": "default"},
    }
    async with ApiClient(Credentials(server.url)) as user, controllers(server.url):
        job = server.create({**body, "spec": {"tasks": [task]}})
        group = f"train-{job['metadata']['uid']}"
        await until(lambda: server.get(GROUPS, group, "default"))
        await user.patch(PODGROUPS, group, {"status": {"phase": "Inqueue"}}, dict, namespace="default")
        await until(lambda: len(server.list("pods")) == 2)
        await comes_to_rest(lambda: server.requests.count("patch", GROUPS), 0.3)
        patches = server.requests.count("patch", GROUPS)
        await asyncio.sleep(0.3)

        assert server.requests.count("patch", GROUPS) == patches < 5

        changed = {"spec": {"minAvailable": 1}}  # what the server keeps still follows the job
        await user.patch(VCJOBS, "train", changed, dict, namespace="default")
        await until(lambda: (server.get(GROUPS, group, "default") or {})["spec"]["minMember"] == 1)
