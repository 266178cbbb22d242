import pytest

from volcano_py.writing.rate import TokenBucket


def test_a_burst_passes_at_once_and_then_the_rate_applies():
    bucket = TokenBucket(rate_per_s=10, burst=3, now=0.0)

    assert [bucket.take(0.0) for _ in range(3)] == [0.0, 0.0, 0.0]
    assert bucket.take(0.0) == pytest.approx(0.1)
    assert bucket.take(0.1) == 0.0


def test_the_reserve_does_not_grow_beyond_the_burst():
    bucket = TokenBucket(rate_per_s=10, burst=2, now=0.0)

    assert [bucket.take(100.0) == 0.0 for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_rate_that_allows_nothing_is_refused(rate, burst):
    with pytest.raises(ValueError, match="are needed"):
        TokenBucket(rate, burst, 0.0)
