"""Jobs that wait for pods which will never run again say so."""

from typing import Any

import pytest

from tests.controllers.job.builders import a_job_task, a_vcjob, on
from tests.controllers.job.world import World, running

REFUSED = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughTasks", "message": "bad: valid 0, min 1"}


def state(world: World) -> tuple[str, str]:
    """Return reason and message of the state."""
    found = world.job.status.state
    return found.reason, found.message


def with_a_failed_pod(*policies: Any, **spec: Any) -> World:
    """Return a job of three pods: one failed, one was evicted and made again, and the gang is refused."""
    world = running(*policies, **spec)
    world.pod_is("train-worker-0", "Failed", exit_code=1)
    world.settle()
    world.pod_goes("train-worker-1")
    world.settle()
    world.group_is("Running", REFUSED)
    world.waits(2)
    world.settle()
    return world


def test_a_gang_that_a_failed_pod_keeps_incomplete_says_how_to_go_on() -> None:
    world = with_a_failed_pod()

    assert state(world) == (
        "BlockedByFailedPods",
        "the gang cannot be complete, and 1 pod of it waits: pod train-worker-0 failed, and no policy restarts it; "
        "delete it (kubectl delete pod train-worker-0 -n ns), and it runs again",
    )
    assert len(world.told("BlockedByFailedPods")) == 1

    world.pod_goes("train-worker-0")
    world.settle()
    world.group_is("Running")
    for name in world.alive():
        world.pod_is(name, "Running")
    world.settle()
    assert world.phase == "Running"
    assert state(world)[0] == "MinAvailableReached"


@pytest.mark.parametrize(
    ("policies", "spec"),
    [
        pytest.param((), {"minAvailable": 2}, id="enough-without-it"),
        pytest.param((on("PodFailed", "RestartJob", timeout="1h"),), {}, id="a-policy-will-act"),
    ],
)
def test_a_gang_that_may_still_be_complete_says_nothing(policies: tuple[Any, ...], spec: dict[str, Any]) -> None:
    task = a_job_task(replicas=3, minAvailable=2) if spec else a_job_task(replicas=3)
    world = with_a_failed_pod(*policies, task=task, **spec)

    assert state(world)[0] != "BlockedByFailedPods"
    assert world.told("BlockedByFailedPods") == []


@pytest.mark.parametrize(("iteration", "blocked"), [("all", True), ("any", False)])
def test_a_task_that_waits_for_pods_that_failed_says_so(iteration: str, blocked: bool) -> None:
    after = {"name": ["data", "more"], "iteration": iteration}
    tasks = [a_job_task("data", 1), a_job_task("more", 1), a_job_task("worker", 2, dependsOn=after)]
    world = World(a_vcjob(*tasks))
    world.starts()
    world.pod_is("train-data-0", "Failed", exit_code=1)
    world.waits(2)
    world.settle()

    reason, message = state(world)
    assert (reason == "DependencyFailed") is blocked
    assert message.startswith("task worker waits for 1 pod of task data, and 1 pod of it failed: delete") is blocked


def test_a_task_whose_pods_run_does_not_wait() -> None:
    tasks = [a_job_task("master", 1), a_job_task("worker", 2, dependsOn={"name": ["master"]})]
    world = World(a_vcjob(*tasks))
    world.starts()
    world.pod_is("train-master-0", "Running")
    world.settle()
    for name in world.alive():
        world.pod_is(name, "Running")
    world.pod_is("train-master-0", "Failed", exit_code=1)
    world.waits(2)
    world.settle()

    assert state(world)[0] == "MinAvailableReached"


def test_a_job_whose_pods_are_created_does_not_say_that_they_follow() -> None:
    world = World(a_vcjob())
    world.settle()
    assert state(world)[0] == "Created"
    writes = world.writes

    world.group_is("Inqueue")
    world.settle()
    assert world.writes == writes + 2, "two pods; most of them run before the counters are written"
    world.waits(1)
    world.settle()

    assert state(world) == ("PodsCreated", "the pods of the job are created; they wait for nodes")


def test_a_job_whose_queue_is_deleted_while_it_waits_says_so_and_goes_on_with_the_queue() -> None:
    world = World(a_vcjob())
    world.settle()
    world.queues.clear()
    world.settle()
    assert state(world)[0] == "QueueNotFound"

    world.queues.add("default")
    world.waits(2)
    world.settle()
    assert state(world) == (
        "Created",
        "the PodGroup of the job is created; its pods follow when the queue has room",
    )
    world.group_is("Inqueue")
    world.settle()
    assert len(world.pods) == 2
    world.waits(1)
    world.settle()
    assert state(world)[0] == "PodsCreated"


def test_a_finished_job_still_counts_pods_that_are_gone() -> None:
    world = running(minAvailable=2)
    world.pod_is("train-worker-0", "Failed", exit_code=1)
    for index in (1, 2):
        world.pod_is(f"train-worker-{index}", "Succeeded")
    world.waits(2)
    world.settle()
    assert world.phase in ("Completed", "Failed")

    for name in list(world.pods):
        world.pod_goes(name)
    world.waits(2)
    world.settle()

    status = world.job.status
    assert (status.succeeded, status.failed) == (2, 1)
    assert status.task_status_count["worker"].phase == {"Failed": 1, "Succeeded": 2}


def test_a_job_with_fewer_replicas_than_its_minimum_says_that() -> None:
    world = running()
    world.edits(tasks=[a_job_task(replicas=1)], minAvailable=3)
    world.pod_goes("train-worker-0")
    world.waits(2)
    world.settle()

    assert state(world)[1] == "the tasks ask for 1 of 3 pods: lower minAvailable, or add replicas"
