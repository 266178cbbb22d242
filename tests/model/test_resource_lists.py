import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano_py.model.resource_lists import NOTHING, UNLIMITED, Missing, ResourceList
from volcano_py.model.resources import ResourceRegistry

GPU = "nvidia.com/gpu"
NIC = "example.com/nic"
ZERO, INFINITE = Missing.ZERO, Missing.UNLIMITED

amounts = st.integers(0, 5).map(float)
lists = st.builds(ResourceList, amounts, amounts, st.dictionaries(st.sampled_from([GPU, NIC, "pods"]), amounts))


def test_a_list_is_made_of_amounts_by_name() -> None:
    made = ResourceList.of({"cpu": 500, "pods": 2, GPU: 0})

    assert made == ResourceList(cpu=500, scalars={"pods": 2, GPU: 0})
    assert [made.get(name) for name in ("cpu", "memory", "pods", GPU, NIC)] == [500, 0, 2, 0, 0]


def test_as_a_vector_what_is_not_named_has_the_value_asked_for() -> None:
    registry = ResourceRegistry([GPU, NIC])
    made = ResourceList(cpu=1, scalars={GPU: 0, "unknown.example.com/x": 7})

    assert made.vector(registry).tolist() == [1, 0, 0, 0, 0]
    assert made.vector(registry, missing=np.inf).tolist() == [1, 0, np.inf, 0, np.inf]
    assert made.named(registry).tolist() == [True, True, False, True, False]


@given(made=lists)
def test_a_list_comes_back_from_its_vector_and_mask(made: ResourceList) -> None:
    registry = ResourceRegistry([NIC, GPU])

    assert ResourceList.from_vector(registry, made.vector(registry), made.named(registry)) == made


def test_without_a_mask_a_vector_names_every_resource() -> None:
    registry = ResourceRegistry([GPU])

    made = ResourceList.from_vector(registry, np.array([1.0, 2.0, 3.0, 0.0]))

    assert made == ResourceList(1, 2, {"pods": 3, GPU: 0})


@pytest.mark.parametrize(
    ("made", "empty"),
    [
        pytest.param(NOTHING, True, id="nothing"),
        pytest.param(ResourceList(cpu=0.09), True, id="less-than-epsilon"),
        pytest.param(ResourceList(scalars={"pods": 3}), True, id="only-pods"),
        pytest.param(ResourceList(cpu=0.1), False, id="a-tenth"),
        pytest.param(ResourceList(scalars={GPU: 1}), False, id="a-scalar"),
    ],
)
def test_a_list_is_empty_if_it_has_nothing_but_pods(made: ResourceList, empty: bool) -> None:
    assert made.is_empty() == empty


@given(left=lists, right=lists)
def test_a_sum_minus_one_part_is_the_other(left: ResourceList, right: ResourceList) -> None:
    assert ((left + right) - right).equals(left)


def test_arithmetic_leaves_its_operands_as_they_are() -> None:
    left, right = ResourceList(1, 2, {GPU: 3}), ResourceList(4, 5, {NIC: 6})

    results = (left + right, left - right, left * 2, left.with_scalar(GPU, 1), left.maximum(right))

    assert (left, right) == (ResourceList(1, 2, {GPU: 3}), ResourceList(4, 5, {NIC: 6}))
    assert results == (
        ResourceList(5, 7, {GPU: 3, NIC: 6}),
        ResourceList(-3, -3, {GPU: 3, NIC: -6}),
        ResourceList(2, 4, {GPU: 6}),
        ResourceList(1, 2, {GPU: 4}),
        ResourceList(4, 5, {GPU: 3, NIC: 6}),
    )


def test_scalars_cannot_be_subtracted_from_a_list_without_scalars() -> None:
    assert ResourceList(cpu=2) - ResourceList(1, 0, {GPU: 0.05}) == ResourceList(cpu=1)


@given(left=lists, right=lists)
def test_the_exceeding_and_the_remaining_parts_add_up_to_the_whole(left: ResourceList, right: ResourceList) -> None:
    beyond = left.exceeding(right)

    assert (beyond + left.minimum(right, ZERO)).equals(left)
    assert all(amount > 0 for amount in beyond.scalars.values())


@given(left=lists, right=lists, missing=st.sampled_from(Missing))
def test_the_minimum_is_at_most_both_in_what_both_name(
    left: ResourceList, right: ResourceList, missing: Missing
) -> None:
    least = left.minimum(right, missing)

    assert least.at_most(left, ZERO)
    assert least.over(right, missing) == ()


@given(left=lists, right=lists)
def test_a_list_is_at_most_another_if_no_amount_is_greater(left: ResourceList, right: ResourceList) -> None:
    assert left.at_most(right, ZERO) == (left.over(right, ZERO) == ())


@pytest.mark.parametrize(
    ("left", "right", "zero", "unlimited"),
    [
        pytest.param({GPU: 1}, {}, False, True, id="without-limit-on-the-right"),
        pytest.param({}, {GPU: 1}, True, False, id="without-limit-on-the-left"),
        pytest.param({GPU: 1}, {GPU: 0.95}, True, True, id="within-epsilon"),
        pytest.param({"pods": 2}, {"pods": 1}, False, False, id="pods-count"),
    ],
)
def test_at_most_depends_on_what_is_missing(
    left: dict[str, float], right: dict[str, float], zero: bool, unlimited: bool
) -> None:
    one, other = ResourceList(scalars=left), ResourceList(scalars=right)

    assert (one.at_most(other, ZERO), one.at_most(other, INFINITE)) == (zero, unlimited)


def test_less_in_some_counts_a_scalar_that_only_the_other_names_even_if_it_is_zero() -> None:
    assert NOTHING.less_in_some(ResourceList(scalars={GPU: 0}), ZERO)
    assert not NOTHING.less_in_some(ResourceList(scalars={GPU: 0}), INFINITE)


def test_requests_are_compared_exactly_without_pods() -> None:
    need = ResourceList(1000.05, 10, {"pods": 9, GPU: 2})
    limit = ResourceList(1000, 5, {"pods": 1})

    assert need.over_asked(limit, ResourceList(cpu=1, scalars={"pods": 1})) == ("cpu",)
    assert need.over_asked(limit, ResourceList(scalars={GPU: 1})) == (GPU,)
    assert need.over_asked_where_given(limit, ResourceList(cpu=1, scalars={GPU: 1})) == ("cpu",)
    assert need.over_asked(limit, NOTHING) == ()


def test_an_unlimited_amount_is_written_as_the_maximum() -> None:
    assert str(ResourceList(UNLIMITED, 1.5, {GPU: 2000, NIC: 2.0**63})) == (
        f"cpu maxFloat, memory 1.50, {NIC} maxInt, {GPU} 2000.00"
    )
