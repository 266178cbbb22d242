"""Which pods of a job are created at one look, and which ones wait for others."""

from typing import Any

from tests.controllers.job.builders import a_job_task, a_vcjob
from tests.controllers.job.world import World
from volcano_py.controllers.job import decision


def test_pods_are_created_by_priority_of_their_task_and_by_index() -> None:
    low, high = ({"spec": {"priorityClassName": name}} for name in ("low", "high"))
    world = World(a_vcjob(a_job_task("a", 2, low), a_job_task("b", 2, high)))
    world.priorities = {"low": 1, "high": 10}
    world.starts()

    assert list(world.pods) == ["train-b-0", "train-b-1", "train-a-0", "train-a-1"]


def test_pods_of_lower_priority_wait_for_the_others_if_the_minimum_does_not_need_all_pods() -> None:
    """Else the scheduler may see them first, start the gang with them, and leave out the driver of a job."""
    high = {"spec": {"priorityClassName": "high"}}
    tasks = (a_job_task("executor", 4), a_job_task("driver", 1, high))

    def created_at_once(**spec: Any) -> list[str]:
        world = World(a_vcjob(*tasks, **spec))
        world.priorities = {"high": 10}
        world.settle()
        world.group_is("Inqueue")
        return [task.name for task, _ in decision.plan(world.observe(), world.now).create]

    assert created_at_once(minAvailable=3) == ["driver"]
    assert created_at_once(minAvailable=5) == ["driver", "executor"]


def test_one_look_creates_a_limited_number_of_pods() -> None:
    world = World(a_vcjob(a_job_task("a", 400), a_job_task("b", 400)))
    world.settle()
    world.group_is("Inqueue")
    world.look()

    plan = decision.plan(world.observe(), world.now)

    assert len(world.pods) == decision.PODS_AT_ONCE
    assert [(task.name, len(indices)) for task, indices in plan.create] == [("b", 300)]


def test_a_task_starts_when_the_tasks_it_depends_on_are_ready() -> None:
    world = World(a_vcjob(a_job_task("a", 2), a_job_task("b", 1, dependsOn={"name": ["a"]})))
    world.starts()
    assert world.alive() == ["train-a-0", "train-a-1"]
    assert world.group is not None
    assert world.group["spec"]["minMember"] == 2

    world.pod_is("train-a-0", "Running")
    world.pod_is("train-a-1", "Running", ready=False)
    world.settle()
    assert "train-b-0" not in world.pods

    world.pod_is("train-a-1", "Running")
    world.settle()
    assert "train-b-0" in world.pods
    assert world.group["spec"]["minMember"] == 3
