"""Actions on a job: what policies ask for, from the event until the job runs again."""

from typing import Any

import msgspec
import pytest

from tests.controllers.job.builders import a_command, a_job_task, a_vcjob, on
from tests.controllers.job.world import World, done, numbers, restarted, running
from volcano_py.controllers.job import acting, bookkeeping
from volcano_py.controllers.job.members import Members
from volcano_py.controllers.job.phases import Counts

# Restarts


def test_a_restart_of_the_job_replaces_every_pod_and_its_group() -> None:
    world = running(on("PodFailed", "RestartJob"))
    before = {name: world.uid_of(name) for name in world.pods}
    world.pod_is("train-worker-1", "Failed", exit_code=3)
    world.settle()

    assert world.phase == "Restarting"
    assert world.job.status.terminating == 3
    assert numbers(world) == (1, 1)
    assert world.terminating() == sorted(before)
    assert world.group is None

    restarted(world)
    assert world.phases == ["Pending", "Running", "Restarting", "Pending", "Running"]
    assert not set(before.values()) & {world.uid_of(name) for name in world.pods}
    assert {body["metadata"]["annotations"]["volcano.sh/job-version"] for body in world.pods.values()} == {"1"}
    assert bookkeeping.RESTARTING_ALL not in world.job.status.controlled_resources


def test_a_restart_says_what_happened_to_which_pod_with_which_exit_code_under_which_policy() -> None:
    world = running({"exitCode": 3, "action": "RestartJob"})
    world.pod_is("train-worker-1", "Failed", exit_code=3)
    world.look()

    text = "pod ns/train-worker-1 failed with exit code 3; policy of the job: exitCode 3"
    assert done(world) == [f"Start to execute action RestartJob: {text}"]
    assert (world.job.status.state.reason, world.job.status.state.message) == ("PodFailed", text)


def test_a_policy_of_a_task_is_named() -> None:
    world = running(task=a_job_task(replicas=3, policies=[on("PodFailed", "RestartTask")]))
    world.pod_is("train-worker-1", "Failed", exit_code=1)
    world.look()

    assert world.job.status.state.message.endswith("policy of task worker: event PodFailed")


@pytest.mark.parametrize(
    ("action", "killed"),
    [
        ("RestartPod", ["train-a-1"]),
        ("RestartPartition", ["train-a-0", "train-a-1"]),
        ("RestartTask", ["train-a-0", "train-a-1", "train-a-2", "train-a-3"]),
    ],
)
def test_a_restart_of_a_part_kills_that_part_and_keeps_the_group_and_the_version(
    action: str, killed: list[str]
) -> None:
    partitions = {"partitionSize": 2, "totalPartitions": 2}
    world = World(
        a_vcjob(a_job_task("a", 4, partitionPolicy=partitions), a_job_task("b", 2), policies=[on("PodFailed", action)])
    )
    world.runs()
    before = {name: world.uid_of(name) for name in world.pods}
    assert world.group is not None
    group = world.group["metadata"]["uid"]
    world.pod_is("train-a-1", "Failed", exit_code=1)
    world.settle()
    assert world.terminating() == killed
    assert numbers(world) == (0, 1)

    restarted(world)
    assert world.phase == "Running"
    assert world.group is not None
    assert world.group["metadata"]["uid"] == group
    assert sorted(name for name in before if world.uid_of(name) != before[name]) == killed


def test_a_restart_of_a_partition_without_partitions_does_nothing() -> None:
    world = running(on("PodFailed", "RestartPartition"))
    world.pod_is("train-worker-1", "Failed", exit_code=1)
    world.settle()

    assert (world.phase, world.terminating()) == ("Running", [])


def test_the_last_restart_ends_the_job_and_keeps_pods_that_have_ended() -> None:
    world = running(on("PodFailed", "RestartJob"), maxRetry=2)
    world.pod_is("train-worker-0", "Failed", exit_code=1)
    world.settle()
    restarted(world)
    assert world.phase == "Running"

    world.pod_is("train-worker-2", "Failed", exit_code=1)
    world.settle()
    world.terminated_go()
    world.settle()

    assert world.phases[-2:] == ["Restarting", "Failed"]
    assert numbers(world) == (2, 2)
    assert world.alive() == ["train-worker-2"]
    assert world.job.status.state.reason == "MaxRetryReached"
    assert "train-worker-2 failed" in world.job.status.state.message


def test_a_job_that_ran_once_is_not_said_to_have_been_restarted() -> None:
    world = running(on("PodFailed", "RestartJob"), maxRetry=1)
    world.pod_is("train-worker-2", "Failed", exit_code=1)
    world.settle()
    world.terminated_go()
    world.settle()

    assert world.phase == "Failed"
    told = "not started again: retryCount is 1, and maxRetry is 1; last: "
    assert world.job.status.state.message.startswith(told)


@pytest.mark.parametrize("action", ["RestartPod", "RestartTask", "RestartPartition"])
@pytest.mark.parametrize("taken_over", [False, True])
def test_the_last_restart_of_a_part_keeps_pods_that_have_ended_too(action: str, taken_over: bool) -> None:
    partitions = {"totalPartitions": 1, "partitionSize": 3}
    world = running(
        on("PodFailed", action), task=a_job_task(replicas=3, partitionPolicy=partitions), maxRetry=1, minAvailable=1
    )
    world.pod_is("train-worker-0", "Failed", exit_code=3)
    world.look()
    assert world.phase == "Restarting"
    if taken_over:
        world.restart()
    world.settle()
    world.terminated_go()
    world.waits(2)
    world.settle()

    assert (world.phase, world.alive()) == ("Failed", ["train-worker-0"])
    assert (world.job.status.failed, world.job.status.retry_count) == (1, 1)
    assert "train-worker-0 failed with exit code 3" in world.job.status.state.message


def test_events_of_pods_that_a_restart_kills_do_not_restart_again() -> None:
    world = running(on("*", "RestartJob"))
    world.pod_is("train-worker-0", "Failed", exit_code=1)
    world.pod_is("train-worker-1", "Failed", exit_code=1)
    world.settle()
    world.pod_is("train-worker-2", "Failed", exit_code=1)
    restarted(world)

    assert numbers(world) == (1, 1)
    assert len(done(world)) == 1
    assert world.phase == "Running"


def test_two_pods_that_fail_together_are_both_restarted_by_one_retry() -> None:
    world = running(on("PodFailed", "RestartPod"), task=a_job_task(replicas=3, minAvailable=1))
    for name in ("train-worker-0", "train-worker-2"):
        world.pod_is(name, "Failed", exit_code=1)
    world.settle()

    assert world.terminating() == ["train-worker-0", "train-worker-2"]
    assert numbers(world) == (0, 1)
    assert len(done(world)) == 2


@pytest.mark.parametrize("action", ["RestartPod", "RestartTask", "RestartPartition"])
def test_evictions_one_after_the_other_are_one_retry(action: str) -> None:
    task = a_job_task(replicas=4, minAvailable=1, partitionPolicy={"totalPartitions": 4, "partitionSize": 1})
    world = running(on("PodEvicted", action), task=task, minAvailable=1, maxRetry=3)
    first = dict(world.pods)
    for name in sorted(first):  # `kubectl drain` of the node of each pod
        if world.pods[name] != first[name]:
            continue  # RestartTask has restarted all of them
        world.pod_goes(name)
        restarted(world)

    assert numbers(world) == (0, 1)
    assert (world.phase, len(world.alive())) == ("Running", 4)


def test_a_pod_that_is_evicted_again_after_its_restart_is_another_retry() -> None:
    world = running(on("PodEvicted", "RestartPod"), task=a_job_task(replicas=4, minAvailable=1), minAvailable=1)
    for retries in (1, 2):
        world.pod_goes("train-worker-0")
        restarted(world)
        assert (world.phase, numbers(world)) == ("Running", (0, retries))
    world.pod_goes("train-worker-0")
    world.settle()

    assert world.phase == "Failed"
    assert world.job.status.state.reason == "MaxRetryReached"


def test_a_pod_that_fails_after_another_was_evicted_is_another_retry() -> None:
    world = running(on("*", "RestartPod"), task=a_job_task(replicas=4, minAvailable=1), minAvailable=1)
    world.pod_goes("train-worker-0")
    restarted(world)
    world.pod_is("train-worker-1", "Failed", exit_code=1)
    restarted(world)

    assert numbers(world) == (0, 2)


def test_a_pod_that_fails_while_the_job_restarts_is_restarted_too() -> None:
    world = running(on("PodFailed", "RestartPod"))
    world.pod_is("train-worker-0", "Failed", exit_code=1)
    world.look()
    world.pod_is("train-worker-1", "Failed", exit_code=1)
    world.settle()

    assert world.terminating() == ["train-worker-0", "train-worker-1"]
    assert numbers(world) == (0, 1)
    assert world.phases == ["Pending", "Running", "Restarting", *world.phases[3:]]


def test_an_abortion_during_a_restart_is_an_abortion() -> None:
    world = running(on("PodFailed", "RestartJob"))
    world.pod_is("train-worker-0", "Failed", exit_code=1)
    world.settle()
    world.asks(a_command("AbortJob"))
    world.settle()
    assert world.phase == "Aborting"

    world.terminated_go()
    world.settle()
    assert (world.phase, world.pods) == ("Aborted", {})
    assert bookkeeping.RESTARTING_ALL not in world.job.status.controlled_resources


def test_a_restart_of_a_part_keeps_the_objects_of_plugins_and_one_of_the_job_keeps_them_too() -> None:
    world = running(on("PodFailed", "RestartPod"), plugins={"svc": [], "ssh": []})
    before = dict(world.objects)
    writes = world.writes
    world.pod_is("train-worker-0", "Failed", exit_code=1)
    world.settle()
    restarted(world)

    assert world.objects == before
    world.asks(a_command("RestartJob"))
    world.settle()
    assert world.objects == before
    assert world.writes > writes


# Events


@pytest.mark.parametrize("task_level", [True, False], ids=["task", "job"])
@pytest.mark.parametrize(
    ("event", "happens"),
    [
        ("PodFailed", lambda world: world.pod_is("train-worker-0", "Failed", exit_code=1)),
        ("PodEvicted", lambda world: world.pod_goes("train-worker-0")),
        ("TaskFailed", lambda world: world.pod_is("train-worker-0", "Running", restarts=3)),
        ("TaskCompleted", lambda world: [world.pod_is(f"train-worker-{index}", "Succeeded") for index in range(3)]),
    ],
)
@pytest.mark.parametrize(
    ("action", "phase"),
    [
        ("AbortJob", "Aborting"),
        ("TerminateJob", "Terminating"),
        ("CompleteJob", "Completing"),
        ("RestartJob", "Restarting"),
        ("RestartTask", "Restarting"),
    ],
)
def test_every_event_leads_to_every_action_once(
    event: str, happens: Any, action: str, phase: str, task_level: bool
) -> None:
    policy = [on(event, action)]
    task = a_job_task(replicas=3, policies=policy if task_level else [])
    world = running(*([] if task_level else policy), task=task)

    happens(world)
    world.look()
    world.look()

    assert world.phases[2] == phase
    assert len(done(world)) == 1
    assert action in done(world)[0]


def test_the_phase_unknown_of_the_group_is_answered_also_after_a_restart() -> None:
    world = running(on("Unknown", "RestartJob"))
    for retries in (1, 2):
        world.group_is("Unknown")
        world.settle()
        assert numbers(world) == (retries, retries)
        restarted(world)


def test_a_restart_of_a_task_needs_a_task_to_restart() -> None:
    world = running(on("Unknown", "RestartTask"))
    world.group_is("Unknown")
    world.settle()

    assert (world.phase, done(world)) == ("Running", [])


def test_restarts_of_killed_pods_use_up_the_budget_of_their_task() -> None:
    task = a_job_task(replicas=2, minAvailable=1, maxRetry=3, policies=[on("TaskFailed", "TerminateJob")])
    world = running(on("PodFailed", "RestartPod"), task=task, maxRetry=10)
    for _ in range(2):
        world.pod_is("train-worker-0", "Failed", exit_code=1)
        world.settle()
        restarted(world)
    assert world.phase == "Running"
    assert bookkeeping.spent(world.job.status.controlled_resources, "worker") == 2

    world.pod_is("train-worker-0", "Failed", exit_code=1)
    world.settle()
    assert "TerminateJob" in " ".join(done(world))


def test_a_task_that_is_restarted_because_its_restarts_are_used_up_has_all_of_them_again() -> None:
    task = a_job_task(replicas=2, maxRetry=3, policies=[on("TaskFailed", "RestartTask")])
    world = running(task=task, maxRetry=10)
    for retries in (1, 2):
        for restarts in (1, 2):
            world.pod_is("train-worker-0", "Running", restarts=restarts)
            world.settle()
        assert numbers(world) == (0, retries - 1)

        world.pod_is("train-worker-0", "Running", restarts=3)
        world.settle()
        assert numbers(world) == (0, retries)
        restarted(world)


def test_a_pod_that_somebody_deletes_counts_as_evicted_even_if_no_controller_sees_it_go() -> None:
    world = running(on("PodEvicted", "AbortJob"))
    world.pods["train-worker-0"]["metadata"]["deletionTimestamp"] = world.now
    world.pod_is("train-worker-0", "Running")
    world.settle()
    assert world.job.status.controlled_resources["evicting-train-worker-0"] == world.uid_of("train-worker-0")

    del world.pods["train-worker-0"]
    world.restart()
    world.settle()

    assert world.phase == "Aborting"
    assert not [key for key in world.job.status.controlled_resources if key.startswith("evicting-")]


def test_a_pod_that_two_requests_restart_spends_its_restarts_once() -> None:
    world = World(a_vcjob(a_job_task("worker", 2, max_retry=1), policies=[on("TaskFailed", "RestartPod")], max_retry=5))
    world.runs()
    for restarts in (1, 2, 3):
        world.pod_is("train-worker-0", "Running", restarts=restarts)
    world.settle()

    assert world.job.status.controlled_resources["restarts-worker"] == "3"


def test_a_task_that_is_scaled_down_to_the_pods_that_have_succeeded_is_complete() -> None:
    world = World(a_vcjob(a_job_task("worker", 3), policies=[on("TaskCompleted", "CompleteJob")], max_retry=5))
    world.runs()
    for index in (0, 1):
        world.pod_is(f"train-worker-{index}", "Succeeded", exit_code=0)
    world.settle()
    assert world.phase == "Running"

    world.edits(tasks=[msgspec.to_builtins(a_job_task("worker", 2))], minAvailable=2)
    world.settle()

    assert world.phase == "Completing"


def test_an_eviction_that_waits_for_an_answer_when_the_controller_ends_is_answered_by_the_next_one() -> None:
    world = running(on("PodFailed", "RestartPod"), on("PodEvicted", "TerminateJob"))
    world.pod_is("train-worker-0", "Failed", exit_code=1)
    world.pod_goes("train-worker-1")
    world.look()
    assert world.phase == "Restarting", "the failure is answered, and written without the pod that is gone"

    world.restart()
    world.settle()

    assert world.phases[-2:] == ["Restarting", "Terminating"]


def test_a_job_that_is_finished_answers_nothing() -> None:
    world = running(on("*", "RestartJob"))
    world.asks(a_command("TerminateJob"))
    world.settle()
    world.terminated_go()
    world.settle()
    assert world.phase == "Terminated"
    told = list(done(world))

    world.group = None
    world.restart()
    world.settle()

    assert (world.phase, done(world)) == ("Terminated", told)


# Crashes


@pytest.mark.parametrize("looks", range(6))
def test_a_restart_goes_on_wherever_the_controller_ended(looks: int) -> None:
    world = running(on("PodFailed", "RestartJob"), plugins={"svc": []})
    before = {world.uid_of(name) for name in world.pods}
    world.pod_is("train-worker-0", "Failed", exit_code=1)
    for _ in range(looks):
        world.look()
    world.restart()
    world.settle()
    restarted(world)

    assert numbers(world) == (1, 1)
    assert world.phase == "Running"
    assert not before & {world.uid_of(name) for name in world.pods}
    assert len(done(world)) == 1


# Numbers


def test_pods_that_are_killed_count_as_terminating_and_as_nothing_else() -> None:
    world = running()
    world.pod_is("train-worker-2", "Succeeded")
    members = world.record.members
    victims = tuple(members.victims())

    counts, by_task = acting.after_kill(members, victims, {})

    assert counts == Counts(succeeded=1, terminating=2)
    assert {phase: number for phase, number in by_task["worker"].items() if number} == {"Succeeded": 1}
    assert acting.after_kill(members, (), {})[0] == members.counts()
    assert acting.after_kill(Members(), (), {}) == (Counts(), {})
