"""Jobs on a real API server: phases and counters, limits of restarts, evictions, delays, ends of jobs."""

from __future__ import annotations

import pytest

from tests.e2e.jobs import Job, Jobs, phase_of
from tests.e2e.together import together
from tests.e2e.vcjobs import FOR_EVER, on, task, template

FIRST_TIME = "[ $RETRY = 0 ]"
ONCE = ("Pending", "Running", "Restarting")
SLOW = {"kubelet.volcano-py/stop-after": "3"}


# Phases and counters


@together
def test_a_job_that_succeeds_keeps_its_pods_and_counts(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 2, template("sleep 1"))])
    job.wait_phases("Pending", "Running", "Completed")
    job.wait("its group is gone", lambda: job.group() is None)
    job.rests()

    assert job.in_phase("Succeeded") == ["worker-0", "worker-1"]
    assert job.counts() == {"succeeded": 2}
    assert job.status["taskStatusCount"] == {"worker": {"phase": {"Succeeded": 2}}}
    assert [condition["status"] for condition in job.status["conditions"]] == ["Pending", "Running", "Completed"]
    assert job.status.get("version", 0) == job.status.get("retryCount", 0) == 0
    assert job.status["runningDuration"]


@together
def test_a_job_whose_pods_fail_without_a_policy_fails_and_keeps_them(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 2, template("sleep 1; exit 3"))])
    job.wait_phases("Pending", "Running", "Failed")
    job.rests()

    assert job.in_phase("Failed") == ["worker-0", "worker-1"]
    assert job.counts() == {"failed": 2}
    assert job.status["taskStatusCount"] == {"worker": {"phase": {"Failed": 2}}}
    assert job.status.get("version", 0) == 0


@together
def test_the_status_counts_pods_by_task_and_phase_while_the_job_runs(jobs: Jobs) -> None:
    job = jobs.create([task("a", 2), task("b", 2, template("[ $INDEX = 0 ] && exit 0; sleep infinity"))])
    job.wait("is counted", lambda: job.counts() == {"running": 3, "succeeded": 1})

    assert job.phases == ["Pending", "Running"]
    assert job.status["taskStatusCount"] == {
        "a": {"phase": {"Running": 2}},
        "b": {"phase": {"Running": 1, "Succeeded": 1}},
    }
    assert job.status["minAvailable"] == 4


@together
def test_a_job_that_may_lose_a_pod_completes_when_enough_pods_succeed(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 3, template("sleep 1; [ $INDEX = 0 ] && exit 1; exit 0"))], minAvailable=2)
    job.wait_phases("Pending", "Running", "Completed")

    assert job.counts() == {"succeeded": 2, "failed": 1}


@together
def test_a_job_that_needs_all_its_pods_fails_when_a_task_has_too_few_successes(jobs: Jobs) -> None:
    pods = template("sleep 1; [ $INDEX = 0 ] && exit 1; exit 0")
    job = jobs.create([task("worker", 3, pods, minAvailable=3)], minAvailable=3)
    job.wait_phases("Pending", "Running", "Failed")

    assert job.counts() == {"succeeded": 2, "failed": 1}


@together
def test_a_job_with_too_few_running_pods_is_pending_again(jobs: Jobs) -> None:
    names, selector = jobs.cluster.own_nodes()
    job = jobs.create([task("worker", 2, template(selector=selector))])
    job.wait_phases("Pending", "Running")
    jobs.cluster.cordon(names[0])
    job.evict("worker-1")
    job.wait_phases("Pending", "Running", "Pending")
    jobs.cluster.uncordon(names[0])
    job.wait_phases("Pending", "Running", "Pending", "Running")

    assert job.status.get("retryCount", 0) == 0


@together
def test_pods_that_terminate_slowly_are_shown_until_they_are_gone(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 2, template(annotations=SLOW))])
    job.wait_phases("Pending", "Running")
    job.command("RestartJob")
    job.wait_phases(*ONCE, "Pending", "Running")

    shown = [each for each in job.seen if phase_of(each.obj) == "Restarting"]
    assert shown[0].obj["status"]["terminating"] == 2, job.story()
    assert job.entered("Pending", 1).at - shown[0].at > 2.0, "pods of the old start were still there"


@together
def test_the_group_of_a_job_asks_for_what_its_pods_need(jobs: Jobs) -> None:
    job = jobs.create(
        [task("a", 2, minAvailable=1), task("b", 1, template(cpu="20m"))],
        meta={"labels": {"team": "blue"}, "annotations": {"volcano.sh/preemptable": "true"}},
    )
    job.wait_phases("Pending", "Running")
    group = job.group()

    assert group is not None
    assert group["metadata"]["name"] == f"{job.name}-{job.uid}"
    assert group["metadata"]["labels"]["team"] == "blue"
    assert group["metadata"]["annotations"]["volcano.sh/preemptable"] == "true"
    assert group["spec"]["queue"] == "default"
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["minTaskMember"] == {"a": 1, "b": 1}
    asked = group["spec"]["minResources"]
    assert {name: asked[name] for name in ("pods", "cpu", "requests.cpu")} == {
        "pods": "3",
        "cpu": "40m",
        "requests.cpu": "40m",
    }


@together
def test_a_job_whose_pods_cannot_be_scheduled_says_why(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 1, template(cpu="1000"))])
    job.wait("an event says why", lambda: job.events("PodGroupPending"))

    (event,) = job.events("PodGroupPending")
    assert event["type"] == "Warning"
    assert "unschedulable" in event["message"].lower()


# Limits


@together
@pytest.mark.parametrize("limit", [1, 3])
def test_a_job_starts_as_often_as_its_limit_says_and_keeps_the_pod_that_failed_last(jobs: Jobs, limit: int) -> None:
    script = f"[ $INDEX = 0 ] && await go-$RETRY && exit 3; {FOR_EVER}"
    job = jobs.create([task("worker", 2, template(script))], policies=[on("PodFailed", "RestartJob")], maxRetry=limit)
    for retries in range(limit):
        job.wait_phases(*ONCE * retries, "Pending", "Running")
        job.say(f"go-{retries}")
    job.wait_phases(*ONCE * limit, "Failed")
    job.wait("only that pod is left", lambda: set(job.uids()) == {"worker-0"})
    job.rests()

    assert job.status["retryCount"] == job.status["version"] == limit
    assert job.counts() == {"failed": 1}
    assert job.in_phase("Failed") == ["worker-0"]
    assert len(job.pod_histories()) == 2 * limit


@together
@pytest.mark.parametrize("restart", ["OnFailure", "Always"])
def test_a_task_fails_when_its_containers_were_restarted_as_often_as_its_limit_says(jobs: Jobs, restart: str) -> None:
    pods = template("await go; [ $RESTARTS -lt 1 ] && exit 1; sleep infinity", restart=restart)
    job = jobs.create([task("worker", 2, pods, maxRetry=2, policies=[on("TaskFailed", "TerminateJob")])])
    job.wait_phases("Pending", "Running")
    job.say("go", "worker-0")
    job.wait("one container is restarted", lambda: restarts(job) == 1)
    job.stays("one restart is no failure", lambda: job.phase == "Running")
    job.say("go", "worker-1")
    job.wait_phases("Pending", "Running", "Terminating", "Terminated")


@together
def test_a_limit_of_a_task_counts_again_after_the_restart_of_the_task(jobs: Jobs) -> None:
    pods = template(f"[ $RETRY -lt 2 ] && await go-$RETRY && exit 1; {FOR_EVER}", restart="OnFailure")
    policies = [on("TaskFailed", "RestartTask")]
    job = jobs.create([task("worker", 1, pods, maxRetry=2, policies=policies)], maxRetry=5)
    for retries in (0, 1):
        job.wait_phases(*ONCE * retries, "Pending", "Running")
        job.say(f"go-{retries}")
    job.wait_phases(*ONCE, *ONCE, "Pending", "Running")
    job.rests()

    assert job.status["retryCount"] == 2
    assert job.times("RestartTask") == 2


@together
def test_a_task_that_is_never_restarted_by_its_kubelet_has_a_limit_for_restarts_of_its_pods(jobs: Jobs) -> None:
    policies = [on("PodFailed", "RestartPod"), on("TaskFailed", "TerminateJob")]
    job = jobs.create([task("worker", 1, template("sleep 1; exit 1"), maxRetry=2, policies=policies)], maxRetry=10)
    job.wait_phase("Terminated")

    assert 1 <= job.times("RestartPod") <= 2, job.story()
    assert job.times("TerminateJob") == 1


# Evictions


@together
def test_an_evicted_pod_is_created_again_without_a_policy(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 3)], minAvailable=2)
    job.wait_running("worker-0", "worker-1", "worker-2")
    old = job.uids()
    job.evict("worker-1")
    job.wait("it is another pod", lambda: job.uids().get("worker-1", old["worker-1"]) != old["worker-1"])
    job.wait_running("worker-0", "worker-1", "worker-2")

    assert {name for name, uid in job.uids().items() if uid == old[name]} == {"worker-0", "worker-2"}
    assert job.status.get("retryCount", 0) == 0
    assert job.phases == ["Pending", "Running"]


@together
@pytest.mark.parametrize("grace_s", [0, 30])
def test_an_evicted_pod_leads_to_one_action_whether_or_not_it_reports_its_end(jobs: Jobs, grace_s: int) -> None:
    policies = [on("PodFailed", "RestartJob"), on("PodEvicted", "RestartJob")]
    job = jobs.create([task("worker", 2)], policies=policies, maxRetry=5)
    job.wait_phases("Pending", "Running")
    job.evict("worker-0", grace_s)
    job.wait_phases(*ONCE, "Pending", "Running")
    job.rests()

    assert job.status["retryCount"] == job.status["version"] == 1
    assert len(job.pod_histories()) == 4


@together
def test_an_eviction_with_a_delay_is_forgotten_when_the_new_pod_runs(jobs: Jobs) -> None:
    policies = [on("PodFailed", "RestartPod"), on("PodEvicted", "TerminateJob", "6s")]
    quiet = template(annotations={"kubelet.volcano-py/silent": ""})
    job = jobs.create([task("worker", 2, quiet)], policies=policies, maxRetry=5)
    job.wait_phases("Pending", "Running")
    job.evict("worker-0")
    job.wait("the delay is announced", lambda: job.executed("TerminateJob"))
    job.wait("both run", lambda: job.in_phase("Running") == ["worker-0", "worker-1"])
    job.stays("it is not terminated", lambda: not job.phase.startswith("Terminat"), 8.0)

    assert job.status.get("version", 0) == 0


@together
def test_a_pod_failure_is_delayed_as_long_as_its_policy_says(jobs: Jobs) -> None:
    pods = template(f"{FIRST_TIME} && [ $INDEX = 0 ] && await go && exit 1; {FOR_EVER}")
    job = jobs.create([task("worker", 2, pods)], policies=[on("PodFailed", "RestartJob", "3s")])
    job.wait_phases("Pending", "Running")
    job.say("go")
    job.wait_phases(*ONCE, "Pending", "Running")

    failed = min(
        seen.at for history in job.pod_histories() for seen in history if seen.obj["status"]["phase"] == "Failed"
    )
    waited = job.entered("Restarting").at - failed
    # Times of the API have whole seconds, so that the pod may seem to have failed up to a second earlier.
    assert 1.8 < waited < 8.0, f"{waited:.1f} s"
    assert any("after 3s" in event["message"] for event in job.executed("RestartJob"))


@together
def test_a_pod_that_runs_in_time_is_no_longer_pending_for_its_policy(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 2)], policies=[on("PodPending", "TerminateJob", "10s")])
    job.wait_phases("Pending", "Running")
    job.stays("it runs", lambda: job.phase == "Running", 12.0)


@together
def test_a_pod_that_cannot_be_scheduled_in_time_ends_its_job(jobs: Jobs) -> None:
    job = jobs.create([task("worker", 1, template(cpu="1000"))], policies=[on("PodPending", "AbortJob", "2s")])
    job.wait_phases("Pending", "Aborting", "Aborted")

    assert job.uids() == {}


@together
def test_an_unknown_group_restarts_its_job_also_after_the_first_restart(jobs: Jobs) -> None:
    names, selector = jobs.cluster.own_nodes()
    policies = [on("Unknown", "RestartJob")]
    job = jobs.create([task("worker", 2, template(selector=selector))], policies=policies, maxRetry=5)
    for retries in (1, 2):
        job.wait("runs", lambda: job.phase == "Running")
        jobs.cluster.cordon(names[0])
        job.evict("worker-1")
        job.wait("is restarted", lambda wanted=retries: job.status.get("retryCount") == wanted)  # type: ignore[misc]
        jobs.cluster.uncordon(names[0])
    job.wait_phase("Running")

    assert job.status["version"] == 2


@together
def test_the_group_of_the_old_start_is_no_reason_to_act_while_the_job_restarts(jobs: Jobs) -> None:
    pods = template(f"{FIRST_TIME} && [ $INDEX = 0 ] && await go && exit 1; {FOR_EVER}", annotations=SLOW)
    policies = [on("PodFailed", "RestartJob"), on("Unknown", "TerminateJob")]
    job = jobs.create([task("worker", 3, pods)], policies=policies)
    job.wait_phases("Pending", "Running")
    job.say("go")
    job.wait_phases(*ONCE, "Pending", "Running")
    job.rests()

    assert job.status["retryCount"] == job.status["version"] == 1


# Which policy


@together
def test_a_policy_of_a_task_is_chosen_before_one_of_the_job(jobs: Jobs) -> None:
    pods = template(f"await go; exit 1; {FOR_EVER}")
    first = task("a", 1, pods, policies=[on("PodFailed", "CompleteJob")])
    job = jobs.create([first, task("b", 1)], policies=[on("PodFailed", "TerminateJob")])
    job.wait_phases("Pending", "Running")
    job.say("go", "a-0")
    job.wait_phases("Pending", "Running", "Completing", "Completed")


@together
def test_a_policy_of_the_job_is_chosen_when_those_of_the_task_do_not_match(jobs: Jobs) -> None:
    pods = template("await go; exit 4")
    first = task("a", 1, pods, policies=[on(5, "CompleteJob"), on("PodEvicted", "AbortJob")])
    job = jobs.create([first, task("b", 1)], policies=[on("PodEvicted", "AbortJob"), on(4, "TerminateJob")])
    job.wait_phases("Pending", "Running")
    job.say("go", "a-0")
    job.wait_phases("Pending", "Running", "Terminating", "Terminated")


@together
def test_the_first_policy_that_matches_is_chosen(jobs: Jobs) -> None:
    job = jobs.create(
        [task("a", 1, template("await go; exit 4")), task("b", 1)],
        policies=[on(4, "AbortJob"), on("PodFailed", "TerminateJob")],
    )
    job.wait_phases("Pending", "Running")
    job.say("go", "a-0")
    job.wait_phases("Pending", "Running", "Aborting", "Aborted")


@together
def test_another_exit_code_is_no_business_of_a_policy(jobs: Jobs) -> None:
    job = jobs.create([task("a", 1, template("await go; exit 4")), task("b", 1)], policies=[on(3, "TerminateJob")])
    job.wait_phases("Pending", "Running")
    job.say("go", "a-0")
    job.wait("the failure is counted", lambda: job.counts() == {"running": 1, "failed": 1})
    job.stays("it runs", lambda: job.phase == "Running")


@together
def test_a_task_that_completes_alone_leaves_the_others_running(jobs: Jobs) -> None:
    job = jobs.create([task("a", 2, template("sleep 1")), task("b", 1)], policies=[on("TaskFailed", "TerminateJob")])
    job.wait("task a has ended", lambda: job.counts() == {"running": 1, "succeeded": 2})
    job.stays("it runs", lambda: job.phase == "Running")


# Ends of jobs


@together
@pytest.mark.parametrize(("script", "end"), [("sleep 1", "Completed"), ("sleep 1; exit 1", "Failed")])
@pytest.mark.parametrize("ttl", [0, 2])
def test_a_finished_job_is_removed_with_its_pods_when_its_time_is_over(
    jobs: Jobs, ttl: int, script: str, end: str
) -> None:
    job = jobs.create([task("worker", 2, template(script))], ttlSecondsAfterFinished=ttl)
    job.wait("is gone", job.gone)
    job.wait("its pods are gone", lambda: not job.uids())

    # Not when it is gone: the garbage collector of Kubernetes looks for new kinds of objects only every 30 seconds.
    deleted = next(one for one in job.seen if "deletionTimestamp" in one.obj["metadata"]).at
    assert job.phases == ["Pending", "Running", end]
    # Times of the API have whole seconds, so that a job may seem to have ended up to a second earlier.
    assert ttl - 1.0 <= deleted - job.entered(end).at < ttl + 8.0


@together
def test_a_terminated_job_is_removed_and_an_aborted_one_is_kept(jobs: Jobs) -> None:
    one, other = (jobs.create([task("worker", 1)], ttlSecondsAfterFinished=1) for _ in range(2))
    for job in (one, other):
        job.wait_phases("Pending", "Running")
    one.command("TerminateJob")
    other.command("AbortJob")
    one.wait("is gone", one.gone)
    other.wait_phases("Pending", "Running", "Aborting", "Aborted")
    other.stays("it is kept", lambda: not other.gone(), 3.0)


@together
def test_a_job_completes_with_as_many_successes_as_it_asks_for(jobs: Jobs) -> None:
    pods = template(f"[ $INDEX = 1 ] && sleep 2 && exit 0; {FOR_EVER}")
    job = jobs.create([task("worker", 3, pods)], minSuccess=1)
    job.wait_phases("Pending", "Running", "Completed")
    job.wait("the others are gone", lambda: set(job.uids()) == {"worker-1"})
    job.rests()

    assert job.counts() == {"succeeded": 1}


@together
def test_a_job_fails_when_all_pods_have_ended_with_too_few_successes(jobs: Jobs) -> None:
    job = jobs.create(
        [task("worker", 3, template("sleep 2; [ $INDEX = 0 ] && exit 0; exit 1"))], minAvailable=1, minSuccess=2
    )
    job.wait_phases("Pending", "Running", "Failed")

    assert job.counts() == {"succeeded": 1, "failed": 2}


def restarts(job: Job) -> int:
    """Return how often containers of the job's pods were restarted."""
    statuses = [status for pod in job.pods().values() for status in pod["status"].get("containerStatuses", ())]
    return sum(status["restartCount"] for status in statuses)
