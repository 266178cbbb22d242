import itertools

import prometheus_client
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from volcano_py.metrics.buckets import exponential
from volcano_py.metrics.cycle import CycleMetrics, WaitingMetrics
from volcano_py.metrics.effects import BindMetrics, WriteQueueMetrics
from volcano_py.metrics.histogram import Histogram
from volcano_py.metrics.queue_shares import QueueMetrics
from volcano_py.metrics.requests import RequestMetrics
from volcano_py.metrics.state import StateMetrics

VOLCANOS = [
    "volcano_e2e_scheduling_latency_milliseconds",
    "volcano_open_session_duration_milliseconds",
    "volcano_action_scheduling_latency_milliseconds",
    "volcano_plugin_scheduling_latency_milliseconds",
    "volcano_task_scheduling_latency_milliseconds",
    "volcano_scheduling_stage_duration_milliseconds",
    "volcano_e2e_job_scheduling_latency_milliseconds",
    "volcano_schedule_attempts_total",
    "volcano_unschedule_task_count",
    "volcano_unschedule_job_count",
    "volcano_job_retry_counts",
    *(
        f"volcano_queue_{what}_{unit}"
        for what in ("allocated", "request", "deserved", "inqueue", "capacity", "real_capacity")
        for unit in ("milli_cpu", "memory_bytes", "scalar_resources")
    ),
    "volcano_queue_share",
    "volcano_queue_weight",
    "volcano_queue_overused",
]
CLIENT_GOS = ["rest_client_requests_total", "rest_client_request_duration_seconds"]


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def test_metric_names_are_volcanos_or_have_our_prefix(registry):
    for family in (
        CycleMetrics,
        WaitingMetrics,
        QueueMetrics,
        BindMetrics,
        WriteQueueMetrics,
        RequestMetrics,
        StateMetrics,
    ):
        family(registry)

    text = generate_latest(registry).decode()
    names = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    assert set(VOLCANOS) <= names
    others = names - {*VOLCANOS, *CLIENT_GOS}
    assert all(name.startswith("volcano_py_") for name in others if not name.endswith("_created"))


def test_buckets_grow_by_one_factor_from_first_to_last():
    bounds = exponential(1, 5000, 20)

    assert (len(bounds), bounds[0], bounds[-1]) == (20, 1, 5000)
    ratios = [later / earlier for earlier, later in itertools.pairwise(bounds)]
    assert ratios == pytest.approx([ratios[0]] * 19, rel=1e-3)


def test_durations_are_shown_in_milliseconds(registry):
    metrics = CycleMetrics(registry)

    metrics.ended(0.25, placed=3, left_pending=2)
    metrics.action("allocate", 0.1)
    metrics.plugin("gang", "OnSessionOpen", 0.001)

    assert registry.get_sample_value("volcano_e2e_scheduling_latency_milliseconds_sum") == 250
    assert (
        registry.get_sample_value("volcano_action_scheduling_latency_milliseconds_sum", {"action": "allocate"}) == 100
    )
    labels = {"plugin": "gang", "OnSession": "OnSessionOpen"}
    assert registry.get_sample_value("volcano_plugin_scheduling_latency_milliseconds_sum", labels) == 1
    assert registry.get_sample_value("volcano_schedule_attempts_total", {"result": "scheduled"}) == 3
    assert registry.get_sample_value("volcano_schedule_attempts_total", {"result": "unschedulable"}) == 2


def test_a_job_that_waits_no_longer_loses_its_series(registry):
    metrics = WaitingMetrics(registry)

    metrics.update({"a": 3, "b": 1}, jobs=2)
    metrics.update({"a": 2, "b": 0}, jobs=1)

    assert registry.get_sample_value("volcano_unschedule_task_count", {"job_id": "a"}) == 2
    assert registry.get_sample_value("volcano_job_retry_counts", {"job_id": "a"}) == 2
    assert registry.get_sample_value("volcano_unschedule_task_count", {"job_id": "b"}) is None
    assert registry.get_sample_value("volcano_unschedule_job_count") == 1


def test_requests_are_counted_by_verb_resource_and_result(registry):
    metrics = RequestMetrics(registry)

    metrics.observe("create", "pods/binding", 201, 0.01)
    metrics.observe("create", "pods/binding", 201, 0.01)
    metrics.observe("create", "pods/binding", 0, 10.0)

    def count(result: str) -> float | None:
        labels = {"verb": "create", "resource": "pods/binding", "result": result}
        return registry.get_sample_value("volcano_py_api_requests_total", labels)

    assert (count("201"), count("none")) == (2, 1)


def test_requests_are_added_up_by_method_under_the_names_of_client_go(registry):
    metrics = RequestMetrics(registry)
    metrics.observe("create", "pods/binding", 201, 0.25)
    metrics.observe("create", "events", 201, 0.5)
    metrics.observe("list", "pods", 200, 1.0)
    metrics.observe("watch", "pods", 0, 2.0)

    def count(method: str, code: str) -> float | None:
        return registry.get_sample_value("rest_client_requests_total", {"method": method, "code": code})

    assert (count("POST", "201"), count("GET", "200"), count("GET", "<error>")) == (2, 1, 1)
    seconds = "rest_client_request_duration_seconds"
    assert registry.get_sample_value(f"{seconds}_sum", {"verb": "POST"}) == 0.75
    assert registry.get_sample_value(f"{seconds}_count", {"verb": "GET"}) == 2
    assert registry.get_sample_value(f"{seconds}_bucket", {"verb": "GET", "le": "+Inf"}) == 2


def test_state_is_read_when_metrics_are_asked_for(registry):
    metrics = StateMetrics(registry)
    ledger = [1]

    metrics.watch_ledger(lambda: len(ledger), lambda: 2.5)
    ledger.append(2)

    assert registry.get_sample_value("volcano_py_ledger_entries") == 2
    assert registry.get_sample_value("volcano_py_ledger_oldest_seconds") == 2.5


@given(st.lists(st.one_of(st.floats(-5, 200), st.sampled_from([1.0, 10.0, 100.0])), max_size=50))
def test_the_quick_histogram_counts_as_the_usual_one_does(values):
    pages = []
    for kind in (Histogram, prometheus_client.Histogram):
        registry = CollectorRegistry()
        child = kind("seconds", "Seconds.", ["stage"], buckets=(1, 10, 100), registry=registry).labels("x")
        for value in values:
            child.observe(value)
        pages.append([line for line in generate_latest(registry).splitlines() if b"_created" not in line])
    assert pages[0] == pages[1]
