"""How many nodes topology-aware preemption compares; by what, rows say (conformance rows scheduler/victims)."""

import pytest

from volcano_py.framework.evicting.pick_one_node import CandidateNodeCount


@pytest.mark.parametrize(
    ("limits", "n_nodes", "compared"),
    [
        pytest.param(CandidateNodeCount(), 5, 1, id="at-least-one"),
        pytest.param(CandidateNodeCount(), 209, 20, id="a-tenth-rounded-down"),
        pytest.param(CandidateNodeCount(), 5000, 100, id="at-most-a-hundred"),
        pytest.param(CandidateNodeCount(at_least=9), 3, 3, id="never-more-than-there-are"),
        pytest.param(CandidateNodeCount(at_least=9, at_most=4), 50, 4, id="the-upper-limit-wins"),
        pytest.param(CandidateNodeCount(percentage=-1, at_least=0, at_most=-3), 50, 1, id="nonsense-is-one"),
    ],
)
def test_a_bounded_part_of_the_nodes_is_compared(limits: CandidateNodeCount, n_nodes: int, compared: int) -> None:
    assert limits.of(n_nodes) == compared
