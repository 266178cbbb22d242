"""Contract: owner references and the garbage collector."""

from __future__ import annotations

from typing import Any

from tests.contract.api import Answer, Api, a_config, owned_by


async def _owner(api: Api, name: str = "owner", **meta: Any) -> Answer:
    return await api.made(api.path("configmaps"), a_config(name, **meta))


async def _dependent(api: Api, name: str, *owners: dict[str, Any], **meta: Any) -> Answer:
    return await api.made(api.path("configmaps"), a_config(name, ownerReferences=list(owners), **meta))


def _path(api: Api, name: str) -> str:
    return api.path("configmaps", name)


async def test_dependents_follow_their_owner(api: Api) -> None:
    owner = await _owner(api)
    middle = await _dependent(api, "middle", owned_by(owner))
    await _dependent(api, "leaf", owned_by(middle))
    await api.delete(_path(api, "owner"))
    await api.until_gone(_path(api, "middle"))
    await api.until_gone(_path(api, "leaf"))


async def test_an_object_with_another_owner_stays_and_loses_the_reference(api: Api) -> None:
    first, second = await _owner(api, "first"), await _owner(api, "second")
    await _dependent(api, "child", owned_by(first), owned_by(second))
    await api.delete(_path(api, "first"), {"propagationPolicy": "Background"})
    child = await api.until(
        _path(api, "child"), lambda found: len(found.meta["ownerReferences"]) == 1, "one reference is left"
    )
    assert child.meta["ownerReferences"][0]["name"] == "second"
    await api.delete(_path(api, "second"), {"propagationPolicy": "Background"})
    await api.until_gone(_path(api, "child"))


async def test_an_object_whose_owner_never_existed_is_collected(api: Api) -> None:
    owner = await _owner(api)
    reference = owned_by(owner) | {"uid": "00000000-0000-0000-0000-000000000000"}
    await _dependent(api, "child", reference)
    await api.until_gone(_path(api, "child"))
    assert (await api.get(_path(api, "owner"))).status == 200


async def test_orphans_stay_and_lose_the_reference(api: Api) -> None:
    owner = await _owner(api)
    await _dependent(api, "child", owned_by(owner))
    answer = await api.delete(_path(api, "owner"), {"propagationPolicy": "Orphan"})
    assert answer.status == 200
    await api.until_gone(_path(api, "owner"))
    child = await api.get(_path(api, "child"))
    assert (child.status, child.meta.get("ownerReferences")) == (200, None)


async def test_foreground_deletion_waits_for_blocking_dependents(api: Api) -> None:
    owner = await _owner(api)
    await _dependent(api, "child", owned_by(owner, block=True), finalizers=["example.com/hold"])
    answer = await api.delete(_path(api, "owner"), {"propagationPolicy": "Foreground"})
    assert answer.meta["finalizers"] == ["foregroundDeletion"]
    await api.until(_path(api, "child"), lambda found: "deletionTimestamp" in found.meta, "the child is being deleted")
    assert (await api.get(_path(api, "owner"))).status == 200
    await api.patch(_path(api, "child"), {"metadata": {"finalizers": None}})
    await api.until_gone(_path(api, "owner"))
    assert (await api.get(_path(api, "child"))).status == 404


async def test_foreground_deletion_without_dependents_ends(api: Api) -> None:
    await _owner(api)
    await api.delete(_path(api, "owner"), {"propagationPolicy": "Foreground"})
    await api.until_gone(_path(api, "owner"))


async def _cycle(api: Api) -> None:
    first = await _owner(api, "first")
    second = await _dependent(api, "second", owned_by(first, block=True))
    patch = {"metadata": {"ownerReferences": [owned_by(second, block=True)]}}
    assert (await api.patch(_path(api, "first"), patch)).status == 200


async def test_a_cycle_lives_until_one_of_it_is_deleted(api: Api) -> None:
    await _cycle(api)
    owner = await _owner(api, "other-owner")
    await _dependent(api, "other", owned_by(owner))
    await api.delete(_path(api, "other-owner"))
    await api.until_gone(_path(api, "other"))  # the collector is not stopped by the cycle
    assert (await api.get(_path(api, "first"))).status == 200
    await api.delete(_path(api, "first"))
    await api.until_gone(_path(api, "second"))
    await api.until_gone(_path(api, "first"))


async def test_a_cycle_does_not_block_its_own_foreground_deletion(api: Api) -> None:
    await _cycle(api)
    await api.delete(_path(api, "first"), {"propagationPolicy": "Foreground"})
    await api.until_gone(_path(api, "first"))
    await api.until_gone(_path(api, "second"))


async def test_an_owner_reference_must_be_complete(api: Api) -> None:
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "", "uid": ""}
    answer = await api.post(api.path("configmaps"), a_config(ownerReferences=[reference]))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert set(answer.fields) == {"metadata.ownerReferences.name", "metadata.ownerReferences.uid"}


async def test_only_one_owner_controls(api: Api) -> None:
    owners = [owned_by(await _owner(api, name)) | {"controller": True} for name in ("one", "two")]
    answer = await api.post(api.path("configmaps"), a_config("child", ownerReferences=owners))
    assert (answer.status, answer.fields) == (422, ["metadata.ownerReferences"])
