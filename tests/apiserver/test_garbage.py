"""The garbage collector beyond the contract: numbers, references it must not act on, failures."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tests.apiserver.support import a_config, until
from volcano_py.apiserver import ApiServer
from volcano_py.apiserver.deletion import DeleteOptions
from volcano_py.apiserver.garbage import GarbageCollector
from volcano_py.local.manifests import definitions
from volcano_py.testing import a_node, manifest


def _reference(owner: dict[str, Any]) -> dict[str, Any]:
    meta = owner["metadata"]
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": meta["name"], "uid": meta["uid"]}


def _delete(server: ApiServer, resource: str, name: str, namespace: str | None = "default") -> None:
    server.registry.delete(server.resources.named(resource), namespace, name, DeleteOptions())


def _missing(kind: str = "ConfigMap", api_version: str = "v1") -> dict[str, str]:
    return {"apiVersion": api_version, "kind": kind, "name": "gone", "uid": "no-such-uid"}


async def _settled(server: ApiServer) -> None:
    """Until everything noted so far has been decided: a canary that must go comes last in the queue."""
    server.create(a_config("canary", ownerReferences=[_missing()]))
    await until(lambda: server.get("configmaps", "canary", "default") is None)


async def test_two_thousand_dependents_go_with_their_owner(server: ApiServer) -> None:
    owner = server.create(a_config("owner"))
    for index in range(2000):
        server.create(a_config(f"c{index}", ownerReferences=[_reference(owner)]))
    _delete(server, "configmaps", "owner")
    await until(lambda: not server.list("configmaps"))


async def test_an_owner_of_a_kind_that_is_not_served_protects(server: ApiServer) -> None:
    server.create(a_config("kept", ownerReferences=[_missing("Thing", "example.com/v1")]))
    await _settled(server)
    assert server.get("configmaps", "kept", "default")


async def test_an_owner_that_is_gone_counts_once_its_kind_is_served(server: ApiServer) -> None:
    server.create(a_config("waits", ownerReferences=[_missing("PodGroup", "scheduling.volcano.sh/v1beta1")]))
    await _settled(server)
    assert server.get("configmaps", "waits", "default")

    for definition in definitions():
        server.create(definition)

    await until(lambda: server.get("configmaps", "waits", "default") is None)


async def test_a_cluster_wide_object_cannot_be_owned_by_a_namespaced_one(server: ApiServer) -> None:
    owner = server.create(a_config("owner"))
    node = manifest(a_node("n"), metadata={"ownerReferences": [_reference(owner)]})
    server.create(node)
    _delete(server, "configmaps", "owner")
    await _settled(server)
    assert server.get("nodes", "n")


async def test_a_namespaced_object_may_be_owned_by_a_cluster_wide_one(server: ApiServer) -> None:
    node = server.create(manifest(a_node("n")))
    server.create(a_config("child", ownerReferences=[_reference(node)]))
    _delete(server, "nodes", "n", None)
    await until(lambda: server.get("configmaps", "child", "default") is None)


async def test_an_owner_in_another_namespace_does_not_count(server: ApiServer) -> None:
    owner = server.create(a_config("owner", "kube-system"))
    server.create(a_config("child", ownerReferences=[_reference(owner)]))
    await until(lambda: server.get("configmaps", "child", "default") is None)


async def test_an_owner_created_again_under_the_same_name_does_not_count(server: ApiServer) -> None:
    owner = server.create(a_config("owner"))
    _delete(server, "configmaps", "owner")
    server.create(a_config("owner"))
    server.create(a_config("child", ownerReferences=[_reference(owner)]))
    await until(lambda: server.get("configmaps", "child", "default") is None)


async def test_an_object_may_own_itself(server: ApiServer) -> None:
    made = server.create(a_config("self"))
    configs = server.resources.named("configmaps")
    patch = {"ownerReferences": [_reference(made)]}
    server.registry.patch(configs, "default", "self", lambda obj: {**obj, "metadata": {**obj["metadata"], **patch}})
    await _settled(server)
    assert server.get("configmaps", "self", "default")
    _delete(server, "configmaps", "self")
    assert server.get("configmaps", "self", "default") is None


async def test_one_object_that_fails_does_not_stop_the_others(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    judge = GarbageCollector._judge

    def failing(self: GarbageCollector, resource: Any, stored: Any, owners: Any) -> None:
        if stored.key == "default/broken":
            raise ZeroDivisionError("boom")
        judge(self, resource, stored, owners)

    monkeypatch.setattr(GarbageCollector, "_judge", failing)
    with caplog.at_level(logging.ERROR):
        server.create(a_config("broken", ownerReferences=[_missing()]))
        await _settled(server)
    assert "default/broken" in caplog.text
    assert server.get("configmaps", "broken", "default")
