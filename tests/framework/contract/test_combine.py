from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from volcano_py.framework.contract import combine
from volcano_py.framework.contract.combine import Point
from volcano_py.framework.contract.extension_points import Vote
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.model.rejections import Reason

PERMIT, ABSTAIN, REJECT = Vote.PERMIT, Vote.ABSTAIN, Vote.REJECT


class Answers:
    """A plugin that answers one question and remembers that it was asked."""

    def __init__(self, answer: Any, name: str = "p") -> None:
        self.name = name
        self.answer = answer
        self.asked = 0

    def ask(self, *args: Any) -> Any:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer(*args) if callable(self.answer) else self.answer


def point(answer: Any, name: str = "p") -> Point:
    return Point(Answers(answer, name), "ask")


@pytest.mark.parametrize(
    ("tiers", "yes"),
    [
        pytest.param([], True, id="nobody-asked"),
        pytest.param([[ABSTAIN, ABSTAIN], [ABSTAIN]], True, id="all-abstain"),
        pytest.param([[PERMIT]], True, id="a-permit"),
        pytest.param([[REJECT]], False, id="a-reject"),
        pytest.param([[PERMIT, REJECT]], False, id="a-reject-beats-a-permit-of-its-tier"),
        pytest.param([[PERMIT, ABSTAIN], [REJECT]], True, id="a-tier-with-a-permit-ends-it"),
        pytest.param([[ABSTAIN], [REJECT], [PERMIT]], False, id="abstaining-tiers-are-passed"),
    ],
)
def test_a_vote(tiers: list[list[Vote]], yes: bool) -> None:
    assert combine.vote([[point(answer) for answer in tier] for tier in tiers]) is yes


def test_a_vote_that_is_decided_asks_nobody_else() -> None:
    later = Answers(REJECT)

    assert combine.vote([[point(PERMIT)], [Point(later, "ask")]])
    assert later.asked == 0


LATER = Reason("quota", "later", "the quota is used up")


@pytest.mark.parametrize(
    ("tiers", "answer"),
    [
        pytest.param([[ABSTAIN]], None, id="a-yes-has-no-reason"),
        pytest.param([[PERMIT, LATER]], LATER, id="a-reason-is-a-reject"),
        pytest.param([[REJECT, LATER]], REJECT, id="the-first-reject-is-the-answer"),
        pytest.param([[PERMIT], [LATER]], None, id="a-tier-with-a-permit-ends-it"),
    ],
)
def test_a_lost_vote_has_the_answer_that_ended_it(tiers: list[list[object]], answer: object) -> None:
    points = [[point(one) for one in tier] for tier in tiers]

    assert combine.rejection(points) == answer
    assert combine.vote(points) is (answer is None)


def test_notifications_reach_every_plugin() -> None:
    told = [Answers(None), Answers(None)]
    combine.notify([Point(one, "ask") for one in told], "news")

    assert [one.asked for one in told] == [1, 1]


@pytest.mark.parametrize(
    ("answers", "expected"), [([], 0), ([0, -2, 1], -2), ([0, 0.0], 0), ([0.25, -1], 0.25)], ids=str
)
def test_the_first_difference_decides(answers: list[float], expected: float) -> None:
    assert combine.first_difference([point(answer) for answer in answers], "left", "right") == expected


@pytest.mark.parametrize(
    ("answers", "expected"), [([], None), ([None, None], None), ([None, "no", "never"], "no")], ids=str
)
def test_the_first_refusal_is_the_answer(answers: list[str | None], expected: str | None) -> None:
    assert combine.first_refusal([point(answer) for answer in answers]) == expected


@pytest.mark.parametrize(
    ("answers", "expected"), [([], False), ([False, False], False), ([False, True], True)], ids=str
)
def test_any_yes_is_a_yes(answers: list[bool], expected: bool) -> None:
    assert combine.any_yes([point(answer) for answer in answers]) is expected


@pytest.mark.parametrize(("answers", "expected"), [([], 5), ([9], 5), ([3, 4], 3), ([4, 0, 2], 0), ([-1], 0)], ids=str)
def test_the_smallest_allowance_counts(answers: list[int], expected: int) -> None:
    assert combine.smallest([point(answer) for answer in answers], 5) == expected


def test_later_plugins_get_the_allowance_of_earlier_ones() -> None:
    heard: list[int] = []

    def hear(wanted: int) -> int:
        heard.append(wanted)
        return wanted - 1

    assert combine.smallest([point(hear), point(hear)], 5) == 3
    assert heard == [5, 4]


@pytest.mark.parametrize(("answers", "expected"), [([], 0), ([0, 0], 0), ([2, 7, 1], 7)], ids=str)
def test_the_largest_number_missing_counts(answers: list[int], expected: int) -> None:
    assert combine.largest([point(answer) for answer in answers]) == expected


def test_scores_are_added() -> None:
    answers = [point(np.array([1.0, 2.0])), point(np.array([10.0, -5.0])), point(np.array([0.5, 0.5]))]

    assert combine.total(answers, 2).tolist() == [11.5, -2.5]
    assert combine.total([], 2).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int64])
def test_scores_that_are_whole_numbers_or_bools_are_added_as_numbers(dtype: Any) -> None:
    first, second = np.array([1, 0, 100]).astype(dtype), np.array([1, 1, 100]).astype(dtype)

    found = combine.total([point(first), point(second)], 3)

    assert found.tolist() == (first.astype(float) + second.astype(float)).tolist()
    assert combine.total([point(first)], 3).dtype == np.float64


def test_adding_scores_does_not_change_what_a_plugin_keeps() -> None:
    kept = np.array([1.0, 2.0])
    combine.total([point(kept), point(np.ones(2))], 2)

    assert kept.tolist() == [1, 2]


def test_the_first_refusal_of_every_node_is_numbered_through_the_plugins() -> None:
    first = point(np.array([0, 2, 0, 1], dtype=np.int16))
    second = point(np.array([0, 1, 3, 0], dtype=np.int16))

    verdicts = combine.first_refusals([first, second], [0, 2], 4)

    assert verdicts.tolist() == [0, 2, 5, 1]
    assert verdicts.dtype == np.int16
    assert combine.first_refusals([], [], 2).tolist() == [0, 0]


def test_sort_keys_come_in_the_order_of_the_plugins() -> None:
    keys = combine.sort_keys([point(np.array([2.0, 1.0])), point(np.array([0.0, 0.0]))], 2, "view")

    assert [key.tolist() for key in keys] == [[2, 1], [0, 0]]


def total(answer: Any) -> Any:
    return combine.total([point(np.zeros(2), "sound"), point(answer, "unsound")], 2)


def order(answer: Any) -> Any:
    return combine.sort_keys([point(answer, "unsound")], 2, "view")


def verdicts(answer: Any) -> Any:
    return combine.first_refusals([point(answer, "unsound")], [0], 2)


@pytest.mark.parametrize("ask", [total, order, verdicts])
@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        pytest.param(ValueError("lost"), "ValueError: lost", id="raises"),
        pytest.param(np.zeros(3), r"expected an array of shape \(2,\), got shape \(3,\)", id="wrong-length"),
        pytest.param(np.zeros((2, 1)), r"got shape \(2, 1\)", id="wrong-dimension"),
        pytest.param([0.0, 0.0], "got list", id="not-an-array"),
        pytest.param(None, "got NoneType", id="nothing"),
    ],
)
def test_a_plugin_that_answers_nonsense_is_named(ask: Callable[[Any], Any], answer: Any, problem: str) -> None:
    with pytest.raises(PluginFailed, match=f"plugin unsound failed in ask: .*{problem}"):
        ask(answer)


@pytest.mark.parametrize("ask", [total, order])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_plugin_that_answers_with_no_number_is_named(ask: Callable[[Any], Any], bad: float) -> None:
    with pytest.raises(PluginFailed, match="plugin unsound failed in ask: answered with NaN or infinity"):
        ask(np.array([0.0, bad]))


def test_what_a_plugin_raised_is_kept_as_the_cause() -> None:
    cause = KeyError("x")
    with pytest.raises(PluginFailed) as caught:
        combine.any_yes([point(cause)])

    assert caught.value.__cause__ is cause


def candidates(*groups: int) -> VictimCandidates:
    return VictimCandidates(None, np.arange(len(groups)), np.array(groups, dtype=np.intp))  # type: ignore[arg-type]


def mask(text: str) -> Any:
    """Return what a plugin answers: x for yes, anything else for no; None for no opinion."""
    return None if text == "none" else np.array([letter == "x" for letter in text])


@pytest.mark.parametrize(
    ("tiers", "groups", "expected"),
    [
        pytest.param([], (0, 0), "..", id="nobody-asked"),
        pytest.param([["none"]], (0, 0), "..", id="nobody-has-an-opinion"),
        pytest.param([["xx."], ["..x"]], (0, 0, 0), "xx.", id="the-first-tier-decides"),
        pytest.param([["xx.", "none", ".xx"]], (0, 0, 0), ".x.", id="answers-are-intersected"),
        pytest.param([["..."], ["x.."]], (0, 0, 0), "x..", id="an-empty-tier-leaves-it-to-the-next"),
        pytest.param([["x..", ".x.", "..x"], [".xx"]], (0, 0, 0), ".xx", id="nobody-starts-afresh-in-a-tier"),
        pytest.param([["x...", "xx.."], ["xxxx"]], (0, 0, 1, 1), "x.xx", id="every-group-by-itself"),
        pytest.param([["none"], ["x."]], (0, 0), "x.", id="a-tier-without-opinions-does-not-decide"),
    ],
)
def test_victim_candidates_are_intersected_within_a_tier(
    tiers: list[list[str]], groups: tuple[int, ...], expected: str
) -> None:
    points = [[point(lambda *_, text=text: mask(text)) for text in tier] for tier in tiers]

    assert np.array_equal(combine.intersected(points, None, candidates(*groups)), mask(expected))


@pytest.mark.parametrize("answer", [np.array([True]), np.array([1, 0]), [True, False], 3], ids=repr)
def test_an_answer_that_is_no_mask_is_a_failure_of_the_plugin(answer: Any) -> None:
    with pytest.raises(PluginFailed, match=r"expected a mask of shape \(2,\)"):
        combine.intersected([[point(answer)]], None, candidates(0, 0))


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [([], ".."), ([[".."], ["x."], [".x"]], "x."), ([["x.", ".x"], [".."]], "xx")],
    ids=["nobody", "first-tier-that-names-anybody", "united"],
)
def test_victims_are_united_within_a_tier(tiers: list[list[str]], expected: str) -> None:
    points = [[point(mask(text)) for text in tier] for tier in tiers]

    assert np.array_equal(combine.united(points, candidates(0, 0)), mask(expected))


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [([], False), ([[]], False), ([[], [True]], True), ([[True, False]], False), ([[False], [True]], False)],
    ids=str,
)
def test_the_first_tier_with_an_answer_decides_whether_a_job_starves(tiers: list[list[bool]], expected: bool) -> None:
    assert combine.starving([[point(answer) for answer in tier] for tier in tiers]) is expected
