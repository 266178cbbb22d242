import pytest
from prometheus_client import CollectorRegistry, generate_latest

from volcano_py.metrics.exposition import exposition
from volcano_py.metrics.series import RoundsGauge, SeriesGauge


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def gauge(registry: CollectorRegistry) -> SeriesGauge:
    return SeriesGauge("share", "Share.", ["ns", "job"], registry)


def test_a_series_has_the_value_that_was_set_last(registry, gauge):
    gauge.set(("a", "b"), 1.0)
    gauge.set(("a", "b"), 2.0)

    assert registry.get_sample_value("share", {"ns": "a", "job": "b"}) == 2


def test_a_series_counts_the_rounds_since_it_began(registry):
    gauge = RoundsGauge("rounds", "Rounds.", ["job"], registry)

    def shown() -> dict[str, float]:
        (metric,) = registry.collect()
        return {sample.labels["job"]: sample.value for sample in metric.samples}

    gauge.begin(("a",))
    assert shown() == {"a": 0}
    gauge.end_round()
    gauge.begin(("a",))
    gauge.begin(("b",))
    gauge.end_round()
    assert shown() == {"a": 2, "b": 1}
    gauge.remove(("a",))
    gauge.begin(("a",))
    assert shown() == {"a": 0, "b": 1}


def test_a_removed_series_is_gone_and_may_be_removed_again(registry, gauge):
    gauge.set(("a", "b"), 1.0)
    gauge.remove(("a", "b"))
    gauge.remove(("a", "b"))

    assert registry.get_sample_value("share", {"ns": "a", "job": "b"}) is None


def test_the_text_in_pieces_is_the_text_as_a_whole(registry, gauge):
    for number in range(1000):
        gauge.set(("a", f"job-{number}"), number)

    assert b"".join(exposition(registry)) == generate_latest(registry)
