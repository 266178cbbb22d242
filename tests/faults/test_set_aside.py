"""One object over which our own code raises: it is set aside, and the scheduler goes on with all others.

The fault is in reading a pod or in the store, as a bug of ours would be: pods with the label ``poison`` raise.
"""

from typing import Any

import pytest

from tests.daemon.cluster import condition, placed, put_group, put_job, put_node, put_pod, scheduler, stays
from tests.effects.waiting import until
from tests.faults.test_objects import AT_ONCE, beside, told
from volcano_py.api import keys
from volcano_py.api.core import Pod
from volcano_py.apiserver import ApiServer
from volcano_py.apiserver.deletion import DeleteOptions
from volcano_py.cache import pods
from volcano_py.kube.own_faults import OwnFaults
from volcano_py.kube.resource import PODS
from volcano_py.model.objects import TaskRecord
from volcano_py.snapshot.nodes import NodeStore
from volcano_py.testing import a_pod, manifest

POISON = {"poison": "yes"}
QUARANTINED = ("volcano_py_quarantined_objects", {"resource": "pods"})


@pytest.fixture(autouse=True)
def a_bug(faults_are_seen: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the code that reads pods raise over some pods, and survive it as in production."""
    reads = pods.traits

    def traits(pod: Pod) -> int:
        if POISON.items() <= pod.metadata.labels.items():
            raise {}["poison"]
        return reads(pod)

    monkeypatch.setattr(pods, "traits", traits)
    monkeypatch.setattr(OwnFaults, "survived", True)


def put_poison(server: ApiServer, name: str, **more: Any) -> None:
    server.create(manifest(a_pod(name, cpu="1", labels=POISON, **more)))


async def test_a_pod_over_which_our_code_raises_waits_alone_and_is_placed_once_it_is_changed(server: ApiServer) -> None:
    put_node(server, "n1", cpu=8)
    put_group(server, "bad")
    put_poison(server, "bad", group="bad")
    async with scheduler(server.url) as running:
        await beside(server)
        await until(lambda: told(server, "Pod", "bad"))
        assert running.metric(*QUARANTINED) == 1

        cured = {"metadata": {"labels": {"poison": None}}}
        await running.daemon.client.patch(PODS, "bad", cured, dict, namespace="default")

        await until(lambda: "bad" in placed(server))
        assert running.metric(*QUARANTINED) == 0
    (message,) = told(server, "Pod", "bad")
    assert message.startswith("pods default/bad cannot be read: KeyError: 'poison' (test_set_aside.py:")
    assert "please report it" in message


async def test_a_bound_pod_over_which_our_code_raises_closes_its_node_until_it_is_gone(server: ApiServer) -> None:
    put_node(server, "n1", cpu=8)
    put_node(server, "n2", cpu=1)
    put_poison(server, "bad", node="n1")
    async with scheduler(server.url, pod_conditions=AT_ONCE):
        assert set((await beside(server, 1)).values()) == {"n2"}
        put_job(server, "large", 1, cpu="4")
        closed = "1 node(s) closed: pod default/bad on it cannot be read"
        await until(lambda: closed in condition(server, "large-0").get("message", ""))

        server.registry.delete(server.resources.named("pods"), "default", "bad", DeleteOptions(grace_seconds=0))

        await until(lambda: placed(server, "large") == {"large-0": "n1"})


async def test_a_pod_that_becomes_bad_on_its_node_keeps_its_room(server: ApiServer) -> None:
    put_node(server, "n1", cpu=2)
    put_pod(server, "was-good", node="n1", cpu="2")
    async with scheduler(server.url, pod_conditions=AT_ONCE) as running:
        labels = {"metadata": {"labels": POISON}}
        await running.daemon.client.patch(PODS, "was-good", labels, dict, namespace="default")
        await until(lambda: told(server, "Pod", "was-good"))

        put_job(server, "other", 1)
        await until(lambda: condition(server, "other-0").get("message"))
        await stays(lambda: not placed(server, "other"))

        assert running.daemon.cache.store.nodes.record("n1") is not None
        labels = {"metadata": {"labels": {"poison": None}}}
        await running.daemon.client.patch(PODS, "was-good", labels, dict, namespace="default")
        await until(lambda: "Insufficient cpu" in condition(server, "other-0").get("message", ""))


async def test_a_fault_half_way_through_the_store_never_overcommits_the_node(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_node(server, "n1", cpu=2)
    put_pod(server, "there", node="n1", cpu="2")
    async with scheduler(server.url, pod_conditions=AT_ONCE) as running:
        uid = next(pod["metadata"]["uid"] for pod in server.list("pods", "default"))
        adds = NodeStore.add_task

        def add_task(self: NodeStore, name: str, delta: Any) -> int:
            place = running.daemon.cache.store.task(uid)
            if place is not None and place.record.job == "another":  # it has left its node, and comes back
                raise RuntimeError("half way")
            return adds(self, name, delta)

        monkeypatch.setattr(NodeStore, "add_task", add_task)
        patch = {"metadata": {"annotations": {keys.GROUP_NAME: "another"}}}
        await running.daemon.client.patch(PODS, "there", patch, dict, namespace="default")
        await until(lambda: told(server, "Pod", "there"))

        put_job(server, "other", 1)
        await until(lambda: "closed: pod default/there" in condition(server, "other-0").get("message", ""))
        await stays(lambda: not placed(server, "other"))
        monkeypatch.undo()
        await running.kill()  # an orderly end would validate the store, which is half way


def test_the_bug_of_these_tests_is_where_pods_are_read() -> None:
    assert isinstance(pods.task_record(a_pod("good"), ()), TaskRecord)
    with pytest.raises(KeyError):
        pods.task_record(a_pod("bad", labels=POISON), ())
