"""Every rule about queues refuses what is wrong and takes what is right."""

from typing import Any

import pytest

from tests.admission.asking import create, delete, queue, update
from volcano_py.admission.contract import Options

PATH = "/queues/validate"
HIERARCHY, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"


def placed(path: str, weights: str, name: str = "q") -> dict[str, Any]:
    return queue(name, annotations={HIERARCHY: path, WEIGHTS: weights})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"deserved": {"cpu": "1"}, "guarantee": {"cpu": "2"}},
            'requestBody.spec.deserved.cpu: Invalid value: "1": deserved[cpu]=1 must be >= guarantee[cpu]=2',
        ),
        (
            {"guarantee": {"cpu": "2"}},
            'requestBody.spec.deserved.cpu: Invalid value: "<nil>": deserved[cpu] must be >= guarantee[cpu]=2',
        ),
        (
            {"deserved": {"cpu": "3"}, "capability": {"cpu": "2500m"}},
            'requestBody.spec.deserved.cpu: Invalid value: "3": deserved[cpu]=3 must be <= capability[cpu]=2500m',
        ),
        (
            {"capability": {"memory": "-1Gi"}},
            'requestBody.spec.capability.memory: Invalid value: "-1Gi": must be greater than or equal to 0',
        ),
        (
            {"capability": {"nvidia.com/gpu": "500m"}},
            'requestBody.spec.capability.nvidia.com/gpu: Invalid value: "500m": must be an integer',
        ),
        (
            {"capability": {"cpu": "-1"}, "deserved": {"pods": "0.5"}},
            '[requestBody.spec.capability.cpu: Invalid value: "-1": must be greater than or equal to 0, '
            'requestBody.spec.deserved.pods: Invalid value: "0.5": must be an integer]',
        ),
    ],
)
def test_amounts_that_contradict_each_other(spec: dict[str, Any], message: str) -> None:
    assert create(PATH, queue("q", **spec)).message == message


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"deserved": {"cpu": "2"}, "guarantee": {"cpu": "2000m"}, "capability": {"cpu": "2"}},
        {"deserved": {"cpu": "2"}, "capability": {"memory": "1Gi"}},
        {"capability": {"cpu": "1.5", "nvidia.com/gpu": 8}},
    ],
)
def test_amounts_that_agree(spec: dict[str, Any]) -> None:
    assert create(PATH, queue("q", **spec)).message == ""


@pytest.mark.parametrize(("state", "allowed"), [("", True), ("Open", True), ("Closed", True), ("Ajar", False)])
def test_states_of_a_new_queue(state: str, allowed: bool) -> None:
    assert create(PATH, queue("q", state)).allowed == allowed


def test_a_queue_that_is_closing_may_be_changed_otherwise() -> None:
    assert update(PATH, queue("q", "Closing", weight=2), queue("q", "Closing")).allowed
    assert not update(PATH, queue("q", "Closing"), queue("q", "Open")).allowed


@pytest.mark.parametrize(
    ("path", "weights", "detail"),
    [
        ("root/a", "1/2/3", f"{HIERARCHY} must have the same length with {WEIGHTS}"),
        ("root/a", "1/x", 'x in the 1/x is invalid number: strconv.ParseFloat: parsing "x": invalid syntax'),
        ("root/a", "1/0", "0 in the 1/0 must be larger than 0"),
        ("root/a", "1/-2", "-2 in the 1/-2 must be larger than 0"),
        ("root/eng", "1/2", "root/eng is not allowed to be in the sub path of root/eng/dev of queue other"),
    ],
)
def test_places_by_annotation_that_are_wrong(path: str, weights: str, detail: str) -> None:
    verdict = create(PATH, placed(path, weights), [placed("root/eng/dev", "1/2/3", "other")])

    assert detail in verdict.message
    assert verdict.message.startswith("requestBody.metadata.annotations: Invalid value: ")


@pytest.mark.parametrize(
    ("path", "weights"), [("root/eng/dev/a", "1/2/3/4"), ("root/en", "1/2.5"), ("root/a", "1/1e3")]
)
def test_places_by_annotation_that_are_right(path: str, weights: str) -> None:
    assert create(PATH, placed(path, weights), [placed("root/eng/dev", "1/2/3", "other")]).message == ""


# Place

TREE = [queue("a", parent="root"), queue("b", parent="a"), queue("c", parent="b")]


@pytest.mark.parametrize(
    ("parent", "message"),
    [
        ("q", "queue q cannot use itself as parent"),
        ("gone", "failed to get parent queue gone of queue q: queue.scheduling.volcano.sh"),
        ("c", "queue q exceeds the maximum allowed depth of 3"),
        ("busy", "queue busy cannot be the parent queue of queue q because it has allocated Pods: 3"),
    ],
)
def test_parents_that_cannot_be(parent: str, message: str) -> None:
    found = create(PATH, queue("q", parent=parent), [*TREE, queue("busy", pods=3)], Options(max_queue_depth=3))

    assert message in found.message


@pytest.mark.parametrize("parent", ["", "root", "a", "b", "full"])
def test_parents_that_can_be(parent: str) -> None:
    existing = [*TREE, queue("full", pods=3), queue("sibling", parent="full")]

    assert create(PATH, queue("q", parent=parent), existing, Options(max_queue_depth=3)).message == ""


def test_a_queue_does_not_move_below_itself() -> None:
    found = update(PATH, queue("a", parent="c"), TREE[0], TREE)

    assert "queue a cannot use its own descendant c as parent" in found.message


def test_a_place_is_judged_only_when_it_changes() -> None:
    stuck = queue("q", parent="gone")

    assert update(PATH, queue("q", parent="gone", weight=3), stuck, [stuck]).allowed


# Root


@pytest.mark.parametrize("field", ["capability", "deserved", "guarantee"])
def test_the_root_keeps_its_amounts(field: str) -> None:
    new = queue("root", **{"deserved": {"cpu": "1"}, field: {"cpu": "1"}})

    assert update(PATH, new, queue("root")).message == (
        "root queue's resource attributes (capability, deserved, guarantee) cannot be modified"
    )
    assert update(PATH, new, queue("root"), options=Options(protect_root_queue=False)).message == ""


def test_the_root_may_change_otherwise() -> None:
    assert update(
        PATH, queue("root", weight=5, capability={"cpu": "1"}), queue("root", capability={"cpu": "1000m"})
    ).allowed


# Relatives


def test_a_capability_above_that_of_an_ancestor() -> None:
    tree = [queue("a", capability={"cpu": "10", "memory": "4Gi"}), queue("b", parent="a", capability={"cpu": "5"})]

    def message(**capability: str) -> str:
        return create(PATH, queue("q", parent="b", capability=capability), tree).message

    assert message(cpu="6") == "queue q capability[cpu]=6 exceeds its ancestor's capability=5"
    assert message(memory="5Gi") == "queue q capability[memory]=5Gi exceeds its ancestor's capability=4Gi"
    assert message(cpu="5500m", memory="4Gi").endswith("capability[cpu]=5500m exceeds its ancestor's capability=5")
    assert message(cpu="5", memory="4Gi", pods="9") == ""


def test_children_have_no_more_than_their_parent() -> None:
    tree = [
        queue("a", deserved={"cpu": "10", "memory": "8Gi"}, guarantee={"cpu": "4"}),
        queue("b", parent="a", deserved={"cpu": "6"}, guarantee={"cpu": "3"}),
    ]

    def message(**spec: Any) -> str:
        return create(PATH, queue("q", parent="a", **spec), tree).message

    assert message(deserved={"cpu": "4"}, guarantee={"cpu": "1"}) == ""
    assert message(deserved={"cpu": "5"}) == (
        "parent queue a validation failed: sum of children's deserved (cpu 11000.00, memory 0.00) exceeds parent's "
        "deserved limit (cpu 10000.00, memory 8589934592.00)"
    )
    assert "sum of children's guarantee (cpu 5000.00" in message(deserved={"cpu": "2"}, guarantee={"cpu": "2"})
    assert "sum of children's deserved" in message(deserved={"nvidia.com/gpu": "1"}), "what a parent lacks counts as 0"


def test_children_of_root_have_what_they_like() -> None:
    assert create(
        PATH, queue("q", parent="root", deserved={"cpu": "100"}), [queue("root", deserved={"cpu": "1"})]
    ).allowed


def test_a_queue_keeps_enough_for_those_below() -> None:
    old = queue("a", capability={"cpu": "10"}, deserved={"cpu": "8"})
    below = [
        queue("b", parent="a", deserved={"cpu": "4"}),
        queue("c", parent="b", capability={"cpu": "9"}),
        queue("d", parent="a", deserved={"cpu": "4"}),
    ]

    def message(**spec: Any) -> str:
        return update(PATH, queue("a", **spec), old, [old, *below]).message

    assert message(capability={"cpu": "9"}, deserved={"cpu": "8"}) == ""
    assert message(capability={"memory": "1Gi"}, deserved={"cpu": "8"}) == ""
    assert message(capability={"cpu": "8"}, deserved={"cpu": "8"}) == (
        "queue a capability[cpu]=8 is smaller than its descendants' max capability=9"
    )
    assert message(deserved={"cpu": "7"}).startswith(
        "queue a validation failed: sum of children's deserved (cpu 8000.00"
    )


def test_relatives_are_judged_only_when_amounts_change() -> None:
    over = queue("q", parent="a", deserved={"cpu": "5"})
    tree = [queue("a"), over]

    assert update(PATH, queue("q", parent="a", deserved={"cpu": "5000m"}, weight=2), over, tree).allowed
    assert not update(PATH, queue("q", parent="a", deserved={"cpu": "6"}), over, tree).allowed


def test_a_circle_of_parents_ends() -> None:
    circle = [queue("a", parent="b"), queue("b", parent="a")]

    assert not create(PATH, queue("q", parent="a", capability={"cpu": "1"}), circle).allowed
    assert update(PATH, queue("a", parent="b", capability={"cpu": "1"}), circle[0], circle).allowed


# Deletion


@pytest.mark.parametrize("name", ["default", "root"])
def test_queues_that_stay(name: str) -> None:
    assert delete(PATH, name, [queue(name)]).message == f"`{name}` queue can not be deleted"


def test_deletions_that_are_refused() -> None:
    tree = [queue("a"), queue("c", parent="a"), queue("b", parent="a"), queue("busy", pods=2)]

    assert delete(PATH, "a", tree).message == "queue a can not be deleted because it has 2 child queues: b, c"
    assert delete(PATH, "gone", tree).message == 'queue.scheduling.volcano.sh "gone" not found'
    assert delete(PATH, "busy", tree).allowed
    assert delete(PATH, "busy", tree, Options(check_allocated_pods=True)).message == (
        "queue busy cannot be deleted because it has allocated Pods: 2"
    )
    assert delete(PATH, "b", tree).allowed


# Mutation


def patch(obj: dict[str, Any]) -> list[Any]:
    return list(create("/queues/mutate", obj).patch)


def test_a_queue_gets_every_default() -> None:
    bare = {"metadata": {"name": "q", "annotations": {HIERARCHY: "eng/dev", WEIGHTS: "2/8"}}}

    assert patch(bare) == [
        {"op": "add", "path": "/metadata/annotations/volcano.sh~1hierarchy", "value": "root/eng/dev"},
        {"op": "add", "path": "/metadata/annotations/volcano.sh~1hierarchy-weights", "value": "1/2/8"},
        {"op": "add", "path": "/spec", "value": {}},
        {"op": "add", "path": "/spec/reclaimable", "value": True},
        {"op": "add", "path": "/spec/weight", "value": 1},
    ]


def test_a_queue_keeps_what_it_has() -> None:
    assert patch({**placed("root/eng", "1/2"), "spec": {"weight": 5, "reclaimable": False}}) == []
    assert patch({"metadata": {"annotations": {HIERARCHY: "eng"}}, "spec": {"weight": 1, "reclaimable": True}}) == []
