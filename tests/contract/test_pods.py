"""Contract: what a pod looks like once it is stored, and which pods are refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.api import Api, a_bare_pod, unique

CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def _with_resources(**resources: Any) -> dict[str, Any]:
    return a_bare_pod(containers=[{"name": "main", "image": "example.com/none:1", "resources": resources}])


async def test_defaults_that_schedulers_see(api: Api) -> None:
    spec = (await api.made(api.path("pods"), a_bare_pod())).body["spec"]
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["serviceAccountName"] == "default"
    assert spec["dnsPolicy"] == "ClusterFirst"
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    [container] = spec["containers"]
    assert container["resources"] == {}
    assert container["terminationMessagePath"] == "/dev/termination-log"


async def test_a_new_pod_is_pending_whatever_its_status_says(api: Api) -> None:
    answer = await api.made(api.path("pods"), a_bare_pod() | {"status": {"phase": "Running", "reason": "x"}})
    assert answer.body["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


async def test_every_pod_tolerates_a_lost_node_for_five_minutes(api: Api) -> None:
    own = {"key": "example.com/mine", "operator": "Exists"}
    spec = (await api.made(api.path("pods"), a_bare_pod(tolerations=[own]))).body["spec"]
    added = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    assert spec["tolerations"] == [own, *added]


async def test_a_pod_that_tolerates_everything_gets_no_more_tolerations(api: Api) -> None:
    spec = (await api.made(api.path("pods"), a_bare_pod(tolerations=[{"operator": "Exists"}]))).body["spec"]
    assert spec["tolerations"] == [{"operator": "Exists"}]


async def test_requests_default_to_limits(api: Api) -> None:
    pod = _with_resources(limits={"cpu": "2", "memory": "1Gi"}, requests={"cpu": "500m"})
    [container] = (await api.made(api.path("pods"), pod)).body["spec"]["containers"]
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        pytest.param({}, "BestEffort", id="nothing"),
        pytest.param(
            {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}, "BestEffort", id="device"
        ),
        pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="requests"),
        pytest.param({"limits": {"cpu": "1"}}, "Burstable", id="cpu-only"),
        pytest.param({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed", id="limits"),
        pytest.param(
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}, "Burstable", id="less-than-limits"
        ),
    ],
)
async def test_quality_of_service_follows_from_resources(api: Api, resources: Any, quality: str) -> None:
    answer = await api.made(api.path("pods"), _with_resources(**resources))
    assert answer.body["status"]["qosClass"] == quality


@pytest.mark.parametrize("value", ["1xx", "", "1 Gi", "one", "1.2.3", {}])
async def test_a_quantity_that_cannot_be_read_is_a_bad_request(api: Api, value: Any) -> None:
    answer = await api.post(api.path("pods"), _with_resources(requests={"cpu": value}))
    assert (answer.status, answer.reason) == (400, "BadRequest")


@pytest.mark.parametrize("value", ["1", "100m", "0.5", "1e3", "2Ki", 2, "1500u", "+1", ".5"])
async def test_quantities_of_every_form_are_accepted(api: Api, value: Any) -> None:
    answer = await api.post(api.path("pods"), _with_resources(requests={"memory": value}))
    assert answer.status == 201


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        pytest.param(
            _with_resources(requests={"cpu": "-1"}), "spec.containers[0].resources.requests[cpu]", id="negative"
        ),
        pytest.param(
            _with_resources(requests={"cpu": "2"}, limits={"cpu": "1"}),
            "spec.containers[0].resources.requests",
            id="above-the-limit",
        ),
        pytest.param(a_bare_pod(containers=[]), "spec.containers", id="no-containers"),
        pytest.param(a_bare_pod(containers=[{"image": "x"}]), "spec.containers[0].name", id="no-container-name"),
        pytest.param(a_bare_pod(containers=[{"name": "x"}]), "spec.containers[0].image", id="no-image"),
        pytest.param(
            a_bare_pod(containers=[{"name": "x", "image": "x"}] * 2), "spec.containers[1].name", id="same-name"
        ),
        pytest.param(a_bare_pod(restartPolicy="Sometimes"), "spec.restartPolicy", id="restart-policy"),
    ],
)
async def test_a_pod_that_breaks_a_rule_is_invalid(api: Api, pod: dict[str, Any], field: str) -> None:
    answer = await api.post(api.path("pods"), pod)
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.fields == [field]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"nodeSelector": ["a"]}, id="node-selector"),
        pytest.param({"nodeSelector": {"a": 1}}, id="node-selector-value"),
        pytest.param({"tolerations": {"key": "a"}}, id="tolerations"),
        pytest.param({"tolerations": [{"tolerationSeconds": "5"}]}, id="toleration-seconds"),
        pytest.param({"affinity": "close"}, id="affinity"),
        pytest.param({"affinity": {"nodeAffinity": []}}, id="node-affinity"),
        pytest.param({"priority": "high"}, id="priority"),
        pytest.param({"priority": 1.5}, id="priority-fraction"),
        pytest.param({"schedulerName": 5}, id="scheduler"),
        pytest.param({"containers": {"name": "a"}}, id="containers"),
        pytest.param({"containers": ["a"]}, id="container"),
        pytest.param({"overhead": {"cpu": "x"}}, id="overhead"),
        pytest.param({"hostNetwork": "yes"}, id="host-network"),
    ],
)
async def test_fields_that_schedulers_read_must_have_their_types(api: Api, spec: dict[str, Any]) -> None:
    answer = await api.post(api.path("pods"), a_bare_pod(**spec))
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_null_is_the_same_as_absent(api: Api) -> None:
    answer = await api.made(api.path("pods"), a_bare_pod(nodeSelector=None, schedulerName=None, priority=None))
    assert "nodeSelector" not in answer.body["spec"]
    assert answer.body["spec"]["schedulerName"] == "default-scheduler"


async def test_priority_and_preemption_come_from_the_class(api: Api) -> None:
    name = unique("class")
    await api.made(CLASSES, {"metadata": {"name": name}, "value": 4321, "preemptionPolicy": "Never"})
    spec = (await api.until_answered(api.path("pods"), a_bare_pod(priorityClassName=name), 201)).body["spec"]
    await api.delete(f"{CLASSES}/{name}")
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == (name, 4321, "Never")


async def test_the_priority_classes_of_the_system_exist(api: Api) -> None:
    for name, value in (("system-cluster-critical", 2000000000), ("system-node-critical", 2000001000)):
        assert (await api.get(f"{CLASSES}/{name}")).body["value"] == value


async def test_an_unknown_priority_class_is_forbidden(api: Api) -> None:
    answer = await api.post(api.path("pods"), a_bare_pod(priorityClassName="nosuch"))
    assert (answer.status, answer.reason) == (403, "Forbidden")
    assert answer.message == 'pods "a" is forbidden: no PriorityClass with name nosuch was found'


async def test_a_priority_without_its_class_is_forbidden(api: Api) -> None:
    answer = await api.post(api.path("pods"), a_bare_pod(priority=7))
    assert (answer.status, answer.reason) == (403, "Forbidden")


async def test_the_value_of_a_priority_class_is_fixed(api: Api) -> None:
    name = unique("class")
    await api.made(CLASSES, {"metadata": {"name": name}, "value": 7})
    answer = await api.patch(f"{CLASSES}/{name}", {"value": 8})
    await api.delete(f"{CLASSES}/{name}")
    assert (answer.status, answer.reason, answer.fields) == (422, "Invalid", ["value"])


async def test_a_gated_pod_has_a_condition_and_gates_can_only_be_removed(api: Api) -> None:
    answer = await api.made(api.path("pods"), a_bare_pod(schedulingGates=[{"name": "example.com/wait"}]))
    [condition] = answer.body["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")
    more = {"spec": {"schedulingGates": [{"name": "example.com/wait"}, {"name": "example.com/more"}]}}
    assert (await api.patch(api.path("pods", "a"), more)).status == 422
    freed = await api.patch(api.path("pods", "a"), {"spec": {"schedulingGates": None}})
    assert freed.status == 200
    assert "schedulingGates" not in freed.body["spec"]


async def test_tolerations_may_be_added_but_not_removed(api: Api) -> None:
    spec = (await api.made(api.path("pods"), a_bare_pod())).body["spec"]
    added = [*spec["tolerations"], {"key": "example.com/new", "operator": "Exists"}]
    assert (await api.patch(api.path("pods", "a"), {"spec": {"tolerations": added}})).status == 200
    answer = await api.patch(api.path("pods", "a"), {"spec": {"tolerations": []}})
    assert (answer.status, answer.reason) == (422, "Invalid")
