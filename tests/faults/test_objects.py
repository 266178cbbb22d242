"""Objects with something wrong in them: it is said which, in which field, what stands there and what to do.

Whatever is wrong, a job beside it is placed.
"""

from typing import Any

from tests.daemon.cluster import condition, group, placed, put_group, put_job, put_node, put_pod, scheduler
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer
from volcano_py.apiserver.deletion import DeleteOptions
from volcano_py.effects.pod_conditions import PodConditionOptions
from volcano_py.kube.resource import NODES
from volcano_py.testing import a_node, a_pod, a_queue, as_json, manifest

AT_ONCE = PodConditionOptions(rate_per_s=100, burst=100, delay_s=0.01)
A_QUANTITY = "is not a quantity: write a number with an optional suffix"


def told(server: ApiServer, kind: str, name: str) -> list[str]:
    """Return the messages of the warnings about an object."""
    events = server.list("events", "default")
    return [
        event["message"]
        for event in events
        if event["type"] == "Warning"
        and (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == (kind, name)
    ]


def inject_pod(server: ApiServer, name: str, cpu: Any, **spec: Any) -> None:
    """Store a pod that the API server would refuse, as an older server may have stored it."""
    pod = as_json(a_pod(name, group="bad"), spec=spec)
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    server.faults.inject(pod)


async def beside(server: ApiServer, tasks: int = 2) -> dict[str, str]:
    """Create a job beside what is wrong, and return its nodes when all its pods have one."""
    put_job(server, "beside", tasks)
    await until(lambda: len(placed(server, "beside")) == tasks)
    return placed(server, "beside")


async def test_a_pod_with_a_quantity_that_cannot_be_read_names_it_and_only_that_pod_waits(server: ApiServer) -> None:
    put_node(server, "n1", cpu=8)
    put_group(server, "bad", 1)
    inject_pod(server, "bad-0", "1o0")
    put_pod(server, "bad-1", "bad")
    async with scheduler(server.url):
        await beside(server)
        await until(lambda: told(server, "Pod", "bad-0"))

        assert set(placed(server, "bad")) == {"bad-1"}  # a gang of one: its other pod is enough
    (message,) = told(server, "Pod", "bad-0")
    expected = "pod default/bad-0 cannot be read: spec.containers[main].resources.requests[cpu]: '1o0' "
    assert message.startswith(expected + A_QUANTITY)


async def test_a_pod_whose_request_is_of_another_type_is_named_with_the_field(server: ApiServer) -> None:
    put_node(server, "n1", cpu=8)
    inject_pod(server, "bad-0", ["1"])
    async with scheduler(server.url):
        await beside(server)
        await until(lambda: told(server, "Pod", "bad-0"))

    (message,) = told(server, "Pod", "bad-0")
    assert "default/bad-0 cannot be read" in message
    assert 'spec.containers[0].resources.requests[...], which is {"cpu":["1"]}' in message
    assert "until it is corrected" in message


async def test_a_bound_pod_that_cannot_be_read_closes_its_node_until_it_is_gone(server: ApiServer) -> None:
    put_node(server, "n1", cpu=8)
    put_node(server, "n2", cpu=1)
    inject_pod(server, "bad-0", "lots", nodeName="n1")
    async with scheduler(server.url, pod_conditions=AT_ONCE):
        assert set((await beside(server, 1)).values()) == {"n2"}
        put_job(server, "large", 1, cpu="4")
        await until(lambda: condition(server, "large-0").get("message"))
        closed = "1 node(s) closed: pod default/bad-0 on it cannot be read"
        assert closed in condition(server, "large-0")["message"]
        (message,) = told(server, "Pod", "bad-0")
        expected = "pod default/bad-0 cannot be read: spec.containers[main].resources.requests[cpu]: 'lots' "
        assert message.startswith(expected + A_QUANTITY)

        server.registry.delete(server.resources.named("pods"), "default", "bad-0", DeleteOptions(grace_seconds=0))

        await until(lambda: placed(server, "large") == {"large-0": "n1"})


async def test_a_podgroup_whose_queue_does_not_exist_says_so_and_runs_when_it_does(server: ApiServer) -> None:
    put_node(server, "n1", cpu=8)
    put_group(server, "lost", queue="nowhere")
    put_pod(server, "lost-0", "lost")
    put_group(server, "empty", queue="nowhere")  # its pods are not created before it is enqueued
    async with scheduler(server.url, pod_conditions=AT_ONCE):
        await beside(server)
        missing = 'queue "nowhere" of PodGroup default/{} does not exist: create it or change spec.queue'
        await until(lambda: missing.format("lost") in condition(server, "lost-0").get("message", ""))
        await until(lambda: told(server, "PodGroup", "empty"))
        await until(lambda: told(server, "PodGroup", "lost"))

        assert told(server, "PodGroup", "empty") == [missing.format("empty")]
        assert told(server, "PodGroup", "lost")[0].endswith(missing.format("lost"))

        server.create(manifest(a_queue("nowhere")))
        await until(lambda: placed(server, "lost"))
        await until(lambda: group(server, "empty").get("status", {}).get("phase") == "Inqueue")


async def test_a_node_without_allocatable_says_so_and_takes_pods_once_it_has_some(server: ApiServer) -> None:
    server.create(manifest(a_node("bare"), status={"capacity": {}, "allocatable": {}}))
    put_node(server, "n1", cpu=2)
    async with scheduler(server.url, pod_conditions=AT_ONCE) as running:
        assert set((await beside(server)).values()) == {"n1"}
        put_job(server, "more", 1)
        await until(lambda: condition(server, "more-0").get("message"))
        assert "1 node(s) closed: status.allocatable is empty" in condition(server, "more-0")["message"]
        await until(lambda: told(server, "Node", "bare"))
        (message,) = told(server, "Node", "bare")
        assert message.startswith("node bare: status.allocatable is empty, so nothing is placed there: start its kubel")

        status = {"status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}}}
        await running.daemon.client.patch(NODES, "bare", status, dict, subresource="status")

        await until(lambda: placed(server, "more") == {"more-0": "bare"})
