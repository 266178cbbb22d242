"""Contract: answers as tables, as kubectl asks for them; metadata alone; and the published schemas."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.contract.api import CRDS, Answer, Api, a_bare_pod, a_config, a_definition, unique
from tests.contract.conftest import Custom

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
KUBECTL = f"{TABLE},application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"


def names(answer: Answer, wide: bool = True) -> list[str]:
    columns = answer.body["columnDefinitions"]
    return [column["name"] for column in columns if wide or column["priority"] == 0]


async def test_a_list_is_a_table_with_a_row_per_object(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config("mine"))
    answer = await api.request(
        "GET", api.path("configmaps"), accept=KUBECTL, query={"fieldSelector": "metadata.name=mine"}
    )
    assert (answer.body["kind"], answer.body["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert names(answer) == ["Name", "Data", "Age"]
    (row,) = answer.body["rows"]
    assert row["cells"][:2] == ["mine", 1]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert set(row["object"]) == {"kind", "apiVersion", "metadata"}


async def test_a_single_object_is_a_table_of_one_row(api: Api) -> None:
    made = await api.made(api.path("configmaps"), a_config())
    answer = await api.get_as(api.path("configmaps", "a"), TABLE)
    assert (len(answer.body["rows"]), answer.version) == (1, made.version)


@pytest.mark.parametrize(("include", "kind"), [("Object", "ConfigMap"), ("Metadata", "PartialObjectMetadata")])
async def test_rows_carry_what_is_asked_for(api: Api, include: str, kind: str) -> None:
    await api.made(api.path("configmaps"), a_config())
    path = api.path("configmaps", "a")
    answer = await api.request("GET", path, accept=TABLE, query={"includeObject": include})
    assert answer.body["rows"][0]["object"]["kind"] == kind


async def test_the_row_of_a_pod_shows_its_state(api: Api) -> None:
    await api.made(api.path("pods"), a_bare_pod(schedulingGates=[{"name": "example.com/gate"}]))
    answer = await api.get_as(api.path("pods", "a"), TABLE)
    assert names(answer) == [
        "Name", "Ready", "Status", "Restarts", "Age", "IP", "Node", "Nominated Node", "Readiness Gates",
    ]  # fmt: skip
    assert names(answer, wide=False) == ["Name", "Ready", "Status", "Restarts", "Age"]
    cells = answer.body["rows"][0]["cells"]
    assert cells[:4] == ["a", "0/1", "SchedulingGated", "0"]
    assert cells[5:] == ["<none>", "<none>", "<none>", "<none>"]


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        pytest.param({"phase": "Running"}, ["0/1", "Running"], id="running-but-not-ready"),
        pytest.param(
            {"phase": "Running", "containerStatuses": [{"ready": True, "state": {"running": {}}}]},
            ["1/1", "Running"],
            id="ready",
        ),
        pytest.param(
            {"phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]},
            ["0/1", "ErrImagePull"],
            id="waiting",
        ),
        pytest.param(
            {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]},
            ["0/1", "ExitCode:3"],
            id="failed",
        ),
        pytest.param(
            {
                "phase": "Succeeded",
                "containerStatuses": [{"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}],
            },
            ["0/1", "Completed"],
            id="completed",
        ),
        pytest.param({"phase": "Failed", "reason": "Evicted"}, ["0/1", "Evicted"], id="evicted"),
    ],
)
async def test_the_status_of_a_pod_is_one_word(api: Api, status: dict[str, Any], shown: list[str]) -> None:
    await api.made(api.path("pods"), a_bare_pod())
    filler = {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
    statuses = [{**filler, **item} for item in status.get("containerStatuses", ())]
    body = {"status": {**status, **({"containerStatuses": statuses} if statuses else {})}}
    patched = await api.patch(api.path("pods", "a", "status"), body)
    assert patched.status == 200, patched
    answer = await api.get_as(api.path("pods", "a"), TABLE)
    assert answer.body["rows"][0]["cells"][1:3] == shown


@pytest.mark.parametrize(
    ("path", "columns"),
    [
        ("/api/v1/nodes", "Name Status Roles Age Version"),
        ("/api/v1/namespaces", "Name Status Age"),
        ("/api/v1/events", "Last Seen Type Reason Object Message"),
        ("/api/v1/secrets", "Name Type Data Age"),
        ("/api/v1/serviceaccounts", "Name Age"),
        ("/api/v1/services", "Name Type Cluster-IP External-IP Port(s) Age"),
        ("/apis/apps/v1/deployments", "Name Ready Up-to-date Available Age"),
        ("/apis/apps/v1/replicasets", "Name Desired Current Ready Age"),
        ("/api/v1/replicationcontrollers", "Name Desired Current Ready Age"),
        ("/apis/apps/v1/statefulsets", "Name Ready Age"),
        ("/apis/apps/v1/daemonsets", "Name Desired Current Ready Up-to-date Available Node Selector Age"),
        ("/apis/batch/v1/jobs", "Name Status Completions Duration Age"),
        ("/apis/coordination.k8s.io/v1/leases", "Name Holder Age"),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", "Name Value Global-Default Age PreemptionPolicy"),
        ("/apis/policy/v1/poddisruptionbudgets", "Name Min Available Max Unavailable Allowed Disruptions Age"),
        (CRDS, "Name Created At"),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "Name Created At"),
        ("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "Name Role Age"),
        ("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "Name Webhooks Age"),
    ],
)
async def test_built_in_kinds_have_their_columns(api: Api, path: str, columns: str) -> None:
    answer = await api.request("GET", path, accept=TABLE, query={"limit": "1"})
    assert " ".join(names(answer, wide=False)) == columns


@pytest.mark.parametrize(
    ("path", "kind", "status", "shown"),
    [
        pytest.param(".status.phase", "string", {"phase": "Up"}, "Up", id="text"),
        pytest.param(".status.running", "integer", {"running": 3}, 3, id="number"),
        pytest.param(".status.phase", "string", {}, None, id="missing"),
        pytest.param(".status.running", "string", {"running": 3}, "3", id="number-as-text"),
        pytest.param(".spec.capacity['example\\.com/gpu']", "string", {}, "8", id="quoted-key"),
        pytest.param(".spec.parts[0].name", "string", {}, "p", id="index"),
        pytest.param('.spec.parts[?(@.name=="q")].count', "integer", {}, 2, id="filter"),
    ],
)
async def test_custom_resources_show_the_columns_of_their_definition(
    api: Api, path: str, kind: str, status: dict[str, Any], shown: Any
) -> None:
    group = f"{unique('g')}.example.com"
    definition = a_definition("shown", "Shown", group, status=False)
    for version in definition["spec"]["versions"]:
        version["additionalPrinterColumns"] = [
            {"name": "Value", "type": kind, "jsonPath": path},
            {"name": "Wide", "type": "date", "jsonPath": ".metadata.creationTimestamp", "priority": 1},
        ]
    await api.made(CRDS, definition)
    where = api.path("shown", group_version=f"{group}/v1")
    await api.until(where, lambda answer: answer.status == 200, "it is served")
    spec = {"size": 1, "capacity": {"example.com/gpu": "8"}, "parts": [{"name": "p"}, {"name": "q", "count": 2}]}
    body = {"apiVersion": f"{group}/v1", "kind": "Shown", "metadata": {"name": "a"}, "spec": spec, "status": status}
    await api.made(where, body)
    answer = await api.get_as(where, TABLE)
    await api.delete(f"{CRDS}/shown.{group}")
    assert (names(answer), names(answer, wide=False)) == (["Name", "Value", "Wide"], ["Name", "Value"])
    assert answer.body["rows"][0]["cells"][:2] == ["a", shown]


async def test_a_definition_without_columns_shows_the_age(api: Api, things: Custom) -> None:
    assert names(await api.get_as(things.v1, TABLE)) == ["Name", "Age"]


async def test_a_watch_of_tables_names_the_columns_once(api: Api) -> None:
    path = api.path("configmaps")
    await api.made(path, a_config("a"))
    listed = await api.get(path)
    # Of this object alone: Kubernetes puts a ConfigMap into every new namespace, at a time of its own.
    query = {"resourceVersion": listed.version, "fieldSelector": "metadata.name=b"}
    async with api.watch_as(path, TABLE, **query) as watch:
        await api.made(path, a_config("b"))
        await api.delete(api.path("configmaps", "b"))
        added, deleted = await watch.next(), await watch.next()
    assert (added["type"], added["object"]["kind"], deleted["type"]) == ("ADDED", "Table", "DELETED")
    assert added["object"]["rows"][0]["cells"][0] == deleted["object"]["rows"][0]["cells"][0] == "b"
    assert [column["name"] for column in added["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert not deleted["object"]["columnDefinitions"]


async def test_a_list_can_be_metadata_alone(api: Api) -> None:
    await api.made(api.path("configmaps"), a_config())
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    answer = await api.get_as(api.path("configmaps"), accept)
    assert answer.body["kind"] == "PartialObjectMetadataList"
    assert all("data" not in item for item in answer.body["items"])


async def test_a_form_that_does_not_exist_is_not_acceptable(api: Api) -> None:
    answer = await api.get_as(api.path("configmaps"), "application/json;as=Poem;v=v1;g=meta.k8s.io")
    assert (answer.status, answer.reason) == (406, "NotAcceptable")


def parsed(answer: Answer) -> Any:
    """Parse a document that a real server does not label as JSON."""
    return json.loads(answer.body) if isinstance(answer.body, str) else answer.body


async def test_the_schemas_of_every_group_are_published(api: Api, things: Custom) -> None:
    paths = parsed(await api.get("/openapi/v3"))["paths"]
    assert {"api/v1", "apis/apps/v1"} <= set(paths)
    own = f"apis/{things.group}/v1"
    listed = await api.until("/openapi/v3", lambda answer: own in parsed(answer)["paths"], "published")
    url = parsed(listed)["paths"][own]["serverRelativeURL"]
    document = parsed(await api.get(url))
    schemas = [
        schema
        for schema in document["components"]["schemas"].values()
        if {"group": things.group, "version": "v1", "kind": things.kind}
        in schema.get("x-kubernetes-group-version-kind", ())
    ]
    assert "size" in json.dumps(schemas[0]["properties"]["spec"])


async def test_the_number_of_replicas_is_a_subresource(api: Api) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "m", "image": "x"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = api.path("replicasets", "r", group_version="apps/v1")
    await api.made(api.path("replicasets", group_version="apps/v1"), {"metadata": {"name": "r"}, "spec": spec})
    read = await api.get(f"{path}/scale")
    assert (read.body["kind"], read.body["apiVersion"]) == ("Scale", "autoscaling/v1")
    assert (read.body["spec"]["replicas"], read.body["status"]["selector"]) == (1, "a=b")
    patched = await api.patch(f"{path}/scale", {"spec": {"replicas": 0}})
    assert patched.status == 200
    assert (await api.get(path)).body["spec"]["replicas"] == 0
