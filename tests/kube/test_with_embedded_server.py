"""The whole machinery against the embedded API server, which misbehaves on demand."""

import asyncio
import random
from typing import Any

import msgspec
import pytest

from tests.effects.waiting import until
from volcano_py.api.core import Node, Pod
from volcano_py.apiserver import ApiServer, ApiServerOptions, Fault
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.delivery import Event, EventType, Quarantined
from volcano_py.kube.informer import Informers
from volcano_py.kube.reflector import ReflectorOptions
from volcano_py.kube.resource import NODES, PODS
from volcano_py.runtime.clock import RealClock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.testing import a_node, a_pod, as_json, manifest


class HurriedClock(RealClock):
    """Pauses a thousand times shorter than asked for."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / 1000)


class Mirror:
    """What a handler believes the server has, by key, as UID and version."""

    def __init__(self) -> None:
        self.objects: dict[str, tuple[str, str]] = {}
        self.unreadable: set[str] = set()

    def on_events(self, events: list[Event[Any]]) -> None:
        for event in events:
            if event.type is EventType.DELETED:
                assert self.objects.pop(event.key)[0] == event.uid
            else:
                assert (event.key in self.objects) == (event.type is EventType.MODIFIED)
                assert event.object is not None
                self.objects[event.key] = (event.uid, event.object.metadata.resource_version)

    def on_quarantine(self, entry: Quarantined) -> None:
        self.unreadable.add(f"{entry.namespace}/{entry.name}")

    def on_release(self, entry: Quarantined) -> None:
        self.unreadable.discard(f"{entry.namespace}/{entry.name}")


def truth(server: ApiServer, resource: str) -> dict[str, tuple[str, str]]:
    """Return what the server has, by key, as UID and version."""
    found = {}
    for obj in server.list(resource):
        meta = obj["metadata"]
        key = f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]
        found[key] = (meta["uid"], meta["resourceVersion"])
    return found


async def write_at_random(server: ApiServer, client: ApiClient, rng: random.Random) -> None:
    """Create, change, delete and recreate pods while the server drops watches and forgets its history."""
    for step in range(300):
        name = f"p{rng.randrange(30)}"
        if server.get("pods", name, "default") is None:
            server.create(manifest(a_pod(name)))
        elif rng.random() < 0.5:
            await client.delete(PODS, name, namespace="default", grace_period_s=0)
        else:
            change = {"metadata": {"labels": {"step": str(step)}}}
            await client.patch(PODS, name, change, Pod, namespace="default")
        if step % 40 == 20:
            server.faults.disconnect_watches("pods")
        if step % 60 == 45:  # away for some steps, and their history is forgotten before it is back
            server.faults.add(Fault("reply", verb="watch", resource="pods", code=503, times=5))
            server.faults.disconnect_watches("pods")
        if step % 60 == 49:
            server.faults.compact()


@pytest.mark.parametrize("watch_list", [False, True])
async def test_the_handler_knows_what_the_server_has_after_every_kind_of_trouble(watch_list: bool) -> None:
    options = ReflectorOptions(page_size=7, watch_list=watch_list)
    async with ApiServer() as server, ApiClient(Credentials(server.url)) as client, Supervisor() as supervisor:
        for i in range(20):
            server.create(manifest(a_pod(f"p{i}")))
        server.faults.add(Fault("reply", verb="list", resource="pods", code=500, times=2))
        server.faults.add(Fault("reply", verb="list", resource="pods", code=410, skip=1, times=1))
        server.faults.add(Fault("reply", verb="watch", resource="pods", code=429, skip=2, times=2))
        server.faults.add(Fault("drop_before", verb="watch", resource="pods", skip=3, times=2))
        server.faults.add(Fault("duplicate_events", resource="pods", times=20))
        informers = Informers(client, options=options, clock=HurriedClock(), rng=random.Random(3))
        pods, nodes = Mirror(), Mirror()
        informers.add(PODS, Pod, pods)
        informers.add(NODES, Node, nodes)
        informers.start(supervisor)
        await informers.synced(5)

        await write_at_random(server, client, random.Random(5))
        server.create(manifest(a_node("n1")))

        await until(lambda: pods.objects == truth(server, "pods"))
        await until(lambda: nodes.objects == truth(server, "nodes"))
        status = informers.status()["pods"]
        assert status.lists > 1
        assert status.reconnects > 1


async def test_a_pod_that_cannot_be_read_is_named_and_the_others_go_on() -> None:
    async with ApiServer() as server, ApiClient(Credentials(server.url)) as client, Supervisor() as supervisor:
        informers = Informers(client, clock=HurriedClock())
        pods = Mirror()
        informers.add(PODS, Pod, pods)
        informers.start(supervisor)
        await informers.synced(5)

        server.faults.inject(as_json(a_pod("broken"), spec={"priority": "high"}))
        server.create(manifest(a_pod("fine")))
        await until(lambda: "default/fine" in pods.objects)

        assert pods.unreadable == {"default/broken"}
        assert [entry.message for entry in informers.quarantined()] == [
            "pods default/broken cannot be read: Expected `int | null`, got `str` at spec.priority, "
            'which is "high"; it is left out until it is corrected'
        ]


async def test_a_binding_is_posted_once_and_refused_the_second_time() -> None:
    token = "secret-token"
    async with (
        ApiServer(ApiServerOptions(token=token)) as server,
        ApiClient(Credentials(server.url, authorization=f"Bearer {token}")) as client,
    ):
        pod = await client.create(PODS, manifest(a_pod("p")), Pod, namespace="default")
        await client.create(NODES, manifest(a_node("n1")), Node)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "p", "namespace": "default", "uid": pod.metadata.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        }
        path, body = PODS.item("p", "default", "binding"), msgspec.json.encode(binding)

        await client.post_bytes(path, body)
        with pytest.raises(errors.Conflict, match='pod p is already assigned to node "n1"'):
            await client.post_bytes(path, body)

        assert (await client.get(PODS, "p", Pod, namespace="default")).spec.node_name == "n1"
