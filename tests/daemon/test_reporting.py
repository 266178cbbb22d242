from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from structlog.testing import capture_logs

from volcano_py.daemon.metrics import DaemonMetrics
from volcano_py.daemon.reporting import CycleReporter, Timing
from volcano_py.framework.state.report import CycleReport, Difference, JobReport, QueueReport
from volcano_py.model.objects import JobKey, JobRecord
from volcano_py.runtime.clock import FakeClock
from volcano_py.snapshot.store import ClusterStore

TIMING = Timing("change", snapshot_s=0.001, total_s=0.05)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def store() -> ClusterStore:
    return ClusterStore()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def metrics(registry) -> DaemonMetrics:
    return DaemonMetrics.of(registry)


@pytest.fixture
def reporter(metrics, store, clock) -> CycleReporter:
    return CycleReporter(metrics, store, clock=clock)


def told(reporter: CycleReporter, report: CycleReport) -> list[dict]:
    with capture_logs() as lines:
        reporter.ended(report, TIMING)
    return lines


def test_a_cycle_that_placed_something_is_one_line_with_its_numbers(reporter):
    (line,) = told(reporter, CycleReport(tasks_placed=6, jobs_committed=1, pending_tasks=2))

    assert line["log_level"] == "info"
    assert (line["placed"], line["jobs"], line["pending"], line["ms"]) == (6, 1, 2, 50.0)


def test_a_cycle_that_did_nothing_is_for_debugging_only(reporter):
    (line,) = told(reporter, CycleReport(pending_tasks=2))

    assert line["log_level"] == "debug"


def test_durations_go_to_the_metrics_they_belong_to(reporter, registry):
    report = CycleReport(seconds={"open": 0.002, "enqueue": 0.01, "allocate": 0.02, "close": 0.003})
    report.plugin_seconds["gang", "on_session_open"] = 0.001

    reporter.ended(report, TIMING)

    def total(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"volcano_{name}_sum", labels)

    assert total("e2e_scheduling_latency_milliseconds") == pytest.approx(50)
    assert total("open_session_duration_milliseconds") == pytest.approx(3)
    assert total("action_scheduling_latency_milliseconds", action="allocate") == pytest.approx(20)
    assert total("action_scheduling_latency_milliseconds", action="close") is None
    plugin = {"plugin": "gang", "OnSession": "OnSessionOpen"}
    assert total("plugin_scheduling_latency_milliseconds", **plugin) == pytest.approx(1)


def test_jobs_below_their_minimum_are_counted(reporter, registry):
    jobs = {
        JobKey("a", "short"): JobReport(tasks=6, ready=2, min_available=6, message="no room"),
        JobKey("a", "enough"): JobReport(tasks=6, ready=4, min_available=4, message="no room for more"),
    }

    reporter.ended(CycleReport(jobs=jobs, pending_tasks=6), TIMING)

    assert registry.get_sample_value("volcano_unschedule_job_count") == 1
    assert registry.get_sample_value("volcano_unschedule_task_count", {"job_id": "short"}) == 4
    assert registry.get_sample_value("volcano_unschedule_task_count", {"job_id": "enough"}) is None


def test_jobs_of_one_name_in_two_namespaces_are_added_up(reporter, registry):
    jobs = {JobKey(space, "same"): JobReport(tasks=3, ready=0, min_available=3, message="no") for space in "ab"}

    reporter.ended(CycleReport(jobs=jobs, pending_tasks=6), TIMING)

    assert registry.get_sample_value("volcano_unschedule_task_count", {"job_id": "same"}) == 6
    assert registry.get_sample_value("volcano_unschedule_job_count") == 2


def test_only_jobs_that_differ_are_looked_at_again(reporter, registry):
    waits = JobReport(tasks=3, ready=0, min_available=3, message="no")
    first = {JobKey(space, name): waits for space in "ab" for name in ("same", "other")}
    second = {**first, JobKey("b", "same"): JobReport(tasks=3, ready=1, min_available=3, message="no")}
    del second[JobKey("a", "other")], second[JobKey("b", "other")]
    third = {JobKey("a", "same"): JobReport(tasks=3, ready=3, min_available=3, message="")}

    def shown(name: str) -> tuple[float | None, ...]:
        names = ("volcano_unschedule_task_count", "volcano_job_retry_counts")
        return tuple(registry.get_sample_value(metric, {"job_id": name}) for metric in names)

    for jobs, same, other, count in (
        (first, (6, 1), (6, 1), 4),
        (first, (6, 2), (6, 2), 4),
        (second, (5, 3), (None, None), 2),
        (third, (None, None), (None, None), 0),
        (first, (6, 1), (6, 1), 4),
    ):
        reporter.ended(CycleReport(jobs=jobs), TIMING)
        assert (shown("same"), shown("other")) == (same, other)
        assert registry.get_sample_value("volcano_unschedule_job_count") == count


def test_a_failing_plugin_is_logged_once_and_counted_every_time(reporter, registry):
    failing = CycleReport(failures=["plugin binpack failed in node_order: a bug"])

    first, second = told(reporter, failing), told(reporter, failing)

    assert [line["event"] for line in first] == ["plugins failed", "cycle"]
    assert [line["event"] for line in second] == ["cycle"]
    assert registry.get_sample_value("volcano_py_plugin_failures_total") == 2


def test_queues_are_shown_until_they_are_not_reported_any_more(reporter, registry):
    has = {"cpu": 1500.0, "memory": 2048.0, "nvidia.com/gpu": 2000.0}
    queue = QueueReport(
        weight=3, share=0.5, overused=True, allocated=has, request=has, deserved={"cpu": 3000.0}, inqueue={}
    )
    labels = {"queue_name": "ml"}

    def shown(name: str, **more: str) -> float | None:
        return registry.get_sample_value(f"volcano_queue_{name}", {**labels, **more})

    reporter.ended(CycleReport(queues={"ml": queue}), TIMING)

    assert (shown("allocated_milli_cpu"), shown("request_memory_bytes")) == (1500, 2048)
    assert (shown("deserved_milli_cpu"), shown("deserved_memory_bytes")) == (3000, 0)
    assert shown("allocated_scalar_resources", resource="nvidia.com/gpu") == 2000
    assert (shown("share"), shown("weight"), shown("overused")) == (0.5, 3, 1)

    reporter.ended(CycleReport(), TIMING)

    assert shown("share") is None
    assert shown("allocated_scalar_resources", resource="nvidia.com/gpu") is None


def test_the_series_of_a_resource_that_a_queue_no_longer_holds_is_zero(reporter, registry):
    def queue(**amounts: float) -> CycleReport:
        report = QueueReport(1, 0.0, False, allocated=amounts, request={}, deserved={}, inqueue={})
        return CycleReport(queues={"ml": report})

    reporter.ended(queue(pods=2.0), TIMING)
    reporter.ended(queue(cpu=100.0), TIMING)

    labels = {"queue_name": "ml", "resource": "pods"}
    assert registry.get_sample_value("volcano_queue_allocated_scalar_resources", labels) == 0


JOB = JobKey("ns", "train")
SHARE = {"job_ns": "ns", "job_id": "train"}


def test_shares_of_jobs_are_shown_and_a_job_that_holds_nothing_more_has_none(reporter, registry):
    reporter.ended(CycleReport(job_shares={JOB: 0.25}), TIMING)
    assert registry.get_sample_value("volcano_job_share", SHARE) == 0.25

    reporter.ended(CycleReport(), TIMING)

    assert registry.get_sample_value("volcano_job_share", SHARE) == 0


def test_a_job_that_is_gone_loses_its_series(reporter, registry, store, clock):
    store.set_job(JobRecord(JOB, "uid", queue="default"))
    reporter.ended(CycleReport(job_shares={JOB: 0.25}), TIMING)
    clock.advance(60)
    reporter.ended(CycleReport(), TIMING)
    assert registry.get_sample_value("volcano_job_share", SHARE) == 0

    store.remove_job(JOB)
    clock.advance(60)
    reporter.ended(CycleReport(), TIMING)

    assert registry.get_sample_value("volcano_job_share", SHARE) is None


def test_the_report_of_the_last_cycle_is_kept(reporter, clock):
    assert reporter.last is None
    report = CycleReport(pending_tasks=2)

    reporter.ended(report, TIMING)

    assert reporter.last == (clock.now(), report)


def test_a_slow_plugin_is_logged_once_with_its_seconds_and_a_remedy_and_counted_every_time(reporter, registry):
    report = CycleReport(plugin_seconds={("mine", "node_order"): 0.7, ("mine", "predicate"): 0.1, ("drf", "x"): 0.9})
    report.plugin_longest = {("mine", "node_order"): 0.3, ("mine", "predicate"): 0.1, ("drf", "x"): 0.2}

    first, second = ([line for line in told(reporter, report) if line["event"] == "plugin is slow"] for _ in range(2))

    (line,) = first
    assert (line["plugin"], line["hook"], line["longest_call_s"], line["in_cycle_s"]) == (
        "mine",
        "node_order",
        0.3,
        0.7,
    )
    assert "answer with whole arrays" in line["what_to_do"]
    assert second == []
    assert registry.get_sample_value("volcano_py_plugin_slow_cycles_total", {"plugin": "mine"}) == 2


def test_many_short_calls_of_a_built_in_plugin_add_up_to_slow_and_are_logged_again_with_a_new_policy(reporter):
    report = CycleReport(plugin_seconds={("drf", "on_session_open"): 1.2})

    told(reporter, report)
    reporter.new_policy()
    lines = told(reporter, report)

    (line,) = (line for line in lines if line["event"] == "plugin is slow")
    assert line["what_to_do"].startswith("report it with the number of nodes and pods")


def test_what_is_wrong_with_a_queue_is_logged_when_it_changes_and_counted(reporter, registry):
    def ended(**problems: str) -> list[tuple[str, str]]:
        with capture_logs() as logs:
            reporter.ended(CycleReport(queue_problems=problems), TIMING)
        return [(entry["event"], entry["queue"]) for entry in logs if "queue" in entry]

    assert ended(ml="no parent", etl="no parent") == [("queue misconfigured", "etl"), ("queue misconfigured", "ml")]
    assert ended(ml="no parent", etl="no parent") == []
    assert registry.get_sample_value("volcano_py_queue_problems") == 2
    assert ended(ml="a circle") == [("queue in order again", "etl"), ("queue misconfigured", "ml")]
    assert registry.get_sample_value("volcano_py_queue_problems") == 1


def test_a_queue_has_a_weight_and_limits_only_if_a_plugin_reports_them(reporter, registry):
    amounts = {"cpu": 1000.0}
    report = QueueReport(
        None, 0.5, False, amounts, amounts, amounts, {}, capacity={"cpu": 9.0}, real_capacity={"cpu": 8.0}
    )

    reporter.ended(CycleReport(queues={"ml": report}), TIMING)

    def shown(name: str) -> float | None:
        return registry.get_sample_value(f"volcano_queue_{name}", {"queue_name": "ml"})

    assert (shown("weight"), shown("capacity_milli_cpu"), shown("real_capacity_milli_cpu")) == (None, 9, 8)
    reporter.ended(CycleReport(), TIMING)
    assert shown("capacity_milli_cpu") is None


def test_what_a_plugin_no_longer_reports_of_a_queue_is_not_shown(reporter, registry):
    has = {"cpu": 1500.0, "nvidia.com/gpu": 2000.0}

    def show(**more: Any) -> None:
        queue = QueueReport(share=0.5, overused=False, allocated=has, request={}, deserved={}, inqueue={}, **more)
        reporter.ended(CycleReport(queues={"ml": queue}), TIMING)

    def shown(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"volcano_queue_{name}", {"queue_name": "ml", **labels})

    show(weight=None, capacity=has, real_capacity=has)
    assert (shown("capacity_milli_cpu"), shown("weight")) == (1500, None)
    show(weight=3)
    assert [shown(name) for name in ("capacity_milli_cpu", "real_capacity_memory_bytes")] == [None, None]
    assert shown("capacity_scalar_resources", resource="nvidia.com/gpu") is None
    assert (shown("allocated_scalar_resources", resource="nvidia.com/gpu"), shown("weight")) == (2000, 3)
    show(weight=None, capacity=has, real_capacity=has)
    assert (shown("capacity_milli_cpu"), shown("weight")) == (1500, None)


def test_series_of_jobs_that_are_gone_vanish_when_metrics_are_asked_for_and_no_cycle_runs(reporter, metrics, registry):
    metrics.jobs.placed(("a", "gone"), "default", created=100.0, now=101.0)

    reporter.sweep()

    assert "gone" not in generate_latest(registry).decode()


def test_what_was_kept_and_is_not_true_is_counted_and_named(reporter, registry):
    wrong = Difference(JobKey("ns", "train"), "turn", "no task finds a node", "train-0 on n1")

    lines = told(reporter, CycleReport(jobs_verified=9, differences=[wrong] * 7))

    warnings = [line for line in lines if line["log_level"] == "warning"]
    assert len(warnings) == 5
    assert (warnings[0]["job"], warnings[0]["about"], warnings[0]["anew"]) == ("ns/train", "turn", "train-0 on n1")
    assert warnings[0]["count"] == 7
    assert registry.get_sample_value("volcano_py_verify_differences_total") == 7
    assert registry.get_sample_value("volcano_py_verified_jobs_total") == 9
