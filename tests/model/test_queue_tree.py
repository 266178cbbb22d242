import pytest

from volcano_py.model.objects import QueueRecord
from volcano_py.model.queue_tree import QueueTree

# root -> ml -> (train -> big), (serve); root -> etl
SOUND = {"root": "", "ml": "root", "train": "ml", "serve": "ml", "big": "train", "etl": ""}


def tree(parents: dict[str, str]) -> tuple[QueueTree, dict[str, int]]:
    records = [QueueRecord(name, parent=parent) for name, parent in parents.items()]
    return QueueTree.of(records), {name: row for row, name in enumerate(parents)}


def ways(parents: dict[str, str]) -> dict[str, list[str]]:
    found, rows = tree(parents)
    names = list(rows)
    return {name: [names[row] for row in found.chains[rows[name]]] for name in names}


def problems(parents: dict[str, str]) -> dict[str, str]:
    found, rows = tree(parents)
    return {name: found.problems[row] for name, row in rows.items() if row in found.problems}


def test_a_queue_knows_its_way_to_the_root() -> None:
    assert ways(SOUND) == {
        "root": ["root"],
        "ml": ["ml", "root"],
        "train": ["train", "ml", "root"],
        "serve": ["serve", "ml", "root"],
        "big": ["big", "train", "ml", "root"],
        "etl": ["etl", "root"],
    }
    assert problems(SOUND) == {}


def test_queues_below_are_found_in_any_order() -> None:
    turned = dict(reversed(SOUND.items()))

    assert ways(turned) == ways(SOUND)


def test_without_a_root_object_the_top_queues_stand_side_by_side() -> None:
    assert ways({"a": "", "b": "root", "c": "b"}) == {"a": ["a"], "b": ["b"], "c": ["c", "b"]}


def test_which_queues_are_leaves() -> None:
    found, rows = tree(SOUND)

    assert [name for name, row in rows.items() if found.leaf[row]] == ["serve", "big", "etl"]


def test_a_parent_that_does_not_exist_sets_aside_the_queue_and_those_below_it_only() -> None:
    parents = {**SOUND, "lost": "nowhere", "below": "lost", "deeper": "below"}

    assert problems(parents) == {
        "lost": 'its parent "nowhere" does not exist: create it or change spec.parent',
        "below": 'it is below queue "lost", which is not in the queue tree: '
        'its parent "nowhere" does not exist: create it or change spec.parent',
        "deeper": 'it is below queue "lost", which is not in the queue tree: '
        'its parent "nowhere" does not exist: create it or change spec.parent',
    }
    assert {name: way for name, way in ways(parents).items() if name in SOUND} == ways(SOUND)


@pytest.mark.parametrize("first", ["a", "b", "c", "below"])
def test_a_cycle_of_parents_is_named_whichever_queue_is_looked_at_first(first: str) -> None:
    parents = {"a": "b", "b": "c", "c": "a", "below": "a"}
    found = problems({first: parents[first], **parents, **SOUND})

    assert found.keys() == parents.keys()
    assert all(" -> " in found[name] for name in parents)
    assert found["below"].startswith('it is below queue "a", which is not in the queue tree: its parents form a cycle')


def test_a_queue_that_is_its_own_parent() -> None:
    assert problems({"a": "a"}) == {"a": "its parents form a cycle (a -> a): change spec.parent of one of them"}


@pytest.mark.parametrize(
    ("left", "right", "branches", "common"),
    [
        pytest.param("big", "serve", ("train", "serve"), 2, id="below-one-parent"),
        pytest.param("big", "etl", ("ml", "etl"), 1, id="from-the-root-on"),
        pytest.param("serve", "etl", ("ml", "etl"), 1, id="a-leaf-beside-a-branch"),
        pytest.param("train", "big", ("train", "big"), 2, id="one-above-the-other"),
    ],
)
def test_the_branches_at_which_two_paths_part(left: str, right: str, branches: tuple[str, str], common: int) -> None:
    found, rows = tree(SOUND)

    assert found.branches(rows[left], rows[right]) == (rows[branches[0]], rows[branches[1]])
    assert found.branches(rows[right], rows[left]) == (rows[branches[1]], rows[branches[0]])
    assert found.common(rows[left], rows[right]) == common
