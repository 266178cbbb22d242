"""Objects that own each other: no part of the system loops, each says what is wrong, and others are cared for."""

import logging
from typing import Any

import pytest

from tests.apiserver.support import a_config
from tests.controllers.managing import controllers, group_of, put_pod, put_workload
from tests.effects.waiting import until
from tests.faults.test_objects import told
from volcano_py.apiserver import ApiServer
from volcano_py.apiserver.deletion import DeleteOptions


def reference(owner: dict[str, Any], **more: bool) -> dict[str, Any]:
    meta = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"], **more}


def own(server: ApiServer, resource: str, name: str, owner: dict[str, Any], **more: bool) -> None:
    """Make an object that is there the dependent of another."""
    found = server.get(resource, name, "default")
    assert found is not None
    meta = {**found["metadata"], "ownerReferences": [reference(owner, **more)]}
    kind = server.resources.named(resource)
    stored = server.registry.collection(kind).get(f"default/{name}")
    assert stored is not None
    server.registry.replace(kind, stored, {**found, "metadata": meta})


async def test_workloads_that_control_each_other_have_pods_with_groups_and_the_pods_say_so(server: ApiServer) -> None:
    one = put_workload(server, "ReplicaSet", "one")
    two = put_workload(server, "ReplicaSet", "two")
    own(server, "replicasets.apps", "one", two, controller=True)
    own(server, "replicasets.apps", "two", one, controller=True)
    async with controllers(server.url):
        put_pod(server, "p1", one)
        put_pod(server, "beside")

        await until(lambda: group_of(server, "p1") and group_of(server, "beside"))
        await until(lambda: told(server, "Pod", "p1"))

    (message,) = told(server, "Pod", "p1")
    assert message.startswith("metadata.ownerReferences of Pod default/p1 form a cycle: ")
    assert "Pod p1 -> ReplicaSet one -> ReplicaSet two -> ReplicaSet one; " in message
    assert message.endswith("remove one of the references")
    assert told(server, "Pod", "beside") == []


async def test_a_pod_that_controls_itself_gets_a_group_and_says_so(server: ApiServer) -> None:
    async with controllers(server.url):
        pod = put_pod(server, "p1")
        await until(lambda: group_of(server, "p1"))
        server.faults.inject(_anew(pod, "p2"))

        await until(lambda: group_of(server, "p2"))
        await until(lambda: told(server, "Pod", "p2"))

    assert "form a cycle: Pod p2 -> Pod p2; " in told(server, "Pod", "p2")[0]


def _anew(pod: dict[str, Any], name: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    owned = {**meta, "ownerReferences": [reference({**pod, "metadata": meta}, controller=True)]}
    return {**pod, "metadata": owned}


async def test_the_garbage_collector_leaves_a_cycle_alone_says_so_and_collects_the_rest(
    server: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        one = server.create(a_config("one"))
        two = server.create(a_config("two", ownerReferences=[reference(one)]))
        own(server, "configmaps", "one", two)
        gone = {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "no-such-uid"}
        server.create(a_config("orphan", ownerReferences=[gone]))

        await until(lambda: server.get("configmaps", "orphan", "default") is None)

    assert server.get("configmaps", "one", "default")
    assert server.get("configmaps", "two", "default")
    said = [text for record in caplog.records if "ownerReferences" in (text := record.getMessage())]
    assert (
        "metadata.ownerReferences of ConfigMap default/one form a cycle: ConfigMap one -> ConfigMap two -> "
        "ConfigMap one; these objects are never garbage-collected: remove one of the references"
    ) in said
    assert len(said) <= 2  # each of the two at most once


async def test_a_foreground_deletion_in_a_cycle_ends(server: ApiServer) -> None:
    one = server.create(a_config("one"))
    two = server.create(a_config("two", ownerReferences=[reference(one, blockOwnerDeletion=True)]))
    own(server, "configmaps", "one", two, blockOwnerDeletion=True)

    kind = server.resources.named("configmaps")
    server.registry.delete(kind, "default", "one", DeleteOptions(propagation="Foreground"))

    await until(lambda: not server.list("configmaps", "default"))
