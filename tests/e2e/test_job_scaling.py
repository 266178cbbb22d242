"""Changes of a job's replicas on a real API server: up, down, to zero and back, whatever its pods are doing."""

from __future__ import annotations

import pytest

from tests.e2e.jobs import Jobs
from tests.e2e.together import together
from tests.e2e.vcjobs import on, task, template

START = ["Pending", "Running"]
SLOW = {"kubelet.volcano-py/stop-after": "3"}


def workers(count: int) -> list[str]:
    return [f"worker-{index}" for index in range(count)]


@together
def test_a_job_that_is_scaled_up_gets_the_pods_that_are_missing(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 2)])
    job.wait_running(*workers(2))
    old = job.uids()
    job.scale(worker=5)
    job.wait_running(*workers(5))
    job.wait("is counted", lambda: job.counts() == {"running": 5})

    assert old.items() <= job.uids().items()
    assert job.status["minAvailable"] == 5
    group = job.group()
    assert group is not None
    assert group["spec"]["minMember"] == 5
    assert group["spec"]["minTaskMember"] == {"worker": 5}
    assert group["spec"]["minResources"]["pods"] == "5"


@together
def test_a_job_that_is_scaled_down_loses_its_last_pods_and_nobody_calls_it_an_eviction(jobs: Jobs) -> None:
    policies = [on("PodEvicted", "TerminateJob"), on("PodFailed", "TerminateJob")]
    job = jobs.create([task("worker", 4)], policies=policies)
    job.wait_running(*workers(4))
    old = job.uids()
    job.scale(worker=2)
    job.wait_running(*workers(2))
    job.rests()

    assert {name: old[name] for name in workers(2)} == job.uids()
    assert job.phases == START
    assert job.counts() == {"running": 2}
    assert job.status.get("version", 0) == job.status.get("retryCount", 0) == 0
    assert job.events("ExecuteAction") == []


@together
def test_a_job_that_is_scaled_to_zero_waits_until_it_is_scaled_up_again(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 2)], policies=[on("PodEvicted", "TerminateJob")])
    job.wait_running(*workers(2))
    job.scale(worker=0)
    job.wait("all pods are gone", lambda: not job.uids() and not job.counts())
    job.stays("it is not at an end", lambda: job.phase in START)
    job.scale(worker=3)
    job.wait_running(*workers(3))
    job.wait("it runs", lambda: job.phase == "Running" and job.counts() == {"running": 3})

    assert set(job.phases) == set(START)


@together
def test_a_job_is_created_without_pods_and_scaled_up(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 0)])
    job.wait("has its first phase", lambda: job.phases)
    job.scale(worker=2)
    job.wait_running(*workers(2))
    job.wait_phase("Running")


@together
@pytest.mark.parametrize("replicas", [0, 1, 4])
def test_a_job_is_scaled_while_its_pods_cannot_be_scheduled(jobs: Jobs, replicas: int) -> None:
    names, selector = jobs.cluster.own_nodes()
    jobs.cluster.cordon(names[0])
    job = jobs.create([task("worker", 2, template(selector=selector))])
    job.wait("its pods wait", lambda: job.in_phase("Pending") == workers(2))
    job.scale(worker=replicas)
    job.wait("its pods wait", lambda: job.in_phase("Pending") == workers(replicas) == sorted(job.uids()))
    jobs.cluster.uncordon(names[0])
    job.wait_running(*workers(replicas))
    if replicas:
        job.wait_phases(*START)


@together
def test_a_pod_that_still_terminates_comes_again_when_its_job_is_scaled_up_in_time(jobs: Jobs) -> None:
    policies = [on("PodEvicted", "TerminateJob")]
    job = jobs.create([task("worker", 3, template(annotations=SLOW))], policies=policies)
    job.wait_running(*workers(3))
    old = job.uids()
    job.scale(worker=1)
    job.wait("two pods terminate", lambda: job.in_phase("Running") == workers(1))
    assert len(job.uids()) == 3
    job.scale(worker=3)
    job.wait("they are other pods", lambda: len(set(job.uids().items()) - set(old.items())) == 2)
    job.wait_running(*workers(3))
    job.rests()

    assert job.uids()["worker-0"] == old["worker-0"]
    assert job.counts() == {"running": 3}
    assert job.events("ExecuteAction") == []


@together
def test_a_job_is_scaled_while_it_restarts(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 2, template(annotations=SLOW))])
    job.wait_running(*workers(2))
    job.command("RestartJob")
    job.wait_phases(*START, "Restarting")
    job.scale(worker=3)
    job.wait_phases(*START, "Restarting", *START)
    job.wait_running(*workers(3))

    assert len(job.pod_histories()) == 5


@together
def test_one_task_is_scaled_and_the_others_stay(jobs: Jobs) -> None:
    job = jobs.create([task("a", 2), task("b", 1)], minAvailable=2)
    job.wait_running("a-0", "a-1", "b-0")
    old = job.uids()
    job.scale(minimum=2, a=1, b=2)
    job.wait_running("a-0", "b-0", "b-1")

    assert {name: uid for name, uid in old.items() if name != "a-1"}.items() <= job.uids().items()
    assert job.phases == START


@together
def test_a_job_is_complete_after_it_was_scaled_to_the_pods_that_have_succeeded(jobs: Jobs) -> None:
    pods = template("[ $INDEX = 0 ] && exit 0; sleep infinity")
    job = jobs.create([task("worker", 2, pods)])
    job.wait("one has succeeded", lambda: job.counts() == {"running": 1, "succeeded": 1})
    job.scale(worker=1)
    job.wait_phases(*START, "Completed")

    job.wait("the other pod is gone", lambda: job.counts() == {"succeeded": 1})


@together
def test_a_finished_job_gets_no_pods_when_it_is_scaled(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 1, template("sleep 1"))])
    job.wait_phases(*START, "Completed")
    job.scale(worker=3)
    job.rests()

    assert sorted(job.uids()) == workers(1)
    assert job.phases == [*START, "Completed"]
