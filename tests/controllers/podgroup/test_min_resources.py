"""What the minimum of a group asks for, as quantities."""

import pytest

from volcano_py.api.quantity import QuantityError
from volcano_py.controllers.podgroup.min_resources import min_resources
from volcano_py.testing import a_pod


def test_requests_are_listed_by_resource_name_and_quota_name_with_a_pod_count() -> None:
    assert min_resources(a_pod(cpu="50m").spec, 3) == {
        "cpu": "150m",
        "requests.cpu": "150m",
        "pods": "3",
        "count/pods": "3",
    }


@pytest.mark.parametrize(
    ("requests", "members", "expected"),
    [
        pytest.param({"cpu": 2}, 2, {"cpu": "4"}, id="whole-cores"),
        pytest.param({"memory": "512Mi"}, 4, {"memory": "2Gi"}, id="binary-memory"),
        pytest.param({"memory": "1500M"}, 1, {"memory": "1500000000"}, id="decimal-memory"),
        pytest.param({"gpu": 1}, 8, {"nvidia.com/gpu": "8"}, id="extended"),
        pytest.param({"ephemeral_storage": "1Gi"}, 2, {"ephemeral-storage": "2Gi"}, id="storage"),
        pytest.param({"cpu": "100m", "memory": "3"}, 3, {"cpu": "300m", "memory": "9"}, id="small"),
    ],
)
def test_amounts_are_multiplied_exactly(requests: dict[str, str], members: int, expected: dict[str, str]) -> None:
    found = min_resources(a_pod(**requests).spec, members)

    assert {name: found[name] for name in expected} == expected


def test_a_group_without_members_requests_nothing() -> None:
    assert min_resources(a_pod(cpu=1).spec, 0) == {}


def test_a_quantity_that_cannot_be_read_is_named() -> None:
    with pytest.raises(QuantityError, match=r"spec\.containers\[main\]\.resources\.requests\[cpu\]"):
        min_resources(a_pod(cpu="a lot").spec, 1)
