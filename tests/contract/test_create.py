"""Contract: creating objects."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.api import Api, a_bare_pod, a_config, unique


async def test_a_new_object_is_returned_with_uid_version_time_and_generation(api: Api) -> None:
    answer = await api.post(api.path("pods"), a_bare_pod())
    assert answer.status == 201
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("Pod", "v1")
    assert answer.meta["namespace"] == api.namespace
    assert len(answer.meta["uid"]) == 36
    assert answer.meta["creationTimestamp"].endswith("Z")
    assert answer.meta["generation"] == 1
    assert int(answer.version) > 0


async def test_kind_and_api_version_may_be_left_out_of_a_built_in_object(api: Api) -> None:
    answer = await api.post(api.path("configmaps"), {"metadata": {"name": "a"}})
    assert (answer.status, answer.body["kind"]) == (201, "ConfigMap")


async def test_fields_that_a_built_in_kind_does_not_have_are_dropped_with_a_warning(api: Api) -> None:
    container = {"name": "main", "image": "none", "resource": {}}
    answer = await api.made(api.path("pods"), a_bare_pod(containers=[container]))
    assert "resource" not in answer.body["spec"]["containers"][0]
    assert answer.headers["Warning"] == '299 - "unknown field \\"spec.containers[0].resource\\""'


async def test_fields_that_a_built_in_kind_does_not_have_are_refused_where_that_is_asked_for(api: Api) -> None:
    answer = await api.post(api.path("pods"), a_bare_pod(schedulerNam="volcano"), fieldValidation="Strict")
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.schedulerNam"'
    )


async def test_fields_that_the_server_owns_cannot_be_chosen(api: Api) -> None:
    config = a_config(
        uid="mine", creationTimestamp="2001-01-01T00:00:00Z", deletionTimestamp="2001-01-01T00:00:00Z", generation=7
    )
    answer = await api.post(api.path("configmaps"), config)
    assert answer.status == 201
    assert answer.meta["uid"] != "mine"
    assert answer.meta["creationTimestamp"] > "2002"
    assert "deletionTimestamp" not in answer.meta


async def test_versions_grow_over_all_resources(api: Api) -> None:
    first = await api.made(api.path("configmaps"), a_config("a"))
    second = await api.made(api.path("secrets"), {"metadata": {"name": "b"}})
    third = await api.made(api.path("configmaps"), a_config("c"))
    assert int(first.version) < int(second.version) < int(third.version)


async def test_a_taken_name_is_already_exists(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    answer = await api.post(api.path("pods"), a_bare_pod())
    assert (answer.status, answer.reason) == (409, "AlreadyExists")
    assert answer.message == 'pods "a" already exists'
    assert answer.body["details"] == {"name": "a", "kind": "pods"}


async def test_generate_name_adds_five_letters(api: Api) -> None:
    pod = a_bare_pod()
    pod["metadata"] = {"generateName": "job-"}
    names = {(await api.made(api.path("pods"), pod)).meta["name"] for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("job-") and len(name) == 9 for name in names)


async def test_a_name_wins_over_generate_name(api: Api) -> None:
    pod = a_bare_pod("named")
    pod["metadata"]["generateName"] = "job-"
    answer = await api.made(api.path("pods"), pod)
    assert (answer.meta["name"], answer.meta["generateName"]) == ("named", "job-")


async def test_without_any_name_the_name_is_required(api: Api) -> None:
    pod = a_bare_pod()
    pod["metadata"] = {}
    answer = await api.post(api.path("pods"), pod)
    assert (answer.status, answer.reason, answer.fields) == (422, "Invalid", ["metadata.name"])
    assert answer.body["details"]["causes"][0]["reason"] == "FieldValueRequired"


@pytest.mark.parametrize(
    ("meta", "field"),
    [
        pytest.param({"name": "A_b"}, "metadata.name", id="name"),
        pytest.param({"name": "-a"}, "metadata.name", id="name-starts-badly"),
        pytest.param({"name": "a", "labels": {"a b": "c"}}, "metadata.labels", id="label-key"),
        pytest.param({"name": "a", "labels": {"a": "b c"}}, "metadata.labels", id="label-value"),
        pytest.param({"name": "a", "labels": {"x/y/z": "c"}}, "metadata.labels", id="label-prefix"),
        pytest.param({"name": "a", "annotations": {"a b": "c"}}, "metadata.annotations", id="annotation-key"),
    ],
)
async def test_bad_metadata_is_invalid(api: Api, meta: dict[str, Any], field: str) -> None:
    answer = await api.post(api.path("configmaps"), {"metadata": meta})
    assert (answer.status, answer.reason, answer.fields) == (422, "Invalid", [field])


async def test_labels_must_be_text(api: Api) -> None:
    answer = await api.post(api.path("configmaps"), a_config(labels={"a": 1}))
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_resource_version_may_not_be_given(api: Api) -> None:
    answer = await api.post(api.path("configmaps"), a_config(resourceVersion="5"))
    assert answer.status == 500
    assert answer.message == "resourceVersion should not be set on objects to be created"


async def test_the_namespace_must_exist(api: Api) -> None:
    missing = unique("missing")
    answer = await api.post(f"/api/v1/namespaces/{missing}/configmaps", a_config())
    assert (answer.status, answer.reason) == (404, "NotFound")
    assert answer.body["details"] == {"name": missing, "kind": "namespaces"}


async def test_the_namespace_of_object_and_path_must_agree(api: Api) -> None:
    answer = await api.post(api.path("configmaps"), a_config(namespace="other"))
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert answer.message == "the namespace of the provided object does not match the namespace sent on the request"


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease"])
async def test_the_usual_namespaces_exist(api: Api, name: str) -> None:
    answer = await api.get(f"/api/v1/namespaces/{name}")
    assert (answer.status, answer.body["status"]) == (200, {"phase": "Active"})


async def test_a_dry_run_answers_and_stores_nothing(api: Api) -> None:
    answer = await api.post(api.path("configmaps"), a_config(), dryRun="All")
    assert (answer.status, answer.meta["name"]) == (201, "a")
    assert (await api.get(api.path("configmaps", "a"))).status == 404


async def test_an_event_lives_where_its_object_lives(api: Api) -> None:
    event = {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}}
    answer = await api.post(api.path("events"), event)
    assert (answer.status, answer.fields) == (422, ["involvedObject.namespace"])


async def test_a_lease_may_be_created_by_put(api: Api) -> None:
    path = api.path("leases", "l", group_version="coordination.k8s.io/v1")
    answer = await api.put(path, {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})
    assert (answer.status, answer.body["spec"]["holderIdentity"]) == (201, "me")


async def test_secrets_written_as_text_are_stored_as_data(api: Api) -> None:
    answer = await api.made(api.path("secrets"), {"metadata": {"name": "s"}, "stringData": {"k": "v"}})
    assert (answer.body["data"], answer.body["type"], "stringData" in answer.body) == ({"k": "dg=="}, "Opaque", False)


async def test_keys_of_config_maps_are_checked(api: Api) -> None:
    answer = await api.post(api.path("configmaps"), a_config(data={"a/b": "1"}))
    assert (answer.status, answer.fields) == (422, ["data[a/b]"])


async def test_an_immutable_config_map_keeps_its_data(api: Api) -> None:
    await api.made(api.path("configmaps"), {**a_config(), "immutable": True})
    answer = await api.patch(api.path("configmaps", "a"), {"data": {"key": "other"}})
    assert (answer.status, answer.fields) == (422, ["data"])
