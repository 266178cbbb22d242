"""Shares of queues, and who may go so that one queue gets what another one has more of."""

from random import Random

import numpy as np
import pytest

from tests.framework.sessions import a_session
from tests.reference.crowded import crowded_world
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.evicting.levelling import may_level, not_below, share_lists, who_may_go
from volcano_py.framework.session import Session
from volcano_py.model.arrays import Bools, Floats
from volcano_py.plugins.proportion import Proportion


def a_column(*amounts: float) -> Floats:
    """Return cpu, memory, pods and one more resource as a column."""
    return np.array(amounts, dtype=float)[:, None]


@pytest.mark.parametrize(
    ("held", "due", "expected"),
    [
        pytest.param((1, 2, 0, 3), (4, 4, 4, 4), [0.75, 0.5, 0.25, 0], id="largest-first"),
        pytest.param((1, 2, 4, 3), (4, 4, 4, 4), [0.75, 0.5, 0.25, 0], id="pods-do-not-count"),
        pytest.param((1, 2, 0, 3), (0, 4, 4, 0), [0.5, 0, 0, 0], id="what-is-not-due-does-not-count"),
    ],
)
def test_a_share_is_a_list(held: tuple[float, ...], due: tuple[float, ...], expected: list[float]) -> None:
    assert share_lists(a_column(*held), a_column(*due))[:, 0].tolist() == expected


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        pytest.param((3, 0, 0, 0), (2, 9, 9, 9), True, id="the-first-difference-decides"),
        pytest.param((3, 1, 0, 0), (3, 2, 0, 0), False, id="then-the-next"),
        pytest.param((3, 1, 0, 0), (3, 1, 0, 0), True, id="equal-is-not-below"),
    ],
)
def test_shares_are_compared_like_words(left: tuple[float, ...], right: tuple[float, ...], expected: bool) -> None:
    assert not_below(a_column(*left), a_column(*right)).tolist() == [expected]


DUE = a_column(8, 8, 8, 8)


@pytest.mark.parametrize(
    ("left", "before", "after", "expected"),
    [
        pytest.param((2, 0, 0, 0), (1, 0, 0, 0), (2, 0, 0, 0), True, id="both-have-the-same-then"),
        pytest.param((2, 0, 0, 0), (1, 0, 0, 0), (3, 0, 0, 0), False, id="the-preemptor-would-have-more"),
        pytest.param((1, 0, 0, 0), (0, 0, 5, 0), (3, 0, 6, 0), True, id="a-newcomer-may-have-more"),
        pytest.param((0, 0, 5, 0), (0, 0, 0, 0), (3, 0, 1, 0), False, id="and-may-not-take-the-last"),
        pytest.param((2, 0, 0, 4), (1, 0, 0, 4), (2, 0, 0, 4), True, id="ties-in-the-largest-resource"),
        pytest.param((1, 0, 0, 4), (1, 0, 0, 4), (2, 0, 0, 4), False, id="go-on-to-the-next"),
    ],
)
def test_shares_are_levelled_and_never_inverted(
    left: tuple[float, ...], before: tuple[float, ...], after: tuple[float, ...], expected: bool
) -> None:
    columns = a_column(*left), DUE, a_column(*before), a_column(*after), DUE
    assert may_level(*columns).tolist() == [expected]


def a_walk(ssn: Session, candidates: VictimCandidates, floors: dict[int, float]) -> list[bool]:
    """Ask one after the other: each may go while its queue keeps a floor of cpu; units go or stay together."""
    answers = [False] * len(candidates)
    gone: dict[tuple[int, int], float] = {}
    units: dict[int, list[int]] = {}
    for place, first in enumerate(candidates.first_of_unit.tolist()):
        units.setdefault(first, []).append(place)
    for members in units.values():
        key = int(candidates.groups[members[0]]), int(candidates.queues[members[0]])
        asked = float(candidates.requests[0, members].sum())
        if gone.get(key, 0.0) + asked <= floors[key[1]]:
            gone[key] = gone.get(key, 0.0) + asked
            for place in members:
                answers[place] = True
    return answers


@pytest.mark.parametrize("number", range(40))
@pytest.mark.parametrize("together", [False, True], ids=["by-node", "one-group"])
def test_permitted_victims_equal_a_walk_from_candidate_to_candidate(number: int, together: bool) -> None:
    rng = Random(number)
    ssn = a_session(crowded_world(number, ("a", "b", "c")), Proportion())
    candidates = ssn.eviction.all
    if together:  # those of a job stand together; some of them go only together
        units = np.where(candidates.jobs % 2 == 0, candidates.jobs, -1 - candidates.rows)
        order = np.argsort(candidates.jobs, kind="stable")
        candidates = VictimCandidates(
            ssn.state, candidates.rows[order], np.zeros(len(order), dtype=np.intp), units=units[order]
        )
    floors = {queue: rng.choice((0.0, 1000.0, 2000.0, 3000.0, 9000.0)) for queue in range(3)}
    least = np.array([floors[queue] for queue in candidates.queues.tolist()])
    sums, first = candidates.of_units(candidates.requests), candidates.first_of_unit

    def agrees(going: Bools) -> Bools:
        before = candidates.by_queue.total(candidates.requests * going)[0, first]
        return np.asarray(before + sums[0] <= least)

    shapes = ssn.state.tasks.shape[candidates.rows]
    for apart in (candidates.queues, np.zeros(len(candidates), dtype=np.intp)):
        assert who_may_go(candidates, shapes, apart, agrees).tolist() == a_walk(ssn, candidates, floors)
