"""Metrics of the job controller have Volcano's names, types and labels."""

from prometheus_client import CollectorRegistry

from volcano_py.controllers.metrics import ControllerMetrics
from volcano_py.metrics.exposition import exposition


def lines(registry: CollectorRegistry, name: str) -> list[str]:
    """Return the lines of one metric as Prometheus reads them, without help."""
    text = b"".join(exposition(registry)).decode().splitlines()
    return [line for line in text if name in line and not line.startswith("# HELP")]


def test_a_job_that_ends_is_counted_under_volcanos_name_until_it_is_gone() -> None:
    metrics = ControllerMetrics(registry := CollectorRegistry())

    metrics.job_phase("ns/done", "q", "Running")
    metrics.job_phase("ns/done", "q", "Completed")
    metrics.job_phase("ns/broken", "q", "Failed")

    assert lines(registry, "volcano_job_completed_phase_count") == [
        "# TYPE volcano_job_completed_phase_count counter",
        'volcano_job_completed_phase_count{job_name="ns/done",queue_name="q"} 1.0',
    ]
    assert lines(registry, "volcano_job_failed_phase_count") == [
        "# TYPE volcano_job_failed_phase_count counter",
        'volcano_job_failed_phase_count{job_name="ns/broken",queue_name="q"} 1.0',
    ]

    metrics.job_gone("ns/done")
    metrics.job_gone("ns/never-seen")

    assert lines(registry, "volcano_job_completed_phase_count") == ["# TYPE volcano_job_completed_phase_count counter"]


def test_flows_are_counted_by_namespace_until_none_is_left_there() -> None:
    metrics = ControllerMetrics(registry := CollectorRegistry())
    for phase in ("Running", "Succeed", "Succeed", "Failed"):
        metrics.flow_phase("ns", phase)

    assert lines(registry, "volcano_jobflow_") == [
        "# TYPE volcano_jobflow_succeed_phase_count counter",
        'volcano_jobflow_succeed_phase_count{jobflow_namespace="ns"} 2.0',
        "# TYPE volcano_jobflow_failed_phase_count counter",
        'volcano_jobflow_failed_phase_count{jobflow_namespace="ns"} 1.0',
    ]

    metrics.flows_gone("ns")
    metrics.flows_gone("never-seen")

    assert [line for line in lines(registry, "volcano_jobflow_") if not line.startswith("#")] == []


def test_the_creation_of_pods_is_timed_in_volcanos_buckets() -> None:
    metrics = ControllerMetrics(registry := CollectorRegistry())

    metrics.pod_created(0.2)

    name = "volcano_controller_job_to_pod_creation_latency_milliseconds"
    bounds = [float(line.split('"')[1]) for line in lines(registry, f"{name}_bucket")]
    assert len(bounds) == 31
    assert (bounds[0], round(bounds[29]), bounds[30]) == (50.0, 60_000, float("inf"))
    assert f"{name}_sum 200.0" in lines(registry, f"{name}_sum")


def test_a_controller_in_which_nothing_happens_but_faults_is_broken() -> None:
    metrics = ControllerMetrics(CollectorRegistry())

    def turns(controller: str, *results: str) -> list[str]:
        for result in results:
            metrics.turn(controller, result)
        return metrics.broken()

    assert turns("pg-controller", *["fault", "retried"] * 19) == []
    assert turns("job-controller", *["fault", "retried", "done"] * 30) == []
    (reason,) = turns("pg-controller", "fault", "given_up")
    assert reason.startswith("pg-controller: its last 20 turns failed")
    assert turns("pg-controller", "done") == []
