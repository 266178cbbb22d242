"""Contract: features that only a real API server has; differences.yaml lists each test."""

from __future__ import annotations

from typing import Any

from tests.contract.api import CRDS, JSON_PATCH, Api, a_bare_pod, a_config, a_definition, unique


async def test_types_of_every_field_of_built_in_kinds_are_checked(api: Api) -> None:
    answer = await api.post(api.path("pods"), a_bare_pod(hostIPC="yes"))
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_field_managers_are_recorded(api: Api) -> None:
    answer = await api.made(api.path("configmaps"), a_config())
    assert [entry["operation"] for entry in answer.meta["managedFields"]] == ["Update"]


async def test_rules_in_cel_are_enforced(api: Api) -> None:
    group = f"{unique('g')}.example.com"
    definition = a_definition("rules", "Rule", group, status=False)
    for version in definition["spec"]["versions"]:
        rule = {"rule": "self.size != 5", "message": "five is right out"}
        version["schema"] = {"openAPIV3Schema": _with_rule(version["schema"]["openAPIV3Schema"], rule)}
    await api.made(CRDS, definition)
    path = api.path("rules", group_version=f"{group}/v1")
    await api.until(path, lambda answer: answer.status == 200, "it is served")
    body = {"apiVersion": f"{group}/v1", "kind": "Rule", "metadata": {"name": "a"}, "spec": {"size": 5}}
    answer = await api.post(path, body)
    await api.delete(f"{CRDS}/rules.{group}")
    assert answer.status == 422
    assert "five is right out" in answer.message


def _with_rule(schema: dict[str, Any], rule: dict[str, str]) -> dict[str, Any]:
    spec = {**schema["properties"]["spec"], "x-kubernetes-validations": [rule]}
    return {**schema, "properties": {**schema["properties"], "spec": spec}}


async def test_a_service_account_token_is_mounted_into_pods(api: Api) -> None:
    answer = await api.made(api.path("pods"), a_bare_pod(automountServiceAccountToken=True))
    assert any("projected" in volume for volume in answer.body["spec"].get("volumes", []))


async def test_a_json_patch_that_copies_nothing_is_accepted(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config())
    operation = {"op": "copy", "from": "/data/none", "path": "/data/x"}
    answer = await api.patch(api.path("configmaps", "a"), [operation], JSON_PATCH)
    assert answer.status == 200
