"""Commands on a job: each is carried out once, also if it finds nothing to do or its job is resumed."""

import pytest

from tests.controllers.job.builders import a_command, a_job_task, a_vcjob, on
from tests.controllers.job.world import World, numbers, restarted, running
from volcano_py.controllers.job import acting


def test_a_command_is_carried_out_once_and_deleted() -> None:
    world = running()
    world.asks(a_command("RestartJob", message="new data"))
    world.settle()

    assert world.commands == {}
    assert numbers(world) == (1, 1)
    assert world.told(acting.EVENT_COMMAND) == ["Command ns/c1 asks for RestartJob"]
    assert world.job.status.state.reason == "CommandIssued"


def test_a_command_that_was_carried_out_but_not_deleted_is_only_deleted() -> None:
    world = running()
    command = a_command("RestartJob")
    world.asks(command)
    world.settle()
    restarted(world)
    before = numbers(world), world.uids

    world.commands[command.metadata.name] = command
    world.restart()
    world.settle()

    assert (world.commands, (numbers(world), world.uids)) == ({}, before)


def test_commands_are_carried_out_one_after_the_other() -> None:
    world = running()
    world.asks(a_command("AbortJob", "c1"))
    world.asks(a_command("ResumeJob", "c2"))
    world.settle()

    assert world.phases[2:4] == ["Aborting", "Restarting"]
    restarted(world)
    assert world.phase == "Running"
    assert world.commands == {}


def test_a_resumed_job_runs_again_what_failed_and_keeps_what_succeeded() -> None:
    world = running(on("PodFailed", "AbortJob"))
    world.pod_is("train-worker-0", "Succeeded")
    world.pod_is("train-worker-1", "Failed", exit_code=1)
    world.settle()
    world.terminated_go()
    world.settle()
    assert (world.phase, sorted(world.pods)) == ("Aborted", ["train-worker-0", "train-worker-1"])
    failed, succeeded = world.uid_of("train-worker-1"), world.uid_of("train-worker-0")

    world.asks(a_command("ResumeJob"))
    world.settle()
    restarted(world)

    assert world.uid_of("train-worker-0") == succeeded
    assert world.uid_of("train-worker-1") != failed
    assert world.phase == "Running"


@pytest.mark.parametrize(("timeout", "late"), [({}, ""), ({"timeout": "1m"}, ", after its timeout")])
@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("taken_over", [False, True])
def test_a_task_that_completed_when_the_job_was_suspended_completes_it_when_it_is_resumed(
    timeout: dict[str, str], late: str, gone: bool, taken_over: bool
) -> None:
    tasks = (
        a_job_task("main", 1, policies=[on("TaskCompleted", "CompleteJob", **timeout)]),
        a_job_task("server", 1, policies=[on("TaskCompleted", "RestartJob")]),
    )
    world = World(a_vcjob(*tasks))
    world.runs()
    world.pod_is("train-main-0", "Succeeded")
    world.asks(a_command("AbortJob", "c1"))
    world.settle()
    if gone:
        world.pod_goes("train-main-0")
    world.terminated_go()
    world.waits(300)
    world.settle()
    assert world.phase == "Aborted"

    world.asks(a_command("ResumeJob", "c2"))
    world.look()
    if taken_over:
        world.restart()
    world.settle()
    world.waits(60)
    world.settle()
    world.terminated_go()
    world.settle()

    assert world.phase == "Completed"
    assert world.job.status.state.message == f"all pods of task main succeeded; policy of task main{late}"


@pytest.mark.parametrize("action", ["RestartJob", "AbortJob"])
def test_a_task_that_completed_does_not_stop_a_job_that_is_resumed(action: str) -> None:
    tasks = (a_job_task("main", 1, policies=[on("TaskCompleted", action)]), a_job_task("server", 1))
    world = World(a_vcjob(*tasks))
    world.runs()
    world.asks(a_command("AbortJob", "c1"))
    world.pod_is("train-main-0", "Succeeded")
    world.settle()
    world.terminated_go()
    world.settle()
    world.asks(a_command("ResumeJob", "c2"))
    world.settle()
    restarted(world)

    assert world.phase == "Running"


def test_a_suspended_job_is_resumed_which_uses_up_a_retry() -> None:
    world = running()
    world.asks(a_command("AbortJob", "c1"))
    world.settle()
    world.terminated_go()
    world.settle()
    assert (world.phase, world.pods, world.group) == ("Aborted", {}, None)

    world.asks(a_command("ResumeJob", "c2"))
    world.settle()
    restarted(world)

    assert world.phases == ["Pending", "Running", "Aborting", "Aborted", "Restarting", "Pending", "Running"]
    assert numbers(world) == (2, 1)


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("Dance", "'Dance' is not an action on a job; use one of AbortJob, "),
        ("RestartPod", "RestartPod needs a task or pod, which a Command cannot name; use RestartJob, or a policy"),
        ("ResumeJob", "ResumeJob changes nothing in phase Running"),
    ],
)
def test_a_command_that_can_do_nothing_is_deleted_with_an_event(action: str, text: str) -> None:
    world = running()
    world.asks(a_command(action))
    world.settle()

    (told,) = world.told(acting.EVENT_COMMAND)
    assert text in told
    assert (world.commands, world.phase) == ({}, "Running")
