"""Jobs on a real API server while no controller works: what happens meanwhile is neither lost nor done twice."""

from __future__ import annotations

import time

import pytest

from tests.e2e.jobs import Jobs
from tests.e2e.vcjobs import on, task, template

START = ("Pending", "Running")
AGAIN = ("Restarting", "Pending", "Running")
QUIET = {"kubelet.volcano-py/silent": ""}


@pytest.mark.parametrize("quiet", [True, False], ids=["without-a-report", "with-a-report"])
def test_a_pod_that_was_evicted_meanwhile_counts_as_evicted(jobs: Jobs, quiet: bool) -> None:
    pods = template(annotations=QUIET if quiet else {})
    job = jobs.create([task("worker", 2, pods)], policies=[on("PodEvicted", "RestartJob")])
    job.wait_phases(*START)
    with jobs.cluster.without_controllers():
        job.evict("worker-0")
        job.wait("the pod is gone", lambda: "worker-0" not in job.uids())
    job.wait_phases(*START, *AGAIN)
    job.rests()

    assert job.status["retryCount"] == job.status["version"] == 1
    assert job.times("RestartJob") == 1


def test_a_pod_that_failed_meanwhile_counts_as_failed(jobs: Jobs) -> None:
    pods = template("[ $RETRY = 0 ] && [ $INDEX = 0 ] && await go && exit 3; sleep infinity")
    job = jobs.create([task("worker", 2, pods)], policies=[on(3, "RestartJob")])
    job.wait_phases(*START)
    with jobs.cluster.without_controllers():
        job.say("go")
        job.wait("the pod has failed", lambda: job.in_phase("Failed") == ["worker-0"])
    job.wait_phases(*START, *AGAIN)

    assert job.status["retryCount"] == job.status["version"] == 1


def test_a_delayed_action_is_executed_in_time_by_the_controllers_that_follow(jobs: Jobs) -> None:
    pods = template("[ $RETRY = 0 ] && [ $INDEX = 0 ] && await go && exit 3; sleep infinity")
    job = jobs.create([task("worker", 2, pods)], policies=[on("PodFailed", "RestartJob", "10s")])
    job.wait_phases(*START)
    job.say("go")
    job.wait("the delay is announced", lambda: job.executed("RestartJob"))
    announced = time.monotonic()
    with jobs.cluster.without_controllers():
        time.sleep(1.0)
    job.wait_phases(*START, *AGAIN)

    assert 8.0 < job.entered("Restarting").at - announced < 14.0
    assert job.status["retryCount"] == 1


def test_a_delayed_action_for_an_evicted_pod_is_not_forgotten(jobs: Jobs) -> None:
    """The eviction cannot be read from any object later; a new pod that cannot run does not end the delay."""
    names, selector = jobs.cluster.own_nodes()
    pods = template(annotations=QUIET, selector=selector)
    job = jobs.create([task("worker", 2, pods)], policies=[on("PodEvicted", "TerminateJob", "8s")])
    job.wait_phases(*START)
    jobs.cluster.cordon(names[0])
    job.evict("worker-0")
    job.wait("the delay is announced", lambda: job.executed("TerminateJob"))
    with jobs.cluster.without_controllers():
        time.sleep(1.0)
    job.wait("is terminated", lambda: job.phase == "Terminated")
    jobs.cluster.uncordon(names[0])


def test_a_command_that_was_sent_meanwhile_is_executed_once(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 2)])
    job.wait_phases(*START)
    with jobs.cluster.without_controllers():
        job.command("RestartJob")
        time.sleep(0.5)
    job.wait_phases(*START, *AGAIN)
    job.rests()

    assert job.status["retryCount"] == job.status["version"] == 1


def test_a_restart_goes_on_after_the_controllers_were_killed_in_the_middle(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 3, template(annotations={"kubelet.volcano-py/stop-after": "4"}))])
    job.wait_phases(*START)
    job.command("RestartJob")
    job.wait_phases(*START, "Restarting")
    with jobs.cluster.without_controllers(kill=True):
        time.sleep(0.5)
    job.wait_phases(*START, *AGAIN)
    job.rests()

    assert job.status["retryCount"] == job.status["version"] == 1
    assert len(job.pod_histories()) == 6


def test_a_job_that_was_scaled_meanwhile_has_its_new_size_and_nobody_calls_it_an_eviction(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 3)], policies=[on("PodEvicted", "TerminateJob")])
    job.wait_phases(*START)
    with jobs.cluster.without_controllers():
        job.scale(worker=1)
    job.wait_running("worker-0")
    job.rests()

    assert job.phases == list(START)
    assert job.events("ExecuteAction") == []


def test_a_job_that_was_deleted_meanwhile_is_not_made_again(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 2)])
    job.wait_phases(*START)
    with jobs.cluster.without_controllers():
        job.delete("Foreground")
        time.sleep(0.5)
    job.wait("is gone with its pods", lambda: job.gone() and not job.uids())
    job.stays("nothing is made again", lambda: not job.uids() and job.group() is None, 2.0)


def test_a_job_that_was_created_meanwhile_begins(jobs: Jobs) -> None:
    with jobs.cluster.without_controllers():
        job = jobs.create([task("worker", 2)])
    job.wait_phases(*START)


def test_controllers_that_start_again_write_nothing_to_a_job_that_rests(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 2)], plugins={"svc": [], "ssh": []})
    finished = jobs.create([task("worker", 2, template("sleep 1"))])
    job.wait_phases(*START)
    finished.wait_phases(*START, "Completed")
    job.rests()
    finished.rests()
    before = [len(each.seen) + sum(map(len, each.pod_histories())) for each in (job, finished)]
    with jobs.cluster.without_controllers():
        pass
    job.stays("no version is written", lambda: True, 3.0)

    assert [len(each.seen) + sum(map(len, each.pod_histories())) for each in (job, finished)] == before
