"""Creates the objects of a benchmark on an API server and deletes them: nodes, pods, PodGroups."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import msgspec

from volcano_py.api import keys
from volcano_py.api.meta import ObjectMeta
from volcano_py.kube.client import ApiClient
from volcano_py.kube.errors import AlreadyExists
from volcano_py.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, NODES, PODGROUPS, PODS, Resource
from volcano_py.local.manifests import definitions

CREATORS = 16

T = TypeVar("T")


class Named(msgspec.Struct, frozen=True):
    """An object of which only the metadata matters."""

    metadata: ObjectMeta


async def in_turns(items: Iterable[T], work: Callable[[T], Awaitable[None]], at_once: int = CREATORS) -> None:
    """Work on items, a few at a time."""
    todo = iter(items)

    async def worker() -> None:
        for item in todo:
            await work(item)

    await asyncio.gather(*(worker() for _ in range(at_once)))


async def define(client: ApiClient) -> None:
    """Install the definitions of this project if they are missing."""
    for definition in definitions():
        with contextlib.suppress(AlreadyExists):
            await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition, dict)


def node_name(number: int) -> str:
    """Return the name of a node by its number."""
    return f"node-{number:05d}"


async def make_nodes(client: ApiClient, count: int) -> None:
    """Create nodes of 32 CPU / 256 GiB / 110 pods."""
    has = {"cpu": "32", "memory": "256Gi", "pods": "110"}

    async def make(number: int) -> None:
        name = node_name(number)
        labels = {keys.LABEL_HOSTNAME: name}
        body = {"metadata": {"name": name, "labels": labels}, "status": {"capacity": has, "allocatable": has}}
        await client.create(NODES, body, dict)

    await in_turns(range(count), make)


async def remove_nodes(client: ApiClient, count: int) -> None:
    """Delete the nodes again."""
    await in_turns(range(count), lambda number: client.delete(NODES, node_name(number)))


async def make_pods(client: ApiClient, namespace: str, gangs: int, k: int) -> list[ObjectMeta]:
    """Create a namespace with pods of 1 CPU / 1 GiB that name the gangs gang-0, gang-1, ..., k pods each."""
    with contextlib.suppress(AlreadyExists):
        await client.create(NAMESPACES, {"metadata": {"name": namespace}}, dict)
    made: list[ObjectMeta] = []

    async def make(which: tuple[int, int]) -> None:
        gang, number = which
        body = pod_body(f"gang-{gang}-{number}", f"gang-{gang}")
        made.append((await client.create(PODS, body, Named, namespace=namespace)).metadata)

    await in_turns([(gang, number) for gang in range(gangs) for number in range(k)], make)
    return made


def pod_body(name: str, group: str, node: str = "") -> dict[str, Any]:
    """Return a pod of this scheduler, on a node if one is given."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    spec = {"schedulerName": keys.SCHEDULER_NAME, "containers": [container], **({"nodeName": node} if node else {})}
    return {"metadata": {"name": name, "annotations": {keys.GROUP_NAME: group}}, "spec": spec}


async def make_groups(client: ApiClient, namespace: str, gangs: int, min_member: int) -> None:
    """Create the PodGroups of :func:`make_pods`, a few at a time."""

    async def make(gang: int) -> None:
        body = {
            "apiVersion": PODGROUPS.api_version,
            "kind": PODGROUPS.kind,
            "metadata": {"name": f"gang-{gang}"},
            "spec": {"minMember": min_member, "queue": keys.DEFAULT_QUEUE},
        }
        await client.create(PODGROUPS, body, dict, namespace=namespace)

    await in_turns(range(gangs), make)


async def clean(client: ApiClient, namespace: str) -> None:
    """Delete the pods and PodGroups of a namespace, so that the next round finds empty nodes."""
    for resource in (PODS, PODGROUPS):
        names: list[str] = []
        async for page in client.list_pages(resource, Named, namespace=namespace):
            names.extend(item.metadata.name for item in page.items)

        async def remove(name: str, resource: Resource = resource) -> None:
            await client.delete(resource, name, namespace=namespace, grace_period_s=0)

        await in_turns(names, remove)
