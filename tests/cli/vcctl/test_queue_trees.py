"""The queues below a queue, as `vcctl queue why` finds them."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from volcano_py.client import room


def queue(name: str, parent: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"parent": parent}}


class Counting(list[Mapping[str, Any]]):
    """Queues that count how often somebody goes through all of them."""

    passes = 0

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        self.passes += 1
        return super().__iter__()


TREE = (
    queue("root"),
    queue("a"),
    queue("b", "a"),
    queue("c", "b"),
    queue("lost", "gone"),
    queue("one", "two"),
    queue("two", "one"),
)


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        pytest.param("root", {"root", "a", "b", "c"}, id="no-parent-is-the-root"),
        pytest.param("a", {"a", "b", "c"}, id="children-of-children"),
        pytest.param("c", {"c"}, id="leaf"),
        pytest.param("one", {"one", "two"}, id="circle"),
        pytest.param("gone", set(), id="does-not-exist"),
    ],
)
def test_the_queues_below_a_queue(name: str, inside: set[str]) -> None:
    assert room.subtree(name, TREE) == inside


def test_thousands_of_queues_are_not_read_once_per_queue() -> None:
    queues = Counting(queue(f"q{number}", "root") for number in range(100))
    queues.append(queue("root"))

    assert len(room.subtree("root", queues)) == 101
    assert queues.passes <= 2
