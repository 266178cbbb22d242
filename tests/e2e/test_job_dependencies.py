"""Tasks that wait for other tasks, on a real API server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.jobs import Job, Jobs
from tests.e2e.together import together
from tests.e2e.vcjobs import on, task, template


def ready_after(seconds: float, script: str = "sleep infinity") -> dict[str, Any]:
    return template(script, annotations={"kubelet.volcano-py/ready-after": str(seconds)})


NEVER_READY = 1000.0


def after(*names: str, iteration: str | None = None) -> dict[str, Any]:
    """Return the fields of a task of one pod that depends on others."""
    depends: dict[str, Any] = {"name": list(names)}
    if iteration is not None:
        depends["iteration"] = iteration
    return {"dependsOn": depends, "minAvailable": 1}


def created(job: Job, pod: str) -> float:
    """Return when a pod was first seen."""
    (history,) = (each for each in job.pod_histories() if each[0].obj["metadata"]["name"] == f"{job.name}-{pod}")
    return history[0].at


def ready(job: Job, pod: str) -> float:
    """Return when a pod was first seen ready or at its end."""
    (history,) = (each for each in job.pod_histories() if each[0].obj["metadata"]["name"] == f"{job.name}-{pod}")
    return next(seen.at for seen in history if is_ready(seen.obj["status"]))


def is_ready(status: dict[str, Any]) -> bool:
    containers = status.get("containerStatuses", ())
    return status.get("phase") == "Succeeded" or (
        status.get("phase") == "Running" and all(each["ready"] for each in containers)
    )


@together
def test_a_chain_of_tasks_starts_one_after_the_other_as_each_becomes_ready(jobs: Jobs) -> None:
    job = jobs.create(
        [
            task("c", 1, **after("b")),
            task("b", 1, ready_after(1), **after("a")),
            task("a", 1, ready_after(1), minAvailable=1),
        ],
        minAvailable=1,
    )
    job.wait_running("a-0", "b-0", "c-0")

    assert ready(job, "a-0") <= created(job, "b-0")
    assert ready(job, "b-0") <= created(job, "c-0")


@together
def test_a_task_that_succeeds_is_ready(jobs: Jobs) -> None:
    job = jobs.create([task("a", 1, template("sleep 1"), minAvailable=1), task("b", 1, **after("a"))], minAvailable=1)
    job.wait("b runs", lambda: job.in_phase("Running") == ["b-0"])

    assert ready(job, "a-0") <= created(job, "b-0")


@together
def test_a_task_that_depends_on_any_of_two_starts_with_the_first(jobs: Jobs) -> None:
    job = jobs.create(
        [
            task("slow", 1, ready_after(NEVER_READY), minAvailable=1),
            task("quick", 1, minAvailable=1),
            task("last", 1, **after("slow", "quick", iteration="any")),
        ],
        minAvailable=2,
    )
    job.wait_running("last-0", "quick-0", "slow-0")


@together
@pytest.mark.parametrize("iteration", ["all", None])
def test_a_task_that_depends_on_all_of_two_waits_for_the_last(jobs: Jobs, iteration: str | None) -> None:
    job = jobs.create(
        [
            task("slow", 1, ready_after(NEVER_READY), minAvailable=1),
            task("quick", 1, minAvailable=1),
            task("last", 1, **after("slow", "quick", iteration=iteration)),
        ],
        minAvailable=2,
    )
    job.wait("both run", lambda: job.in_phase("Running") == ["quick-0", "slow-0"])
    job.stays("the last one waits", lambda: "last-0" not in job.uids(), 3.0)

    assert job.phases == ["Pending", "Running"]


@together
def test_a_task_is_ready_with_as_many_pods_as_it_needs(jobs: Jobs) -> None:
    pods = template("[ $INDEX = 0 ] && await go; exit 0")
    job = jobs.create([task("a", 3, pods, minAvailable=2), task("b", 1, **after("a"))], minAvailable=2)
    job.wait("b runs", lambda: "b-0" in job.in_phase("Running"))


@together
def test_the_order_holds_again_after_a_restart(jobs: Jobs) -> None:
    failing = template("[ $RETRY = 0 ] && await go && exit 1; sleep infinity")
    job = jobs.create(
        [task("a", 1, ready_after(2), minAvailable=1), task("b", 1, failing, **after("a"))],
        minAvailable=1,
        policies=[on("PodFailed", "RestartJob")],
    )
    job.wait_running("a-0", "b-0")
    old = job.uids()
    job.say("go")
    job.wait_phases("Pending", "Running", "Restarting", "Pending", "Running")
    job.wait_running("a-0", "b-0")

    new = [each for each in job.pod_histories() if each[0].obj["metadata"]["uid"] not in old.values()]
    first, second = sorted(new, key=lambda history: history[0].at)
    assert first[0].obj["metadata"]["name"].endswith("a-0")
    assert next(seen.at for seen in first if is_ready(seen.obj["status"])) <= second[0].at
