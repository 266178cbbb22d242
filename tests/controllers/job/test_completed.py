"""Pods that have succeeded and are gone: nodes are removed and old pods cleaned up while a job runs."""

import time
from typing import Any

import msgspec
import pytest

from tests.controllers.job.builders import a_command, a_job_task, a_ready_job, a_vcjob, members_of, on
from tests.controllers.job.world import World, done, numbers, restarted, running
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.job import bookkeeping, decision
from volcano_py.controllers.job.objects import JobPod
from volcano_py.controllers.job.plugins.registry import BUILT_IN
from volcano_py.controllers.job.pod_group import left_of, min_task_member, sub_group_policy
from volcano_py.controllers.job.record import Record

EVICTED = on("PodEvicted", "RestartJob")
FIRST = "train-worker-0"


def counted(world: World) -> tuple[int, dict[str, Any]]:
    """Return how many pods the status counts as succeeded, and the phases of the workers."""
    status = world.job.status
    return status.succeeded, status.task_status_count["worker"].phase


def noted(world: World) -> dict[str, str]:
    """Return the notes about pods that have succeeded and are gone."""
    notes = world.job.status.controlled_resources
    return {key: text for key, text in notes.items() if key.startswith(bookkeeping.COMPLETED)}


def without_the_first(*policies: Any, **fields: Any) -> World:
    """Return a job of three pods, the first of which has succeeded and is gone."""
    world = running(*policies, **fields)
    world.pod_is(FIRST, "Succeeded")
    world.waits(2)
    world.settle()
    world.pod_goes(FIRST)
    world.settle()
    return world


@pytest.mark.parametrize("policies", [(), (EVICTED,), (on("*", "RestartJob"),)])
def test_a_pod_that_has_succeeded_does_not_run_again_when_it_is_gone(policies: tuple[Any, ...]) -> None:
    world = without_the_first(*policies)

    assert sorted(world.pods) == ["train-worker-1", "train-worker-2"]
    assert (world.phase, numbers(world), done(world)) == ("Running", (0, 0), [])
    assert noted(world) == {"completed-worker": "0"}
    assert counted(world) == (1, {"Running": 2, "Succeeded": 1})


def test_another_process_still_knows_and_the_job_completes() -> None:
    world = without_the_first(EVICTED)
    world.restart()
    world.settle()
    assert len(world.pods) == 2

    for name in list(world.pods):
        world.pod_is(name, "Succeeded")
    world.waits(2)
    world.settle()

    assert world.phase == "Completed"
    assert counted(world)[0] == 3


def test_a_process_that_starts_later_reads_it_off_the_counters() -> None:
    world = running(EVICTED)
    world.pod_is(FIRST, "Succeeded")
    world.waits(2)
    world.settle()
    del world.pods[FIRST]
    world.restart()
    world.settle()

    assert len(world.pods) == 2
    assert noted(world) == {"completed-worker": "0"}
    assert world.phase == "Running"


def test_if_others_have_vanished_too_while_no_process_ran_all_of_them_run_again() -> None:
    world = running()
    world.pod_is(FIRST, "Succeeded")
    world.waits(2)
    world.settle()
    for name in (FIRST, "train-worker-2"):
        del world.pods[name]
    world.restart()
    world.settle()

    assert sorted(world.pods) == [FIRST, "train-worker-1", "train-worker-2"]
    assert noted(world) == {}


def test_a_pod_that_was_told_to_stop_and_ends_with_code_0_runs_again() -> None:
    world = running()
    world.pods[FIRST]["metadata"]["deletionTimestamp"] = world.now
    world.pod_is(FIRST, "Running")
    world.pod_is(FIRST, "Succeeded")
    world.settle()
    world.pod_goes(FIRST)
    world.settle()

    assert FIRST in world.pods
    assert noted(world) == {}


def test_a_pod_that_a_finalizer_keeps_counts_as_succeeded_once_it_is_gone() -> None:
    world = running(EVICTED)
    for name in list(world.pods):
        world.pod_is(name, "Succeeded" if name != "train-worker-1" else "Running")
    world.pods[FIRST]["metadata"]["deletionTimestamp"] = world.now
    world.pod_is(FIRST, "Succeeded")
    world.waits(2)
    world.settle()
    assert (world.job.status.terminating, noted(world)) == (1, {})

    world.pod_goes(FIRST)
    world.settle()
    assert (numbers(world), noted(world)) == ((0, 0), {"completed-worker": "0"})

    world.asks(a_command("RestartJob"))
    world.settle()
    restarted(world)
    assert len(world.pods) == 3


def test_a_scaled_job_runs_vanished_pods_again_if_nobody_can_tell_which_had_succeeded() -> None:
    world = running(task=a_job_task(replicas=6), minAvailable=1)
    world.pod_is("train-worker-5", "Succeeded")
    world.waits(2)
    world.settle()
    world.group_is("Pending")
    world.pod_goes("train-worker-1")  # it cannot be made again yet
    world.waits(2)
    world.settle()
    del world.pods["train-worker-5"]
    world.edits(tasks=[a_job_task(replicas=5)], minAvailable=1)
    world.restart()
    world.settle()
    world.group_is("Running")
    world.settle()

    assert noted(world) == {}
    assert "train-worker-1" in world.pods


def test_a_process_that_stands_by_may_see_the_note_before_the_pod_goes() -> None:
    world = running()
    world.pod_is(FIRST, "Succeeded")
    world.waits(2)
    world.settle()
    standby = Record("ns/uid-train", BUILT_IN)
    for body in world.pods.values():
        standby.put_pod(msgspec.convert(body, JobPod))
    standby.put_group(msgspec.convert(world.group, PodGroup))
    uid = world.uid_of(FIRST)
    world.pod_goes(FIRST)
    world.settle()
    standby.put_job(world.job, "volcano", "default")
    standby.remove_pod(FIRST, uid)
    world.record = standby
    world.settle()

    assert sorted(world.pods) == ["train-worker-1", "train-worker-2"]
    assert noted(world) == {"completed-worker": "0"}


def test_a_task_completes_if_one_pod_goes_when_the_last_one_succeeds() -> None:
    tasks = [a_job_task("a", 2, policies=[on("TaskCompleted", "CompleteJob")]), a_job_task("ps", 1)]
    world = World(a_vcjob(*tasks))
    world.runs()
    world.pod_is("train-a-0", "Succeeded")
    world.waits(2)
    world.settle()
    world.pod_goes("train-a-0")
    world.pod_is("train-a-1", "Succeeded")
    world.settle()

    assert "Completing" in world.phases


def gone(world: World, *names: str) -> None:
    """Let pods succeed, and then go."""
    for name in names:
        world.pod_is(name, "Succeeded")
        world.settle()
        world.pod_goes(name)
        world.settle()


def test_a_policy_acts_once_on_a_task_whose_pods_are_gone() -> None:
    tasks = [a_job_task("a", 2, policies=[on("TaskCompleted", "AbortJob")]), a_job_task("ps", 1)]
    world = World(a_vcjob(*tasks))
    world.runs()
    for index in (0, 1):
        world.pod_is(f"train-a-{index}", "Succeeded")
    world.settle()
    world.terminated_go()
    world.settle()
    assert world.phase == "Aborted"
    for index in (0, 1):
        world.pod_goes(f"train-a-{index}")
    world.settle()
    world.asks(a_command("ResumeJob"))
    world.settle()
    assert world.phase == "Pending"

    for _ in range(3):
        world.restart()
        world.settle()

    assert world.phase == "Pending"


def test_a_delayed_action_on_a_task_outlives_its_pods_and_the_process() -> None:
    tasks = [a_job_task("a", 2, policies=[on("TaskCompleted", "CompleteJob", timeout="60s")]), a_job_task("ps", 1)]
    world = World(a_vcjob(*tasks))
    world.runs()
    gone(world, "train-a-0", "train-a-1")
    world.restart()
    world.settle()
    assert world.phase == "Running"
    world.waits(62)
    world.settle()

    assert "Completing" in world.phases


def test_a_task_completes_while_a_finalizer_keeps_one_of_its_pods() -> None:
    tasks = [a_job_task("a", 2, policies=[on("TaskCompleted", "CompleteJob")]), a_job_task("ps", 1)]
    world = World(a_vcjob(*tasks))
    world.runs()
    world.pod_is("train-a-0", "Succeeded")
    world.settle()
    world.pods["train-a-0"]["metadata"]["deletionTimestamp"] = world.now
    world.pod_is("train-a-0", "Succeeded")
    world.settle()
    world.pod_is("train-a-1", "Succeeded")
    world.settle()

    assert "Completing" in world.phases


@pytest.mark.parametrize("action", ["RestartJob", "RestartTask"])
def test_a_restart_runs_a_pod_again_that_a_finalizer_keeps_until_after_it(action: str) -> None:
    world = running(on("PodFailed", action), task=a_job_task(replicas=3, minAvailable=1), minAvailable=1)
    world.pod_is(FIRST, "Succeeded")
    world.settle()
    world.pods[FIRST]["metadata"]["deletionTimestamp"] = world.now
    world.pod_is(FIRST, "Succeeded")
    world.pod_is("train-worker-1", "Failed", exit_code=1)
    world.settle()
    for name in world.terminating():
        if name != FIRST:
            world.pod_goes(name)
    world.settle()
    world.group_is("Inqueue")
    world.settle()
    world.pod_goes(FIRST)
    world.settle()

    assert len(world.pods) == 3
    assert noted(world) == {}


def test_the_counters_of_an_action_count_what_the_same_look_notes() -> None:
    policies = [on("PodFailed", "RestartPod"), on("PodEvicted", "RestartJob")]
    world = running(*policies, task=a_job_task(replicas=4))
    for index in (0, 1):
        world.pod_is(f"train-worker-{index}", "Succeeded")
    world.waits(2)
    world.settle()
    for index in (0, 1):
        world.pod_goes(f"train-worker-{index}")
    world.pod_is("train-worker-2", "Failed", exit_code=1)
    world.look()

    assert world.job.status.succeeded == 2
    assert noted(world) == {"completed-worker": "0-1"}


def test_restarts_of_several_pods_count_once_if_a_kill_fails() -> None:
    world = running(on("PodFailed", "RestartPod"))
    for index in (0, 1):
        world.pod_is(f"train-worker-{index}", "Failed", exit_code=1)
    plans = []
    for _ in range(3):  # the status is written, and the kills fail
        plan = decision.plan(world.observe(), world.now)
        plans.append(plan)
        if plan.status is not None:
            world.job = msgspec.structs.replace(world.job, status=plan.status)
            world._seen_job()

    assert world.job.status.controlled_resources["restarts-worker"] == "2"


def test_ten_thousand_pods_that_are_cleaned_up_are_noted_at_once() -> None:
    world = running(task=a_job_task(replicas=10_000), minAvailable=1)
    for index in range(0, 9_999, 2):
        world.pod_is(f"train-worker-{index}", "Succeeded")
    world.waits(2)
    world.settle()
    for index in range(0, 9_999, 2):
        world.pod_goes(f"train-worker-{index}")
    began = time.process_time()
    plan = decision.plan(world.observe(), world.now)

    assert plan.handled == 5_000
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    ("action", "pods"),
    [
        ("RestartJob", [0, 1, 2]),
        ("RestartTask", [0, 1, 2]),
        ("RestartPod", [1, 2]),
    ],
)
def test_a_restart_runs_it_again_if_it_restarts_what_has_ended(action: str, pods: list[int]) -> None:
    world = without_the_first(on("PodFailed", action))
    world.pod_is("train-worker-1", "Failed", exit_code=1)
    world.settle()
    if action != "RestartPod":
        assert world.job.status.succeeded == 0, "what runs again does not count as succeeded"
    restarted(world)

    assert sorted(world.pods) == [f"train-worker-{index}" for index in pods]
    assert noted(world) == ({} if 0 in pods else {"completed-worker": "0"})


def test_a_restart_of_a_partition_runs_those_of_the_partition_again() -> None:
    task = a_job_task(replicas=4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})
    world = running(on("PodFailed", "RestartPartition"), task=task)
    for index in (0, 2):
        world.pod_is(f"train-worker-{index}", "Succeeded")
        world.settle()
        world.pod_goes(f"train-worker-{index}")
        world.settle()
    assert noted(world) == {"completed-worker": "0,2"}

    world.pod_is("train-worker-1", "Failed", exit_code=1)
    world.settle()
    restarted(world)

    assert sorted(world.pods) == ["train-worker-0", "train-worker-1", "train-worker-3"]
    assert noted(world) == {"completed-worker": "2"}


def test_a_job_that_is_aborted_and_resumed_goes_on_without_it() -> None:
    world = without_the_first(on("PodFailed", "AbortJob"))
    world.pod_is("train-worker-1", "Failed", exit_code=1)
    world.settle()
    world.terminated_go()
    world.settle()

    assert world.phase == "Aborted"
    assert noted(world) == {"completed-worker": "0"}

    world.asks(a_command("ResumeJob"))
    world.settle()
    restarted(world)

    assert sorted(world.pods) == ["train-worker-1", "train-worker-2"]
    assert world.phase == "Running"


def test_pods_that_a_restart_was_about_to_kill_run_again() -> None:
    world = running(on("PodFailed", "RestartJob"))
    world.pod_is(FIRST, "Succeeded")
    world.settle()
    world.pod_is("train-worker-1", "Failed", exit_code=1)
    world.pod_goes(FIRST)  # known in the same look
    world.settle()
    restarted(world)

    assert sorted(world.pods) == [FIRST, "train-worker-1", "train-worker-2"]
    assert noted(world) == {}


def test_the_minimum_of_another_role_stays() -> None:
    job = a_ready_job(a_job_task("a", 4, minAvailable=2), a_job_task("b", 2, minAvailable=2), minAvailable=4)
    left = left_of(job, {"a": {0, 1, 2, 3}})

    assert left.spec.min_available == 2
    assert min_task_member(left) == {"a": 0, "b": 2}


def test_partitions_that_are_done_are_not_asked_for() -> None:
    policy = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 2}
    job = a_ready_job(a_job_task("a", 4, partitionPolicy=policy))
    of_one, of_none = left_of(job, {"a": {0, 1}}), left_of(job, {"a": {0, 2}})

    assert [one.spec.tasks[0].partition_policy.min_partitions for one in (of_one, of_none)] == [1, 2]


@pytest.mark.parametrize(
    ("completed", "size", "least"),
    [({0}, 3, 3), ({0, 4, 5}, 2, 3), ({0, 1, 2, 3, 4}, 3, 2), ({0, 1, 2, 3}, 4, 2)],
)
def test_no_partition_is_asked_for_more_pods_than_it_still_has(completed: set[int], size: int, least: int) -> None:
    """Found by trial: the scheduler waited for ever for a partition one pod of which had succeeded and was gone."""
    policy = {"totalPartitions": 3, "partitionSize": 4, "minPartitions": 3}
    job = left_of(a_ready_job(a_job_task("a", 12, partitionPolicy=policy)), {"a": completed})

    found = sub_group_policy(job.spec.tasks[0])
    assert found is not None
    assert (found["subGroupSize"], found["minSubGroups"]) == (size, least)


def test_the_pod_group_asks_for_those_that_are_left() -> None:
    world = without_the_first()
    assert world.group is not None

    assert world.group["spec"]["minMember"] == 2
    assert world.group["spec"]["minTaskMember"] == {"worker": 2}
    assert world.group["spec"]["minResources"]["cpu"] == "2"


def test_a_task_completes_with_pods_that_are_gone() -> None:
    world = without_the_first(on("TaskCompleted", "CompleteJob"))
    for name in list(world.pods):
        world.pod_is(name, "Succeeded")
    world.settle()

    assert world.phases[-2:] == ["Completing", "Completed"]


def test_a_task_that_shrinks_to_pods_that_are_gone_completes() -> None:
    world = without_the_first(
        on("TaskCompleted", "CompleteJob"), minAvailable=1, task=a_job_task(replicas=3, minAvailable=1)
    )
    world.edits(tasks=[a_job_task(replicas=1, minAvailable=1)])
    world.settle()

    assert "Completing" in world.phases


def test_an_index_that_is_not_needed_any_more_is_forgotten() -> None:
    world = running(minAvailable=1, task=a_job_task(replicas=3, minAvailable=1))
    world.pod_is("train-worker-2", "Succeeded")
    world.settle()
    world.pod_goes("train-worker-2")
    world.settle()
    assert noted(world) == {"completed-worker": "2"}

    for replicas in (2, 3):
        world.edits(tasks=[a_job_task(replicas=replicas, minAvailable=1)])
        world.waits(2)
        world.settle()

    assert noted(world) == {}
    assert len(world.pods) == 3


def test_a_task_that_waits_for_another_one_starts_although_its_pods_are_gone() -> None:
    tasks = [a_job_task("data", 1), a_job_task("worker", 1, dependsOn={"name": ["data"]})]
    world = World(a_vcjob(*tasks))
    world.starts()
    world.pod_is("train-data-0", "Succeeded")
    world.pod_goes("train-data-0")
    world.settle()

    assert list(world.pods) == ["train-worker-0"]


@pytest.mark.parametrize(
    ("indices", "text"),
    [({0}, "0"), ({0, 1, 2, 3, 7}, "0-3,7"), ({5, 4, 9, 1}, "1,4-5,9"), (set(range(10_000)), "0-9999")],
)
def test_a_note_reads_like_the_completed_indexes_of_a_batch_job(indices: set[int], text: str) -> None:
    assert bookkeeping.completion("w", indices) == {"completed-w": text}
    assert bookkeeping.completed({"completed-w": text}, "w", 10_000) == indices


@pytest.mark.parametrize(
    ("text", "indices"),
    [("", set()), ("x", set()), ("-3", set()), ("2-", {2}), ("4-2", set()), ("0-9999999999", {0, 1, 2}), ("1,,9", {1})],
)
def test_a_note_that_cannot_be_read_is_left_out(text: str, indices: set[int]) -> None:
    assert bookkeeping.completed({"completed-w": text}, "w", 3) == indices


def test_without_such_pods_a_job_is_as_it_was() -> None:
    job = a_ready_job(a_job_task(replicas=2))

    assert left_of(job, {}) is job
    assert min_task_member(left_of(job, {"worker": {1}})) == {"worker": 1}
    assert members_of(job, []).completed == {}
