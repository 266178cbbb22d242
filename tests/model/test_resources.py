from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano_py.api.quantity import QuantityError
from volcano_py.model.resources import (
    CPU_ROW,
    MEMORY_ROW,
    PODS_ROW,
    Amounts,
    FitTest,
    ResourceRegistry,
    amount_of,
    amounts_of,
    even,
    format_amount,
    is_empty,
    is_scalar,
)

GPU = "nvidia.com/gpu"


def test_cpu_memory_and_pods_have_the_first_rows_of_every_registry() -> None:
    registry = ResourceRegistry([GPU])

    assert registry.names == ("cpu", "memory", "pods", GPU)
    assert (registry.row("cpu"), registry.row("memory"), registry.row("pods")) == (CPU_ROW, MEMORY_ROW, PODS_ROW)


def test_a_row_never_changes_once_it_is_given() -> None:
    registry = ResourceRegistry()
    first = registry.row(GPU)
    registry.row("a.example/first-in-the-alphabet")

    assert registry.row(GPU) == first
    assert registry.find(GPU) == first


def test_looking_for_a_resource_does_not_register_it() -> None:
    registry = ResourceRegistry()

    assert registry.find(GPU) is None
    assert len(registry) == 3


def test_a_vector_leaves_out_what_was_never_seen() -> None:
    registry = ResourceRegistry([GPU])

    assert registry.vector({"memory": 5.0, GPU: 2.0, "unknown": 9.0}).tolist() == [0, 5, 0, 2]


def test_a_frozen_registry_does_not_grow_with_its_origin() -> None:
    registry = ResourceRegistry()
    frozen = registry.frozen()
    registry.row(GPU)

    assert frozen.names == ("cpu", "memory", "pods")


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        (GPU, True),
        ("ephemeral-storage", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-csi-x", True),
        ("kubernetes.io/odd", True),
        ("requests.nvidia.com/gpu", False),
        ("count/pods", False),
        ("services", False),
        ("cpu", False),
    ],
)
def test_quota_names_are_not_resources_of_a_pod(name: str, counted: bool) -> None:
    assert is_scalar(name) is counted


@pytest.mark.parametrize(
    ("name", "value", "amount"),
    [
        pytest.param("cpu", Fraction(1, 2), 500.0, id="cpu-in-thousandths"),
        pytest.param("cpu", Fraction(1, 2000), 1.0, id="cpu-rounded-up"),
        pytest.param("memory", Fraction(3, 2), 2.0, id="memory-in-bytes-rounded-up"),
        pytest.param("pods", Fraction(110), 110.0, id="pods-in-pods"),
        pytest.param(GPU, Fraction(2), 2000.0, id="others-in-thousandths"),
        pytest.param("services", Fraction(2), None, id="not-counted"),
    ],
)
def test_amounts_are_whole_numbers_of_their_own_unit(name: str, value: Fraction, amount: float | None) -> None:
    assert amount_of(name, value) == amount


def test_a_resource_list_becomes_amounts_of_counted_resources() -> None:
    assert amounts_of({"cpu": "250m", "memory": "1Ki", "count/pods": 3}, "x") == {"cpu": 250.0, "memory": 1024.0}


def test_a_quantity_that_cannot_be_read_is_named_with_its_field() -> None:
    with pytest.raises(QuantityError, match=r"spec\.x\[cpu\]: 'many'"):
        amounts_of({"cpu": "many"}, "spec.x")


@pytest.mark.parametrize(
    ("request_", "available", "fits"),
    [
        pytest.param([1000, 0, 1], [1000, 0, 1], True, id="equal-amounts-fit"),
        pytest.param([1000, 0, 1], [999.95, 0, 1], True, id="closer-than-epsilon-is-equal"),
        pytest.param([1000, 0, 1], [999.9, 0, 1], False, id="epsilon-itself-is-not"),
        pytest.param([1000, 0, 1], [2000, -1, 1], False, id="negative-memory-keeps-everybody-away"),
        pytest.param([0, 0, 1], [-1, 5, 1], False, id="negative-cpu-keeps-everybody-away"),
        pytest.param([1000, 0, 1], [2000, 5, 0], False, id="pods-count"),
        pytest.param([1000, 0, 1, 0], [2000, 5, 9, -3], True, id="a-negative-gpu-does-not-matter-to-others"),
        pytest.param([1000, 0, 1, 5], [2000, 5, 9, 4], False, id="too-few-gpus"),
        pytest.param([1000, 0, 1, 0, 5], [2000, 5, 9, -1, 5], True, id="rows-with-a-gap"),
    ],
)
def test_a_request_fits_if_every_amount_is_available(request_: list[float], available: list[float], fits: bool) -> None:
    test = FitTest(np.array(request_, dtype=float))

    assert test.fits(np.array(available, dtype=float)[:, None]).tolist() == [fits]


@pytest.mark.parametrize("n_nodes", [0, 1, 15, 16, 48, 64, 65, 80])
def test_amounts_beside_nodes_are_the_same_for_every_number_of_nodes(n_nodes: int) -> None:
    amounts, nodes = Amounts(np.array([1.0, 20.0])), np.arange(2.0 * n_nodes).reshape(2, n_nodes)

    assert (nodes + amounts.beside(n_nodes)).tolist() == (nodes + np.array([[1.0], [20.0]])).tolist()
    assert n_nodes <= even(n_nodes) < n_nodes + 16


@pytest.mark.parametrize("amount", [2.0**40, 2.0**50, 2.0**50 + 4, 1.2e12 * 1000, 2.0**53 - 1, 2.0**56])
def test_equal_amounts_above_2_to_the_50_still_fit(amount: float) -> None:
    """A node of 1.2 TB of ephemeral storage has more than 2^50 thousandths of a byte."""
    test = FitTest(np.array([0, 0, 1, amount]))
    smaller = np.nextafter(amount, 0)

    assert test.fits(np.array([[0, 0, 1, amount]]).T).tolist() == [True]
    if amount - smaller >= 1 / 4:
        assert test.fits(np.array([[0, 0, 1, smaller]]).T).tolist() == [False]


def test_the_first_lacking_resource_is_named_per_node() -> None:
    test = FitTest(np.array([1000, 5, 1, 2], dtype=float))
    available = np.array([[1000, 5, 1, 2], [999, 4, 0, 0], [1000, 4, 0, 0], [1000, 5, 0, 2], [1000, 5, 1, 1]]).T

    assert test.first_lacking(available.astype(float)).tolist() == [-1, CPU_ROW, MEMORY_ROW, PODS_ROW, 3]


def test_the_first_lacking_resource_is_one_that_is_asked_for() -> None:
    test = FitTest(np.array([1000, 0, 1, 0, 2], dtype=float))

    assert test.first_lacking(np.array([[1000.0, 0, 1, -1, 1]]).T).tolist() == [4]


@settings(max_examples=60, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(0, 4), st.lists(st.integers(-3, 5), min_size=3, max_size=3)), min_size=3, max_size=6)
)
def test_fits_and_first_lacking_agree_with_a_loop(rows: list[tuple[int, list[int]]]) -> None:
    request = [asked for asked, _ in rows]
    available = [list(column) for _, column in rows]
    test = FitTest(np.array(request, dtype=float))
    expected = []
    for node in range(3):
        compared = [row for row, asked in enumerate(request) if asked > 0 or row in (CPU_ROW, MEMORY_ROW)]
        expected.append(next((row for row in compared if request[row] > available[row][node]), -1))

    assert test.first_lacking(np.array(available, dtype=float)).tolist() == expected
    assert test.fits(np.array(available, dtype=float)).tolist() == [row == -1 for row in expected]


@pytest.mark.parametrize(
    ("request_", "empty"), [([0, 0, 1], True), ([0.05, 0, 1], True), ([0.1, 0, 1], False), ([0, 0, 1, 1], False)]
)
def test_a_request_is_empty_if_only_the_pod_itself_counts(request_: list[float], empty: bool) -> None:
    assert is_empty(np.array(request_, dtype=float)) is empty


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [
        ("cpu", 500, "0.5"),
        ("cpu", 4000, "4"),
        ("memory", 512, "512"),
        ("memory", 2.5 * 1024**3, "2.5Gi"),
        ("memory", -(1024.0**2), "-1Mi"),
        ("memory", 3 * 1024.0**4, "3Ti"),
        ("ephemeral-storage", 1024 * 1000, "1Ki"),
        ("hugepages-2Mi", 2 * 1024**2 * 1000, "2Mi"),
        ("pods", 110, "110"),
        (GPU, 1500, "1.5"),
        ("example.com/bytes", 10 * 1024**3 * 1000, "10737418240"),
        ("cpu", 2_345_678_900, "2345679"),
    ],
)
def test_amounts_are_written_as_people_write_them(name: str, amount: float, text: str) -> None:
    assert format_amount(name, amount) == text


@settings(max_examples=200, derandomize=True)
@given(
    st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any),
    st.lists(st.one_of(st.integers(-3, 40), st.floats(-3, 40)), min_size=4, max_size=4),
)
def test_no_more_requests_fit_one_after_another_than_the_bound_says(asked: list[int], idle: list[float]) -> None:
    request, available = np.array(asked, dtype=float), np.array(idle, dtype=float)[:, None]
    test, count = FitTest(request), 0
    while count < 50 and test.fits(available - count * request[:, None])[0]:
        count += 1

    (most,) = test.most(available).tolist()
    assert count <= most
    whole = bool((available == np.floor(available)).all()) and (available[:2] > -1).all()
    assert not whole or count == min(most, 50)


def test_a_name_that_no_pod_can_have_is_no_resource_and_is_not_kept() -> None:
    """The minimum of a PodGroup may have names of a megabyte, and thousands of them would end the process."""
    name = f"{'d' * 253}/{'n' * 63}"

    assert amount_of(name, Fraction(1)) == 1000.0
    assert amount_of(f"{name}n", Fraction(1)) is None
