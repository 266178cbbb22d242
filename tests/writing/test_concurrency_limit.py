import pytest

from volcano_py.writing.concurrency_limit import AdaptiveLimit


def answers(limit: AdaptiveLimit, count: int, seconds: float, start: float = 0.0, used_up: bool = True) -> float:
    """Give that many answers one after another and return when the last came."""
    now = start
    for _ in range(count):
        limit.answered(now, now + seconds, used_up)
        now += seconds
    return now


def test_it_grows_by_about_one_per_round_trip():
    limit = AdaptiveLimit(start=10, highest=64)

    answers(limit, 10, 0.01)

    assert limit.current == 10  # ten answers at ten in flight are one round trip: just below 11
    answers(limit, 2, 0.01)
    assert limit.current == 11


def test_it_stops_at_the_highest():
    limit = AdaptiveLimit(start=60, highest=64)

    answers(limit, 5000, 0.01)

    assert limit.current == 64


def test_it_does_not_grow_while_it_is_not_used_up():
    limit = AdaptiveLimit(start=10)

    answers(limit, 500, 0.01, used_up=False)

    assert limit.current == 10


def test_a_refusal_halves_the_limit():
    limit = AdaptiveLimit(start=32)

    limit.pushed_back(sent_at=1.0, now=1.1)

    assert limit.current == 16


def test_refusals_of_one_round_trip_count_once():
    limit = AdaptiveLimit(start=32)

    for _ in range(10):
        limit.pushed_back(sent_at=1.0, now=1.1)

    assert limit.current == 16


def test_refusals_of_later_requests_count_again_down_to_the_minimum():
    limit = AdaptiveLimit(start=32)

    for second in range(10):
        limit.pushed_back(sent_at=second, now=second + 0.5)

    assert limit.current == 1


def test_it_recovers_from_the_lowest():
    limit = AdaptiveLimit(start=1)

    answers(limit, 100, 0.01)

    assert limit.current > 10


def test_a_rise_of_latency_shrinks_it():
    limit = AdaptiveLimit(start=32)
    now = answers(limit, 200, 0.02, used_up=False)

    answers(limit, 20, 1.0, start=now)

    assert limit.current < 32


def test_quick_answers_that_become_a_little_slower_are_no_rise():
    limit = AdaptiveLimit(start=32)
    now = answers(limit, 200, 0.001, used_up=False)

    answers(limit, 200, 0.05, start=now, used_up=False)

    assert limit.current == 32


def test_inconsistent_bounds_are_refused():
    with pytest.raises(ValueError, match="need 1 <= lowest"):
        AdaptiveLimit(start=100, highest=64)
