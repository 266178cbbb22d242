from typing import Any

import msgspec
import pytest

from volcano_py.api.core import Node
from volcano_py.cache.nodes import answers_changed, could_take_more, node_record
from volcano_py.model.objects import NodeRecord, TaintRecord
from volcano_py.testing import a_node


def test_a_record_holds_amounts_labels_and_sorted_taints() -> None:
    node = a_node(
        "n1",
        cpu="3800m",
        memory="8Gi",
        pods=20,
        gpu=2,
        ephemeral_storage="1Gi",
        labels={"zone": "a"},
        taints=["b=2:NoSchedule", "a:NoExecute", "a:NoSchedule"],
        unschedulable=True,
    )

    assert node_record(node) == NodeRecord(
        name="n1",
        allocatable={
            "cpu": 3800.0,
            "memory": 8.0 * 2**30,
            "pods": 20.0,
            "nvidia.com/gpu": 2000.0,
            "ephemeral-storage": 1000.0 * 2**30,
        },
        labels={"kubernetes.io/hostname": "n1", "zone": "a"},
        taints=(
            TaintRecord("a", "", "NoExecute"),
            TaintRecord("a", "", "NoSchedule"),
            TaintRecord("b", "2", "NoSchedule"),
        ),
        unschedulable=True,
        capacity=(3800.0, 8.0 * 2**30),
    )


@pytest.mark.parametrize(
    ("cpu", "memory", "beyond"),
    [
        pytest.param("1500", "1073741824.7", (1500.0, 2.0**30), id="amounts"),
        pytest.param("much", "-1", (0.0, 0.0), id="no-amounts"),
        pytest.param("nan", "1e300", (0.0, 0.0), id="impossible"),
    ],
)
def test_oversubscription_annotations_add_to_allocatable(cpu: str, memory: str, beyond: tuple[float, float]) -> None:
    node = a_node("n1", cpu=1, memory="1Gi")
    said = {"volcano.sh/oversubscription-cpu": cpu, "volcano.sh/oversubscription-memory": memory}
    node = msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, annotations=said))

    record = node_record(node)

    total = (1000.0 + beyond[0], 2.0**30 + beyond[1])
    assert (record.allocatable["cpu"], record.allocatable["memory"]) == record.capacity == total
    assert record.oversubscription == beyond


def test_a_node_that_is_being_deleted_is_closed() -> None:
    assert node_record(a_node(terminating=True)).closed == "the node is being deleted"


def test_a_quantity_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ValueError, match=r"^status\.allocatable\[cpu\]: 'four' is not a quantity: write a number"):
        node_record(a_node(cpu="four"))


@pytest.mark.parametrize(
    ("before", "after", "more", "again"),
    [
        pytest.param({}, {"cpu": 5}, True, False, id="grown"),
        pytest.param({}, {"cpu": 3}, False, False, id="shrunk"),
        pytest.param({}, {"gpu": 1}, True, False, id="new-resource"),
        pytest.param({}, {"unschedulable": True}, False, True, id="cordoned"),
        pytest.param({"unschedulable": True}, {}, True, False, id="uncordoned"),
        pytest.param({}, {"labels": {"zone": "b"}}, True, True, id="labelled"),
        pytest.param({"taints": ["a:NoSchedule"]}, {}, True, True, id="taint-removed"),
        pytest.param({}, {"terminating": True}, False, True, id="closed"),
        pytest.param({"terminating": True}, {}, True, False, id="open-again"),
    ],
)
def test_what_a_change_of_a_node_means(before: dict[str, Any], after: dict[str, Any], more: bool, again: bool) -> None:
    old, new = node_record(a_node(**before)), node_record(a_node(**after))

    assert could_take_more(old, new) is more
    assert answers_changed(old, new) is again


def test_a_new_node_is_helpful_unless_it_is_closed() -> None:
    assert could_take_more(None, node_record(a_node()))
    assert not could_take_more(None, node_record(a_node(terminating=True)))


def test_images_are_known_under_all_their_names() -> None:
    images = [{"names": ["web:1", "web@sha256:0123"], "sizeBytes": 5}, {"names": [], "sizeBytes": 7}]
    node = msgspec.convert({"metadata": {"name": "n1"}, "status": {"images": images}}, Node)

    assert node_record(node).images == {"web:1": 5, "web@sha256:0123": 5}
