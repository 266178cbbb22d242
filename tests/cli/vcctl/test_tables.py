"""The tables of Volcano's programs, column by column, with none, one and many rows, and with long names."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.vcctl.canned import Canned, call_of
from volcano_py.cli.vcctl import flow, job_reading, pod, queue
from volcano_py.kube.resource import PODGROUPS

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LONG = "a-name-that-is-longer-than-every-column-of-every-table-may-be-wide-by-default"


def when(**ago: float) -> str:
    return (NOW - timedelta(**ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def vcjob(name: str, namespace: str = "default", phase: str = "Running") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": when(days=2)},
        "spec": {"minAvailable": 3, "queue": "research", "tasks": [{"replicas": 2}, {"replicas": 5}]},
        "status": {
            "state": {"phase": phase},
            "pending": 1,
            "running": 2,
            "succeeded": 3,
            "failed": 4,
            "unknown": 5,
            "retryCount": 6,
        },
    }


def printed(run: Any, line: str, *objects: dict[str, Any], groups: tuple[dict[str, Any], ...] = ()) -> str:
    out = io.StringIO()
    call = call_of(line, Canned({PODGROUPS: list(groups)}, list(objects)), out, NOW)
    assert run(call) == 0
    return out.getvalue()


def test_jobs() -> None:
    assert printed(job_reading.list_jobs, "job list", vcjob("train"), vcjob("b", phase="Terminating")) == (
        "Name    Creation       Phase       JobType     Replicas    Min   Pending   Running   Succeeded   Failed    "
        "Unknown     RetryCount\n"
        "train   2026-02-27     Running     Batch       7           3     1         2         3           4         "
        "5           6         \n"
        "b       2026-02-27     Terminating Batch       7           3     1         2         3           4         "
        "5           6         \n"
    )


def test_jobs_of_all_namespaces() -> None:
    assert printed(job_reading.list_jobs, "job list -A", vcjob("train", "a")).splitlines() == [
        "Namespace   Name    Creation       Phase       JobType     Replicas    Min   Pending   Running   Succeeded   "
        "Failed    Unknown     RetryCount",
        "a           train   2026-02-27     Running     Batch       7           3     1         2         3           "
        "4         5           6         ",
    ]


@pytest.mark.parametrize(
    ("spec", "status", "shown"),
    [
        ({"minAvailable": 3}, {"minAvailable": 4}, "3"),
        ({}, {"minAvailable": 4}, "4"),
        ({"minAvailable": 0}, {}, "7"),
        ({}, {}, "7"),
        ({"tasks": [{"replicas": 2, "minAvailable": 1}, {"replicas": 5}]}, {}, "6"),
        (
            {"tasks": [{"replicas": 8, "partitionPolicy": {"partitionSize": 2, "minPartitions": 3}}, {"replicas": 1}]},
            {},
            "7",
        ),
    ],
)
def test_a_minimum_that_nobody_gave_is_the_default(spec: dict[str, Any], status: dict[str, Any], shown: str) -> None:
    job = vcjob("train")
    job["spec"] = {"tasks": job["spec"]["tasks"], **spec}
    job["status"].update(status)

    assert printed(job_reading.list_jobs, "job list", job).splitlines()[1].split()[5] == shown
    assert f"  Min Available:     \t{shown}\n" in printed(job_reading.view_job, "job view train", job)


@pytest.mark.parametrize(("line", "run"), [("job list", job_reading.list_jobs), ("pod list", pod.list_pods)])
def test_an_empty_namespace_is_all_of_them_with_a_column(line: str, run: Any) -> None:
    listed = vcjob("train", "a") if line == "job list" else pods_of("Running")

    assert printed(run, f"{line} -n=", listed) == printed(run, f"{line} -A", listed)
    assert printed(run, f"{line} -n=", listed).startswith("Namespace")


def test_labels_and_annotations_keep_their_letters() -> None:
    job = vcjob("train")
    job["metadata"].update(labels={"team": "a"}, annotations={"owner": "Jörg 山"})

    assert 'Annotations:\t{"owner":"Jörg 山"}\n' in printed(job_reading.view_job, "job view train", job)


def test_jobs_with_queue_priority_and_age() -> None:
    head, row = printed(job_reading.list_jobs, "job list -o wide", vcjob("train")).splitlines()

    assert head.split()[-3:] == ["Queue", "Priority", "Age"]
    assert row.split()[-3:] == ["research", "<none>", "2d"]


def pods_of(phase: str, **more: Any) -> dict[str, Any]:
    labels = {"volcano.sh/job-name": "train", "volcano.sh/queue-name": "research"}
    return {
        "metadata": {"name": "train-0", "namespace": "a", "labels": labels, "creationTimestamp": when(minutes=5)},
        "spec": {"containers": [{"name": "c"}], "nodeName": "n1"},
        "status": {"phase": phase, **more},
    }


def test_pods() -> None:
    running = pods_of(
        "Running", containerStatuses=[{"name": "c", "ready": True, "restartCount": 2, "state": {"running": {}}}]
    )

    assert printed(pod.list_pods, "pod list", running) == (
        "Name           Ready      Status         Restart  Age       \n"
        "train-0        1/1        Running        2        5m        \n"
    )
    assert printed(pod.list_pods, "pod list -A", running) == (
        "Namespace Name           Ready      Status         Restart  Age       \n"
        "a         train-0        1/1        Running        2        5m        \n"
    )


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ({"phase": "Pending"}, "Pending"),
        ({"phase": "Failed", "reason": "Evicted"}, "Evicted"),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            "SchedulingGated",
        ),
        (
            {"phase": "Running", "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
            "CrashLoopBackOff",
        ),
        ({"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]}, "ExitCode:3"),
        (
            {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 1, "signal": 9}}}]},
            "Signal:9",
        ),
        (
            {"phase": "Pending", "initContainerStatuses": [{"state": {"waiting": {"reason": "PodInitializing"}}}]},
            "Init:0/1",
        ),
        (
            {"phase": "Pending", "initContainerStatuses": [{"state": {"terminated": {"exitCode": 1}}}]},
            "Init:ExitCode:1",
        ),
    ],
)
def test_the_state_of_a_pod_is_kubectls_word(status: dict[str, Any], word: str) -> None:
    one = pods_of("")
    one["spec"]["initContainers"] = [{"name": "i"}]
    one["status"] = status

    assert printed(pod.list_pods, "pod list", one).splitlines()[1].split()[2] == word


def test_a_pod_that_is_being_deleted_is_terminating() -> None:
    one = pods_of("Running")
    one["metadata"]["deletionTimestamp"] = when(seconds=1)

    assert "Terminating" in printed(pod.list_pods, "pod list", one)


GROUPS = tuple(
    {"metadata": {"name": f"g{number}", "namespace": "a"}, "spec": {"queue": "research"}, "status": {"phase": phase}}
    for number, phase in enumerate(["Running", "Running", "Pending", "Inqueue", "Completed", "Unknown", ""])
)
RESEARCH: dict[str, Any] = {
    "metadata": {"name": "research"},
    "spec": {"weight": 3, "parent": "root", "capability": {"cpu": "8"}},
    "status": {"state": "Open", "allocated": {"cpu": "2"}, "running": 77},
}


def test_queues_count_their_groups_instead_of_believing_their_status() -> None:
    assert printed(queue.list_queues, "queue list", RESEARCH, groups=GROUPS) == (
        "Name                     Weight  State   Parent  Inqueue Pending Running Unknown Completed\n"
        "research                 3       Open    root    1       1       2       1       1       \n"
    )
    assert printed(queue.queues_or_queue, "vqueues", RESEARCH, groups=GROUPS) == (
        "Name                     Weight  State   Inqueue Pending Running Unknown \n"
        "research                 3       Open    1       1       2       1       \n"
    )


def test_one_queue_has_the_columns_of_the_list() -> None:
    assert printed(queue.get_queue, "queue get -n research", RESEARCH, groups=GROUPS) == printed(
        queue.list_queues, "queue list", RESEARCH, groups=GROUPS
    )


def test_queues_with_what_they_may_use_and_use() -> None:
    row = printed(queue.list_queues, "queue list -o wide", RESEARCH).splitlines()[1]

    assert row.split()[-2:] == ["cpu=8", "cpu=2"]


def flow_of(name: str, phase: str = "Running") -> dict[str, Any]:
    metadata = {"name": name, "namespace": "a", "creationTimestamp": when(hours=3)}
    return {"metadata": metadata, "status": {"state": {"phase": phase}}}


def test_job_flows_and_templates() -> None:
    assert printed(flow.list_jobflow, "jobflow list", flow_of("nightly")) == (
        "Name       Namespace    Phase      Age    \nnightly    a            Running    3h     \n"
    )
    assert printed(flow.list_jobtemplate, "jobtemplate list", flow_of("nightly")) == (
        "Name       Namespace    \nnightly    a            \n"
    )


LISTS = [
    (job_reading.list_jobs, "job list", vcjob),
    (job_reading.list_jobs, "job list -A", vcjob),
    (job_reading.list_jobs, "job list -o wide", vcjob),
    (pod.list_pods, "pod list", lambda name: {**pods_of("Running"), "metadata": {"name": name, "namespace": name}}),
    (
        pod.list_pods,
        "pod list -A -o wide",
        lambda name: {**pods_of("Running"), "metadata": {"name": name, "namespace": name}},
    ),
    (queue.list_queues, "queue list", lambda name: {"metadata": {"name": name}, "spec": {"parent": name}}),
    (queue.list_queues, "queue list -o wide", lambda name: {"metadata": {"name": name}, "spec": {"parent": name}}),
    (queue.queues_or_queue, "vqueues", lambda name: {"metadata": {"name": name}}),
    (flow.list_jobflow, "jobflow list", flow_of),
    (flow.list_jobtemplate, "jobtemplate list -o wide", flow_of),
]


@pytest.mark.parametrize(("run", "line", "built"), LISTS, ids=[line for _, line, _ in LISTS])
def test_every_table_with_none_one_and_many_rows_keeps_its_columns_apart(run: Any, line: str, built: Any) -> None:
    assert printed(run, line) == "No resources found\n"
    assert len(printed(run, line, built("one")).splitlines()) == 2

    names = [f"n{number}" for number in range(499)] + [LONG]
    head, *rows = printed(run, line, *map(built, names)).splitlines()
    assert len(rows) == 500
    assert all(name in row.split() for name, row in zip(names, rows, strict=True))
    assert len({len(row) for row in rows}) == 1 or "wide" in line
    starts = [head.index(title) for title in head.split()]
    assert all(start == 0 or row[start - 1] == " " for row in rows for start in starts), "a cell touches the next one"
