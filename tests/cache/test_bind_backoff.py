"""Pods whose binds failed wait for a while, unless they or their PodGroup change."""

import random
from typing import Any

import pytest

from volcano_py.cache.cluster import ClusterCache
from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey, TaskRef, TaskTrait
from volcano_py.runtime.clock import FakeClock
from volcano_py.testing import a_group, a_job, a_node, a_pod, deleted, modified

JOB = JobKey("default", "j1")


class Halves(random.Random):
    """Spreads nothing."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def cache(make_cluster: Any, clock: FakeClock) -> ClusterCache:
    made: ClusterCache = make_cluster(
        a_node("n1", cpu=8), a_job("j1", tasks=3, cpu=1), a_job("j2", tasks=1, cpu=1), clock=clock, rng=Halves()
    )
    return made


def refused(cache: ClusterCache, *names: str, job: JobKey = JOB) -> None:
    """Assume binds of pods, and let the API server refuse them."""
    refs = [TaskRef("default", name, f"uid-default-{name}") for name in names]
    cache.binds.assume(tuple(Bind(ref, "n1", job) for ref in refs), cache.token)
    for ref in refs:
        cache.binds.failed(ref, "denied by policy")


def held(cache: ClusterCache) -> list[str]:
    tasks = cache.snapshot().tasks
    return sorted(
        record.name
        for record, traits in zip(tasks.records, tasks.traits.tolist(), strict=False)
        if record is not None and traits & TaskTrait.BACKING_OFF
    )


def test_only_pods_whose_binds_failed_back_off(cache: ClusterCache) -> None:
    refused(cache, "j1-0", "j1-1")

    assert held(cache) == ["j1-0", "j1-1"]


def test_failures_in_a_row_back_off_longer_and_longer_up_to_a_minute(cache: ClusterCache, clock: FakeClock) -> None:
    waits = []
    for _ in range(9):
        refused(cache, "j1-0")
        started = clock.monotonic()
        while held(cache):
            clock.advance(0.5)
        waits.append(clock.monotonic() - started)

    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_failures_of_a_gang_that_come_together_count_once(cache: ClusterCache, clock: FakeClock) -> None:
    refused(cache, "j1-0", "j1-1", "j1-2")

    clock.advance(1)

    assert held(cache) == []


def test_late_refusals_of_one_attempt_count_once_and_the_back_off_starts_at_the_last(
    cache: ClusterCache, clock: FakeClock
) -> None:
    refs = [TaskRef("default", f"j1-{number}", f"uid-default-j1-{number}") for number in range(3)]
    cache.binds.assume(tuple(Bind(ref, "n1", JOB) for ref in refs), cache.token)
    for ref in refs:
        clock.advance(5)
        cache.binds.failed(ref, "denied by policy")

    assert held(cache) == ["j1-0", "j1-1", "j1-2"]
    clock.advance(1)
    assert held(cache) == []


def test_a_pod_that_changes_its_group_is_tried_at_once_and_forgotten(cache: ClusterCache) -> None:
    refused(cache, "j1-0")

    modified(cache, a_pod("j1-0", group="j2", cpu=1))

    assert held(cache) == []
    assert not cache._bind_backoff


def test_jobs_back_off_independently(cache: ClusterCache, clock: FakeClock) -> None:
    refused(cache, "j1-0")
    clock.advance(1)
    refused(cache, "j1-0")
    refused(cache, "j2-0", job=JobKey("default", "j2"))

    clock.advance(1)

    assert held(cache) == ["j1-0"]


def test_a_pod_whose_request_changed_is_tried_at_once(cache: ClusterCache) -> None:
    refused(cache, "j1-0", "j1-1")

    modified(cache, a_pod("j1-0", group="j1", cpu=2))

    assert held(cache) == ["j1-1"]


def test_the_condition_about_the_back_off_does_not_end_it(cache: ClusterCache) -> None:
    refused(cache, "j1-0")

    modified(cache, a_pod("j1-0", group="j1", cpu=1, why_pending="failed to bind to node n1: denied by policy"))

    assert held(cache) == ["j1-0"]


def test_a_group_whose_request_changed_is_tried_at_once(cache: ClusterCache) -> None:
    refused(cache, "j1-0", "j1-1")

    modified(cache, a_group("j1", min_available=1))

    assert held(cache) == []


def test_after_a_change_the_back_off_starts_at_its_beginning(cache: ClusterCache, clock: FakeClock) -> None:
    for _ in range(4):
        refused(cache, "j1-0")
        clock.advance(60)
    modified(cache, a_pod("j1-0", group="j1", cpu=2))
    refused(cache, "j1-0")

    clock.advance(1)

    assert held(cache) == []


def test_a_pod_that_is_gone_or_bound_is_forgotten(cache: ClusterCache, clock: FakeClock) -> None:
    refused(cache, "j1-0", "j1-1")
    deleted(cache, a_pod("j1-0", group="j1", cpu=1))
    modified(cache, a_pod("j1-1", group="j1", cpu=1, node="n1"))

    assert held(cache) == []
    assert not cache._bind_backoff


def test_a_bind_that_was_not_sent_causes_no_back_off(cache: ClusterCache) -> None:
    ref = TaskRef("default", "j1-0", "uid-default-j1-0")
    cache.binds.assume((Bind(ref, "n1", JOB),), cache.token)

    cache.binds.withdrawn(ref, "node n1 is gone")

    assert held(cache) == []
