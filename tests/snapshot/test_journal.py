import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano_py.snapshot.journal import Journal


def blocks() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(12, dtype=float).reshape(3, 4), np.array([5, 6, 7, 8], dtype=np.int32)


def test_an_addition_to_one_column_is_taken_back() -> None:
    block, _ = blocks()
    journal = Journal()
    journal.add(block, 2, np.array([1.0, 2.0, 3.0]))
    assert block[:, 2].tolist() == [3, 8, 13]

    journal.rollback(0)

    assert np.array_equal(block, blocks()[0])


def test_an_addition_to_several_columns_is_taken_back() -> None:
    block, _ = blocks()
    journal = Journal()
    journal.add(block, np.array([3, 0]), np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]))
    assert block[:, 0].tolist() == [10, 24, 38]
    assert block[:, 3].tolist() == [4, 9, 14]

    journal.rollback(0)

    assert np.array_equal(block, blocks()[0])


def test_replaced_values_are_restored_newest_first() -> None:
    _, column = blocks()
    journal = Journal()
    journal.replace(column, 1, 60)
    journal.replace(column, np.array([0, 1]), np.array([50, 61]))
    journal.replace(column, 1, 62)
    assert column.tolist() == [50, 62, 7, 8]

    journal.rollback(0)

    assert column.tolist() == [5, 6, 7, 8]


def test_a_later_change_of_the_column_does_not_change_the_journal() -> None:
    """A slice would be a view of the column; what is remembered must be a copy."""
    _, column = blocks()
    journal = Journal()
    journal.replace(column, slice(0, 2), np.array([1, 2]))  # type: ignore[arg-type]
    column[:] = 0

    journal.rollback(0)

    assert column[:2].tolist() == [5, 6]


def test_checkpoints_nest() -> None:
    block, column = blocks()
    journal = Journal()
    outer = journal.checkpoint()
    journal.add(block, 0, np.ones(3))
    inner = journal.checkpoint()
    journal.add(block, 0, np.ones(3))
    journal.replace(column, 0, 9)

    journal.rollback(inner)
    assert block[:, 0].tolist() == [1, 5, 9]
    assert column[0] == 5

    journal.add(block, 1, np.ones(3))
    journal.rollback(outer)
    assert np.array_equal(block, blocks()[0])


def test_rolling_back_to_the_present_changes_nothing() -> None:
    block, _ = blocks()
    journal = Journal()
    journal.add(block, 0, np.ones(3))

    journal.rollback(journal.checkpoint())

    assert block[:, 0].tolist() == [1, 5, 9]


def test_nodes_are_noted_as_touched_when_they_change_and_when_they_change_back() -> None:
    block, _ = blocks()
    journal = Journal()
    journal.add_to_nodes(block, 2, np.ones(3))
    journal.add_to_nodes(block, np.array([0, 3]), np.ones((3, 2)))

    journal.rollback(0, block)

    assert journal.touched_since(0).tolist() == [2, 0, 3, 0, 3, 2]


def test_undo_of_another_block_touches_no_node() -> None:
    nodes, _ = blocks()
    jobs, _ = blocks()
    journal = Journal()
    journal.add(jobs, 1, np.ones(3))

    journal.rollback(0, nodes)

    assert journal.touched_since(0).tolist() == []


@pytest.mark.parametrize("old", [0.0, 1.0, 2.0**52 + 1])
def test_undo_restores_every_bit_of_a_whole_number(old: float) -> None:
    block = np.full((1, 1), old)
    before = block.tobytes()
    journal = Journal()
    journal.add(block, 0, np.array([-0.0]))
    journal.add(block, 0, np.array([-(2.0**51) + 7]))

    journal.rollback(0)

    assert block.tobytes() == before


columns = st.integers(0, 3)
steps = st.one_of(
    st.tuples(st.just("one"), columns, st.integers(-(2**40), 2**40)),
    st.tuples(st.just("many"), st.sets(columns, min_size=1).map(sorted), st.integers(-(2**40), 2**40)),
    st.tuples(st.just("replace"), columns, st.integers(-100, 100)),
    st.tuples(st.just("replace many"), st.lists(columns, min_size=1, max_size=4), st.integers(-100, 100)),
    st.tuples(st.just("checkpoint"), st.none(), st.none()),
    st.tuples(st.just("rollback"), st.none(), st.none()),
)


@settings(max_examples=80, derandomize=True)
@given(st.lists(steps, max_size=20))
def test_any_nesting_of_changes_is_undone_to_where_it_began(history: list[tuple[str, object, int]]) -> None:
    """Rows may repeat in a replacement: the value that stood there before any of it comes back."""
    block, column = blocks()
    journal = Journal()
    stack = [(journal.checkpoint(), block.copy(), column.copy())]
    for kind, where, amount in history:
        if kind == "one":
            journal.add(block, where, np.full(3, float(amount)))  # type: ignore[arg-type]
        elif kind == "many":
            rows = np.array(where)
            journal.add_to_nodes(block, rows, np.full((3, len(rows)), float(amount)))
        elif kind == "replace":
            journal.replace(column, where, amount)  # type: ignore[arg-type]
        elif kind == "replace many":
            journal.replace(column, np.array(where), amount)
        elif kind == "checkpoint":
            stack.append((journal.checkpoint(), block.copy(), column.copy()))
        else:
            checkpoint, old_block, old_column = stack[-1] if len(stack) == 1 else stack.pop()
            journal.rollback(checkpoint, block)
            assert block.tobytes() == old_block.tobytes()
            assert column.tobytes() == old_column.tobytes()
    while stack:
        checkpoint, old_block, old_column = stack.pop()
        journal.rollback(checkpoint, block)
        assert block.tobytes() == old_block.tobytes()
        assert column.tobytes() == old_column.tobytes()


def test_the_list_of_touched_nodes_can_be_read_from_any_position() -> None:
    block, journal = np.zeros((3, 5000)), Journal()
    for node in range(1500):
        journal.add_to_nodes(block, node, np.ones(3))
    journal.add_to_nodes(block, np.arange(5000), np.ones((3, 5000)))

    assert journal.n_touched == 6500
    assert journal.touched_since(1498).tolist() == [1498, 1499, *range(5000)]
    assert journal.touched_since(6500).tolist() == []
    assert journal.touched_last(2).tolist() == [4998, 4999]
    assert journal.touched_last(7000).tolist() == journal.touched_since(0).tolist()
