import pytest

from volcano_py.framework.state.tie_order import tie_order

NAMES = tuple(f"n{index}" for index in range(30))


def names(seed: int, of: tuple[str, ...] = NAMES) -> list[str]:
    order = tie_order(of, seed)
    return list(of) if order is None else [of[row] for row in order]


def test_without_a_seed_ties_go_by_name() -> None:
    assert tie_order(NAMES, 0) is None


@pytest.mark.parametrize("seed", [1, -1, 12345, 2**63 - 1, -(2**63)])
def test_a_seed_shuffles_every_node_once_and_always_alike(seed: int) -> None:
    assert sorted(names(seed)) == sorted(NAMES)
    assert names(seed) != list(NAMES)
    assert names(seed) == names(seed)


def test_another_seed_is_another_order() -> None:
    assert names(1) != names(2)


def test_a_node_that_goes_does_not_reshuffle_the_others() -> None:
    remaining = tuple(name for name in NAMES if name != "n7")

    assert names(5, remaining) == [name for name in names(5) if name != "n7"]


def test_the_order_depends_on_names_and_not_on_rows() -> None:
    assert names(5, NAMES[::-1]) == names(5)


def test_without_nodes_the_order_is_empty() -> None:
    assert names(5, ()) == []
