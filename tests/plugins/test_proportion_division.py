from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.sharing import Queue, shares
from volcano_py.model.arrays import Floats
from volcano_py.model.queue_limits import real_capability
from volcano_py.plugins.proportion.division import deserved

RESOURCES = ("cpu", "memory", "pods", "gpu")


def divide(total: dict[str, float], queues: dict[str, Queue]) -> dict[str, dict[str, float]]:
    """Return what each queue deserves by the arrays under test."""
    names = list(queues)

    def columns(field: str, missing: float) -> Floats:
        found = [[float(getattr(queues[name], field).get(r, missing)) for name in names] for r in RESOURCES]
        return np.array(found).reshape(len(RESOURCES), len(names))

    everything = np.array([float(total.get(resource, 0)) for resource in RESOURCES])
    guarantee = columns("guarantee", 0.0)
    capability = real_capability(everything, guarantee, columns("capability", np.inf))
    weights = np.array([float(queues[name].weight) for name in names])
    wanting = np.ones(len(names), dtype=bool)
    found = deserved(everything, weights, columns("request", 0.0), capability, guarantee, wanting)
    return {name: dict(zip(RESOURCES, found[:, row].tolist(), strict=True)) for row, name in enumerate(names)}


def test_a_fully_guaranteed_scalar_is_not_shared() -> None:
    wanted = {"gpu": Fraction(3)}

    found = divide({"gpu": 4}, {"a": Queue(1, wanted, guarantee={"gpu": Fraction(4)}), "b": Queue(1, wanted)})

    assert {name: each["gpu"] for name, each in found.items()} == {"a": 4, "b": 0}


def cpu(total: float, **queues: Queue) -> dict[str, float]:
    return {name: found["cpu"] for name, found in divide({"cpu": total}, queues).items()}


def wants(amount: float, weight: int = 1, **limits: float) -> Queue:
    """A queue that asks for cpu alone."""
    return Queue(
        weight,
        {"cpu": Fraction(amount)},
        capability={"cpu": Fraction(limits["most"])} if "most" in limits else {},
        guarantee={"cpu": Fraction(limits["least"])} if "least" in limits else {},
    )


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        pytest.param({"a": wants(12)}, {"a": 12}, id="alone-it-may-have-everything"),
        pytest.param({"a": wants(99), "b": wants(99)}, {"a": 6, "b": 6}, id="by-equal-weight"),
        pytest.param({"a": wants(99, 3), "b": wants(99)}, {"a": 9, "b": 3}, id="by-weight-3-to-1"),
        pytest.param({"a": wants(2), "b": wants(99)}, {"a": 2, "b": 10}, id="what-one-leaves-goes-to-the-other"),
        pytest.param({"a": wants(99, most=4), "b": wants(99)}, {"a": 4, "b": 8}, id="cut-to-the-capability"),
        pytest.param({"a": wants(99, most=1), "b": wants(2)}, {"a": 1, "b": 2}, id="nobody-takes-the-rest"),
        pytest.param({"a": wants(99, least=8), "b": wants(99)}, {"a": 8, "b": 4}, id="a-guarantee-is-kept"),
        pytest.param({"a": wants(0, least=8), "b": wants(99)}, {"a": 8, "b": 4}, id="a-guarantee-is-kept-unasked"),
        pytest.param({"a": wants(99, 0), "b": wants(2)}, {"a": 0, "b": 2}, id="no-weight"),
        pytest.param({"a": wants(99), "b": wants(99), "c": wants(99)}, {"a": 4, "b": 4, "c": 4}, id="thirds"),
        pytest.param({}, {}, id="no-queues"),
    ],
)
def test_a_resource_is_divided(queues: dict[str, Queue], expected: dict[str, float]) -> None:
    assert cpu(12, **queues) == expected


def test_a_share_that_takes_many_rounds_ends_at_a_whole_number() -> None:
    """One queue wants cpu and the other memory; each round gives each of them half of what is left of both."""
    total = {"cpu": 8000.0, "memory": 2.0**40, "pods": 100.0}
    queues = {
        "cpu": Queue(1, {"cpu": Fraction(99_999), "memory": Fraction(1), "pods": Fraction(9)}),
        "memory": Queue(1, {"cpu": Fraction(1), "memory": Fraction(2**41), "pods": Fraction(9)}),
    }

    found = divide(total, queues)

    assert (found["cpu"]["cpu"], found["memory"]["memory"]) == (7999.0, 2.0**40 - 1)


@pytest.mark.parametrize("count", [3, 7, 11, 13, 49])
def test_equal_shares_of_a_whole_number_are_that_number(count: int) -> None:
    queues = {f"q{index}": wants(99_999) for index in range(count)}

    assert set(cpu(1000 * count, **queues).values()) == {1000.0}


amounts = st.sampled_from((0, 1, 2, 3, 5, 8, 100, 1000, 4096, 10**6))


@st.composite
def asking(draw: st.DrawFn) -> Queue:
    return Queue(
        weight=draw(st.sampled_from((1, 1, 2, 3, 7))),
        request={resource: Fraction(draw(amounts)) for resource in RESOURCES},
        capability={resource: Fraction(draw(amounts)) for resource in RESOURCES if draw(st.booleans())},
        guarantee={resource: Fraction(draw(st.sampled_from((1, 2, 5)))) for resource in RESOURCES[:2]}
        if draw(st.booleans())
        else {},
    )


@settings(max_examples=150, derandomize=True)
@given(total=st.lists(amounts, min_size=4, max_size=4), queues=st.lists(asking(), max_size=5))
def test_shares_equal_the_slow_rounds(total: list[int], queues: list[Queue]) -> None:
    given_ = {resource: Fraction(amount) for resource, amount in zip(RESOURCES, total, strict=True)}
    named = {f"q{index}": queue for index, queue in enumerate(queues)}

    found = divide({name: float(amount) for name, amount in given_.items()}, named)

    for name, share in shares(given_, named).items():
        assert found[name] == pytest.approx({r: float(amount) for r, amount in share.items()}, rel=1e-6, abs=1e-6)
