"""Waiting longer and longer, within bounds."""

import random

from volcano_py.kube.backoff import Backoff


def test_delays_double_up_to_the_cap_each_with_jitter() -> None:
    backoff = Backoff(random.Random(7), first_s=1, cap_s=8)

    delays = [backoff.next() for _ in range(2000)]

    for delay, base in zip(delays, [1, 2, 4] + [8] * 1997, strict=True):
        assert 0.5 * base <= delay <= 1.5 * base
    assert len(set(delays)) > 1000


def test_retry_after_raises_the_delay_up_to_a_bound() -> None:
    backoff = Backoff(random.Random(7), first_s=1, cap_s=10)

    assert backoff.next(at_least_s=20) == 20
    assert backoff.next(at_least_s=86400) == 60


def test_a_success_resets_the_delay() -> None:
    backoff = Backoff(random.Random(7), first_s=1, cap_s=100)
    for _ in range(5):
        backoff.next()

    backoff.reset()

    assert backoff.next() <= 1.5
