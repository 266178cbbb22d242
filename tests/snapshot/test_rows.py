import numpy as np

from volcano_py.snapshot.rows import RowTable, grown


def test_a_free_row_is_used_again_before_a_new_one() -> None:
    table: RowTable[str] = RowTable()
    assert [table.add(key) for key in "abc"] == [0, 1, 2]

    assert table.remove("b") == 1

    assert "b" not in table
    assert table.get("b") is None
    assert table.add("d") == 1
    assert (len(table), table.height) == (3, 3)
    assert dict(table.items()) == {"a": 0, "c": 2, "d": 1}


def test_an_array_with_room_is_left_as_it_is() -> None:
    array = np.zeros((2, 5))

    assert grown(array, 5) is array


def test_an_array_without_room_at_least_doubles_and_keeps_what_it_has() -> None:
    array = np.arange(100).reshape(1, 100)

    wide = grown(array, 101, fill=-1)

    assert wide.shape == (1, 200)
    assert wide.dtype == array.dtype
    assert np.array_equal(wide[:, :100], array)
    assert (wide[:, 100:] == -1).all()
