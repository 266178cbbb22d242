"""Jobs that the schema admits and that make no sense: they get no pods, and say why."""

import time
from typing import Any

import pytest

from tests.controllers.job.builders import a_job_task, a_ready_job, a_vcjob, on
from tests.controllers.job.world import World
from volcano_py.controllers.job.checks import MOST_PODS, flaw


def after(*names: str, iteration: str = "") -> dict[str, Any]:
    return {"dependsOn": {"name": list(names), "iteration": iteration}}


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        pytest.param([a_job_task("a"), a_job_task("b"), a_job_task("a")], "2 tasks are named a", id="same-name"),
        pytest.param([a_job_task(""), a_job_task("default0")], "2 tasks are named default0", id="name-of-a-default"),
        pytest.param([a_job_task("a", **after("a"))], "of task a can", id="after-itself"),
        pytest.param(
            [a_job_task("a", **after("nobody")), a_job_task("b")],
            "task a waits for nobody, which is no task of the job: create the job with one of its tasks in "
            "dependsOn (a, b)",
            id="after-an-unknown-task",
        ),
        pytest.param(
            [a_job_task("a", **after("b")), a_job_task("b", **after("a")), a_job_task("c", **after("a"))],
            "of task a, b, c can",
            id="circle",
        ),
        pytest.param(
            [a_job_task("a", policies=[on("PodPending", "RestartJob", timeout="10 minutes")])],
            "timeout of a policy of task a: '10 minutes' is not a duration",
            id="timeout",
        ),
        pytest.param([a_job_task("a", MOST_PODS), a_job_task("b", 1)], "lower spec.tasks.replicas", id="too-many-pods"),
    ],
)
def test_a_job_that_makes_no_sense_says_what_to_change(tasks: list[Any], words: str) -> None:
    assert words in flaw(a_ready_job(*tasks))


@pytest.mark.parametrize(
    "tasks",
    [
        pytest.param([a_job_task("a"), a_job_task("b", **after("a"))], id="chain"),
        pytest.param([a_job_task("a", 0), a_job_task("b", **after("a"))], id="after-a-task-without-pods"),
        pytest.param([a_job_task("a", 1, minAvailable=3), a_job_task("b", **after("a"))], id="too-few-replicas"),
        pytest.param(
            [a_job_task("a"), a_job_task("b", **after("a", "c", iteration="any")), a_job_task("c", **after("b"))],
            id="a-circle-with-another-way-in",
        ),
        pytest.param([a_job_task("a", policies=[on("PodFailed", "RestartJob", timeout="1h30m")])], id="timeout"),
        pytest.param([a_job_task("a", MOST_PODS)], id="most-pods"),
    ],
)
def test_other_jobs_are_right(tasks: list[Any]) -> None:
    assert flaw(a_ready_job(*tasks)) == ""


def test_a_job_that_makes_no_sense_gets_nothing_and_says_so_on_itself() -> None:
    world = World(a_vcjob(a_job_task(policies=[on("PodPending", "RestartJob", timeout="soon")])))

    world.settle()

    assert world.group is None
    assert world.job.status.state.reason == "InvalidJob"
    assert "'soon' is not a duration" in world.job.status.state.message
    assert len(world.told("InvalidJob")) == 1


def test_pods_that_run_stay_while_a_job_asks_for_too_many_also_after_a_restart_of_the_controller() -> None:
    world = World(a_vcjob(a_job_task(replicas=2), minAvailable=1))
    world.runs()

    world.edits(tasks=[a_job_task(replicas=MOST_PODS + 1)])
    world.settle()
    world.restart()
    world.settle()
    assert world.alive() == ["train-worker-0", "train-worker-1"]
    assert world.job.status.state.reason == "InvalidJob"

    world.edits(tasks=[a_job_task(replicas=3)])
    world.settle()
    assert world.alive() == ["train-worker-0", "train-worker-1", "train-worker-2"]
    assert world.job.status.state.reason == ""


def test_no_pod_is_created_without_its_plugin() -> None:
    world = World(a_vcjob(a_job_task(replicas=1), plugins={"env": []}))
    world.runs()

    world.edits(plugins={"nope": []})
    world.settle()
    world.pod_goes("train-worker-0")
    world.settle()

    assert world.alive() == []
    assert world.job.status.state.reason == "PluginError"

    world.edits(plugins={"env": []})
    world.settle()
    assert world.alive() == ["train-worker-0"]


def test_hundreds_of_tasks_that_wait_for_each_other_do_not_keep_the_event_loop() -> None:
    chain = [a_job_task(f"t{number}", **after(f"t{number - 1}")) for number in range(1, 800)]
    job = a_ready_job(a_job_task("t0"), *chain)
    begin = time.process_time()

    assert flaw(job) == ""
    assert time.process_time() - begin < 3.0  # 17 s, if every task is compared with every other
