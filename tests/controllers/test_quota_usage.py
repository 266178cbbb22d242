"""What pods use in the words of a quota."""

from fractions import Fraction
from typing import Any

import msgspec
import pytest

from volcano_py.api.core import PodSpec
from volcano_py.api.quantity import QuantityError
from volcano_py.controllers.quota_usage import admitted, quota_usage, usage_sum, usage_text
from volcano_py.testing import a_pod


def a_spec(requests: dict[str, Any] | None = None, limits: dict[str, Any] | None = None, **more: Any) -> PodSpec:
    container = {"name": "main", "resources": {"requests": requests or {}, "limits": limits or {}}}
    return msgspec.convert({"containers": [container], **more}, PodSpec)


def texts(spec: PodSpec, pods: int = 1) -> dict[str, str]:
    return usage_text(usage_sum([(quota_usage(spec), pods)]))


def test_requests_are_listed_by_resource_name_and_quota_name_with_a_pod_count() -> None:
    assert texts(a_pod(cpu="50m").spec, 3) == {
        "count/pods": "3",
        "cpu": "150m",
        "pods": "3",
        "requests.cpu": "150m",
    }


def test_limits_of_compute_resources_are_listed_and_do_not_become_requests() -> None:
    limits = {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "2Gi", "nvidia.com/gpu": "1"}

    assert texts(a_spec({"nvidia.com/gpu": "1"}, limits), 2) == {
        "count/pods": "2",
        "limits.cpu": "2",
        "limits.ephemeral-storage": "4Gi",
        "limits.memory": "2Gi",
        "nvidia.com/gpu": "2",
        "pods": "2",
        "requests.nvidia.com/gpu": "2",
    }


@pytest.mark.parametrize(
    ("requests", "members", "expected"),
    [
        pytest.param({"cpu": 2}, 2, {"cpu": "4"}, id="whole-cores"),
        pytest.param({"memory": "512Mi"}, 4, {"memory": "2Gi", "requests.memory": "2Gi"}, id="binary-memory"),
        pytest.param({"memory": "1500M"}, 1, {"memory": "1500000000"}, id="decimal-memory"),
        pytest.param({"nvidia.com/gpu": 1}, 8, {"nvidia.com/gpu": "8", "requests.nvidia.com/gpu": "8"}, id="extended"),
        pytest.param({"hugepages-2Mi": "4Mi"}, 2, {"hugepages-2Mi": "8Mi", "requests.hugepages-2Mi": "8Mi"}, id="huge"),
        pytest.param({"ephemeral-storage": "1Gi"}, 2, {"ephemeral-storage": "2Gi"}, id="storage"),
        pytest.param({"cpu": "100m", "memory": "3"}, 3, {"cpu": "300m", "memory": "9"}, id="small"),
        pytest.param({"cpu": "100500u"}, 2, {"cpu": "201m"}, id="finer-than-counted-but-exact-in-sum"),
        pytest.param({"cpu": "100u"}, 1, {"cpu": "1m"}, id="rounded-up"),
    ],
)
def test_amounts_are_multiplied_exactly(requests: dict[str, str], members: int, expected: dict[str, str]) -> None:
    found = texts(a_spec(requests), members)

    assert {name: found[name] for name in expected} == expected


def test_init_containers_and_overhead_count_as_in_kubernetes() -> None:
    start = {"name": "start", "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}}
    spec = a_spec({"cpu": "1"}, {"cpu": "2"}, initContainers=[start], overhead={"cpu": "500m", "memory": "1Mi"})

    used = quota_usage(spec)

    assert used["cpu"] == used["requests.cpu"] == Fraction(7, 2)
    assert used["limits.cpu"] == Fraction(9, 2)
    assert used["memory"] == 2**20
    assert "limits.memory" not in used


def test_sums_go_over_pods_of_different_kinds() -> None:
    small, large = quota_usage(a_spec({"cpu": "50m"})), quota_usage(a_spec({"cpu": "100m", "memory": "1Gi"}))

    total = usage_text(usage_sum([(small, 2), (large, 1)]))

    assert total == {
        "count/pods": "3",
        "cpu": "200m",
        "memory": "1Gi",
        "pods": "3",
        "requests.cpu": "200m",
        "requests.memory": "1Gi",
    }


def test_no_pods_use_nothing() -> None:
    assert texts(a_pod(cpu=1).spec, 0) == {}


def test_an_admitted_template_requests_what_it_limits() -> None:
    spec = a_spec({"cpu": "1"}, {"cpu": "2", "memory": "1Gi"})

    used = quota_usage(admitted(spec))

    assert (used["cpu"], used["memory"]) == (1, 2**30)
    assert "memory" not in quota_usage(spec)


def test_a_quantity_that_cannot_be_read_is_named() -> None:
    with pytest.raises(QuantityError, match=r"spec\.containers\[main\]\.resources\.requests\[cpu\]"):
        quota_usage(a_pod(cpu="a lot").spec)
    with pytest.raises(QuantityError, match=r"spec\.containers\[main\]\.resources\.limits\[memory\]"):
        quota_usage(a_spec(limits={"memory": "a lot"}))
