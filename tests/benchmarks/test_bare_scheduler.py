"""The bare scheduler of the benchmark of steady load."""

import pytest

from benchmarks.steady.bare import Slots
from benchmarks.steady.load import SLOTS_PER_NODE
from volcano_py.model.objects import TaskRef


def pod(name: str) -> TaskRef:
    return TaskRef("steady", name, f"uid-{name}")


def gang(slots: Slots, name: str, size: int) -> list[str]:
    for index in range(size):
        slots.add_waiting(name, pod(f"{name}-{index}"))
    slots.add_group(name, size)
    return [f"{name}-{index}" for index in range(size)]


@pytest.fixture
def slots() -> Slots:
    found = Slots()
    for index in range(SLOTS_PER_NODE):
        found.hold(f"uid-held-{index}", "a")
    found.add_node("a")
    found.add_node("b")
    return found


def bound(slots: Slots) -> dict[str, str]:
    return {bind.task.name: bind.node for bind in slots.decide()}


def test_a_gang_is_bound_as_a_whole_where_slots_are_free(slots: Slots) -> None:
    names = gang(slots, "one", SLOTS_PER_NODE)
    assert bound(slots) == dict.fromkeys(names, "b")
    assert bound(slots) == {}


def test_a_gang_waits_until_all_its_pods_and_its_group_are_there(slots: Slots) -> None:
    slots.add_group("one", 2)
    slots.add_waiting("one", pod("one-0"))
    assert bound(slots) == {}
    slots.add_waiting("one", pod("one-0"))  # the watch shows it again
    assert bound(slots) == {}
    slots.add_waiting("one", pod("one-1"))
    assert bound(slots) == {"one-0": "b", "one-1": "b"}


def test_the_oldest_gang_that_fits_comes_first(slots: Slots) -> None:
    gang(slots, "large", SLOTS_PER_NODE + 1)
    gang(slots, "first", SLOTS_PER_NODE - 1)
    gang(slots, "second", 2)
    gang(slots, "third", 1)
    assert {name.rpartition("-")[0] for name in bound(slots)} == {"first", "third"}


def test_a_pod_that_ends_leaves_its_slot_once(slots: Slots) -> None:
    gang(slots, "one", SLOTS_PER_NODE)
    slots.decide()
    names = gang(slots, "two", 2)
    slots.release("uid-held-0")
    slots.release("uid-held-0")
    assert bound(slots) == {}
    slots.release("uid-one-0")
    assert bound(slots) == dict(zip(names, ("a", "b"), strict=True))


@pytest.mark.parametrize("decided", [True, False])
def test_a_pod_that_is_shown_again_does_not_wait_twice(slots: Slots, decided: bool) -> None:
    gang(slots, "one", 1)
    if decided:
        slots.decide()
    gang(slots, "one", 1)
    assert len(slots.decide()) == (not decided)
