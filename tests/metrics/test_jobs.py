import pytest
from prometheus_client import CollectorRegistry

from volcano_py.metrics.cycle import WaitingMetrics
from volcano_py.metrics.jobs import JobMetrics

TRAIN = ("ns", "train")


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def value(registry: CollectorRegistry, what: str, queue: str = "default") -> float | None:
    labels = {"job_name": "train", "queue": queue, "job_namespace": "ns"}
    return registry.get_sample_value(f"volcano_e2e_job_scheduling_{what}", labels)


def test_the_times_of_a_job_are_those_of_its_last_task(registry):
    metrics = JobMetrics(registry)

    metrics.placed(TRAIN, "default", created=100.0, now=101.0)
    metrics.placed(TRAIN, "default", created=100.0, now=102.5)

    assert [value(registry, what) for what in ("duration", "start_time", "last_time")] == [2500, 100, 102.5]


def test_a_job_that_changes_its_queue_has_series_of_the_new_one_only(registry):
    metrics = JobMetrics(registry)

    metrics.placed(TRAIN, "default", created=100.0, now=101.0)
    metrics.placed(TRAIN, "other", created=100.0, now=102.0)

    assert value(registry, "duration") is None
    assert value(registry, "duration", "other") == 2000


def test_only_jobs_that_exist_keep_their_series(registry):
    metrics = JobMetrics(registry)
    metrics.placed(TRAIN, "default", created=100.0, now=101.0)
    metrics.shares({TRAIN: 0.5, ("ns", "stays"): 0.1})

    metrics.keep(lambda name: name != TRAIN)

    assert value(registry, "duration") is None
    assert registry.get_sample_value("volcano_job_share", {"job_ns": "ns", "job_id": "train"}) is None
    assert registry.get_sample_value("volcano_job_share", {"job_ns": "ns", "job_id": "stays"}) == 0.1


def test_two_thousand_jobs_cost_a_few_series_each_and_none_when_they_are_gone(registry):
    """Volcano had 207,512 series for 2,280 groups, and a scrape took 10 s (its issue 4821)."""
    jobs, waiting = JobMetrics(registry), WaitingMetrics(registry)
    names = [("ns", f"job-{index}") for index in range(2000)]

    def series() -> int:
        return sum(len(family.samples) for family in registry.collect())

    before = series()
    jobs.shares(dict.fromkeys(names, 0.5))
    for name in names:
        jobs.placed(name, "default", created=100.0, now=101.0)
    waiting.update({name: 1 for _, name in names}, len(names))
    assert series() - before == 6 * len(names)

    jobs.keep(lambda _: False)
    waiting.update({name: 0 for _, name in names}, 0)
    assert series() == before
