"""Volcano's metrics: each is measured under its name, with its type and labels, or stands here with why it is not."""

from math import inf
from typing import NamedTuple

import pytest
from prometheus_client import Gauge, Histogram, generate_latest

from tests.packaging.measured import of_controllers, of_scheduler, series
from volcano_py.metrics.exposition import COUNTERS_WITHOUT_TOTAL, exposition


class Expected(NamedTuple):
    kind: str
    labels: tuple[str, ...] = ()


QUEUE_KINDS = ("allocated", "request", "deserved", "inqueue", "capacity", "real_capacity")
VOLCANOS = {
    "e2e_scheduling_latency_milliseconds": Expected("histogram"),
    "open_session_duration_milliseconds": Expected("histogram"),
    "plugin_scheduling_latency_milliseconds": Expected("histogram", ("plugin", "OnSession")),
    "action_scheduling_latency_milliseconds": Expected("histogram", ("action",)),
    "task_scheduling_latency_milliseconds": Expected("histogram", ("stage",)),
    "scheduling_stage_duration_milliseconds": Expected("histogram", ("stage",)),
    "e2e_job_scheduling_latency_milliseconds": Expected("histogram"),
    "e2e_job_scheduling_duration": Expected("gauge", ("job_name", "queue", "job_namespace")),
    "e2e_job_scheduling_start_time": Expected("gauge", ("job_name", "queue", "job_namespace")),
    "e2e_job_scheduling_last_time": Expected("gauge", ("job_name", "queue", "job_namespace")),
    "schedule_attempts_total": Expected("counter", ("result",)),
    "unschedule_task_count": Expected("gauge", ("job_id",)),
    "unschedule_job_count": Expected("gauge"),
    "job_share": Expected("gauge", ("job_ns", "job_id")),
    "job_retry_counts": Expected("counter", ("job_id",)),
    "total_preemption_attempts": Expected("counter"),
    "pod_preemption_victims": Expected("gauge"),
    "eviction_transactions_total": Expected("counter", ("action",)),
    **{f"queue_{kind}_milli_cpu": Expected("gauge", ("queue_name",)) for kind in QUEUE_KINDS},
    **{f"queue_{kind}_memory_bytes": Expected("gauge", ("queue_name",)) for kind in QUEUE_KINDS},
    **{f"queue_{kind}_scalar_resources": Expected("gauge", ("queue_name", "resource")) for kind in QUEUE_KINDS},
    "queue_share": Expected("gauge", ("queue_name",)),
    "queue_weight": Expected("gauge", ("queue_name",)),
    "queue_overused": Expected("gauge", ("queue_name",)),
}
NOT_YET = {
    **{f"namespace_{what}": "Volcano never sets it" for what in ("share", "weight", "weighted_share")},
    **{
        f"vgpu_device_{what}": "plugin deviceshare"
        for what in (
            "shared_number",
            "allocated_memory",
            "allocated_cores",
            "memory_limit",
            "memory_allocation_for_a_certain_pod",
            "core_allocation_for_a_certain_pod",
        )
    },
}
MEASURED = {metric.family: metric for metric in series(of_scheduler()).values()}


@pytest.mark.parametrize(("name", "expected"), VOLCANOS.items(), ids=list(VOLCANOS))
def test_it_is_measured_with_its_type_and_labels(name: str, expected: Expected):
    found = MEASURED[f"volcano_{name}"]

    assert found.kind == expected.kind
    assert found.labels - {"le"} == set(expected.labels)


def test_every_type_is_the_one_that_prometheus_reads():
    lines = b"".join(exposition(of_scheduler())).decode().splitlines()
    shown = dict(line.split(" ")[2:] for line in lines if line.startswith("# TYPE "))

    assert {name: shown[f"volcano_{name}"] for name in VOLCANOS} == {name: row.kind for name, row in VOLCANOS.items()}


@pytest.mark.parametrize("name", NOT_YET)
def test_metrics_that_are_not_measured_are_not_exposed(name: str):
    assert f"volcano_{name}" not in MEASURED


def test_buckets_are_volcanos():
    """First, last and number of bounds, +Inf left out."""
    buckets = {
        "e2e_scheduling_latency_milliseconds": (1, 5000, 20),
        "open_session_duration_milliseconds": (1, 5000, 20),
        "plugin_scheduling_latency_milliseconds": (0.1, 100, 15),
        "action_scheduling_latency_milliseconds": (1, 2000, 20),
        "task_scheduling_latency_milliseconds": (50, 60000, 30),
        "scheduling_stage_duration_milliseconds": (0.1, 500, 20),
        "e2e_job_scheduling_latency_milliseconds": (100, 120000, 30),
    }
    of_controllers_alone = {"controller_job_to_pod_creation_latency_milliseconds": (50, 60000, 30)}
    found: dict[str, list[float]] = {}
    for collector in (*of_scheduler()._collector_to_names, *of_controllers()._collector_to_names):
        if isinstance(collector, Histogram):
            found[collector._name.removeprefix("volcano_")] = [
                bound for bound in collector._upper_bounds if bound < inf
            ]

    wanted = buckets | of_controllers_alone
    shown = {name: (round(found[name][0], 6), round(found[name][-1], 6), len(found[name])) for name in wanted}
    assert shown == wanted
    assert {name for name in VOLCANOS if VOLCANOS[name].kind == "histogram"} == buckets.keys()


def test_metrics_of_many_jobs_are_written_in_small_pieces_of_the_same_text():
    registry = of_scheduler()
    retries = Gauge("volcano_job_retry_counts_of_many", "Of many.\nIn two lines.", ["job_id"], registry=registry)
    for number in range(1000):
        retries.labels(f"ns/job-{number}").set(number)
    pieces = list(exposition(registry))

    whole = generate_latest(registry)
    for name in COUNTERS_WITHOUT_TOTAL:
        whole = whole.replace(f"# TYPE {name} gauge\n".encode(), f"# TYPE {name} counter\n".encode())
    assert b"".join(pieces) == whole
    assert max(piece.count(b"\n") for piece in pieces) <= 400
