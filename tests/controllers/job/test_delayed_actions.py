"""Actions that a policy delays: they wait, survive a restart of the controller, and end with their reason."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.controllers.job.builders import a_job_task, a_vcjob, on
from tests.controllers.job.world import World, done, later, restarted, running
from volcano_py.controllers.job import bookkeeping
from volcano_py.controllers.job.delays import Delayed


def test_a_delayed_action_waits_for_its_time() -> None:
    world = running(on("PodFailed", "RestartJob", timeout="1m"))
    world.pod_is("train-worker-0", "Failed", exit_code=1)
    world.settle()
    assert world.phase == "Running"
    assert [text.partition(":")[0] for text in done(world)] == ["Execute action RestartJob after 1m0s"]
    assert world.record.armed.next_due_s(world.now) == 60.0

    world.waits(59)
    world.settle()
    assert world.phase == "Running"
    world.waits(1)
    world.settle()
    assert world.phase == "Restarting"
    assert world.job.status.state.message.endswith(", after its timeout")
    assert world.record.armed.by_key == {}


def test_that_pods_are_pending_is_told_once_for_all_of_them() -> None:
    tasks = (a_job_task("a", 3, policies=[on("PodPending", "RestartTask", timeout="1m")]), a_job_task("b", 3))
    world = World(a_vcjob(*tasks, policies=[on("PodPending", "AbortJob", timeout="10s")]))
    world.starts()
    assert len(world.record.armed.by_key) == 6
    assert sorted(done(world)) == [
        "Execute action AbortJob after 10s if pods are still pending then; policy of the job: event PodPending",
        "Execute action RestartTask after 1m0s if pods are still pending then; policy of task a: event PodPending",
    ]

    for name in list(world.pods):
        world.pod_is(name, "Running")
    world.settle()
    world.pod_goes("train-b-0")
    world.settle()
    assert len(done(world)) == 3


def test_the_work_for_pods_that_are_pending_together_grows_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by trial: a process that took over a job of 4,000 pending pods did nothing else for 20 seconds."""
    world = World(a_vcjob(a_job_task(replicas=300), policies=[on("PodPending", "AbortJob", timeout="1h")]))
    world.starts()
    asked, key_of = [0], vars(Delayed)["key"].fget

    def counting(one: Delayed) -> str:
        asked[0] += 1
        return str(key_of(one))

    monkeypatch.setattr(Delayed, "key", property(counting))
    world.restart()
    world.look()
    assert len(world.record.armed.by_key) == 300
    for name in world.pods:
        world.pod_is(name, "Running")
    world.settle()

    assert world.record.armed.by_key == {}
    assert 300 <= asked[0] <= 3000


def test_pods_that_restart_together_do_not_read_the_notes_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(a_vcjob(a_job_task(replicas=300), policies=[on("PodFailed", "RestartPod")]))
    world.runs()
    for name in world.pods:
        world.pod_is(name, "Failed", exit_code=1)
    read, without = [0], bookkeeping.without

    def counting(notes: Mapping[str, str], *prefixes: str) -> dict[str, str]:
        read[0] += 1
        return without(notes, *prefixes)

    monkeypatch.setattr(bookkeeping, "without", counting)
    world.look()

    assert (world.phase, len(world.terminating())) == ("Restarting", 300)
    assert read[0] < 10


def test_a_pod_that_leaves_pending_in_time_disarms_the_action() -> None:
    world = World(a_vcjob(policies=[on("PodPending", "AbortJob", timeout="10s")]))
    world.starts()
    assert len(world.record.armed.by_key) == 2

    world.waits(5)
    for name in list(world.pods):
        world.pod_is(name, "Running")
    world.settle()
    assert world.record.armed.by_key == {}
    world.waits(60)
    world.settle()
    assert world.phase == "Running"


def test_a_pod_that_stays_pending_leads_to_the_action_also_after_a_restart_of_the_controller() -> None:
    world = World(a_vcjob(policies=[on("PodPending", "AbortJob", timeout="10s")]))
    world.starts()
    world.waits(6)
    world.restart()
    world.settle()
    assert {one.due for one in world.record.armed.by_key.values()} == {
        later(11)
    }  # pods give their time in whole seconds

    world.waits(5)
    world.settle()
    assert world.phase == "Aborting"


@pytest.mark.parametrize(
    ("event", "happens", "due"),
    [
        ("PodEvicted", lambda world: world.pod_goes("train-worker-0"), 70),
        ("TaskFailed", lambda world: world.pod_is("train-worker-0", "Running", restarts=3), 70),
        ("Unknown", lambda world: world.group_is("Unknown"), 70),
        ("PodFailed", lambda world: world.pod_is("train-worker-0", "Failed", exit_code=1), 71),
        ("TaskCompleted", lambda world: [world.pod_is(f"train-worker-{index}", "Succeeded") for index in range(3)], 70),
    ],
)
def test_a_delayed_action_survives_a_restart_of_the_controller(event: str, happens: Any, due: int) -> None:
    tasks = a_job_task(replicas=3), a_job_task("other", 1)
    world = World(a_vcjob(*tasks, policies=[on(event, "TerminateJob", timeout="1m")]))
    world.runs()
    world.waits(10)
    happens(world)
    world.look()
    world.look()
    world.waits(30)
    world.restart()
    world.look()
    (delayed,) = world.record.armed.by_key.values()

    assert (delayed.due, delayed.action) == (later(due), "TerminateJob")


def test_a_pod_that_runs_again_disarms_what_its_failure_had_armed() -> None:
    world = running(on("PodEvicted", "AbortJob", timeout="1m"), task=a_job_task(replicas=2, minAvailable=1))
    world.pod_goes("train-worker-0")
    world.settle()
    assert [key for key in world.job.status.controlled_resources if key.startswith("delayed-")]

    world.pod_is("train-worker-0", "Running")
    world.settle()
    assert not [key for key in world.job.status.controlled_resources if key.startswith("delayed-")]
    world.waits(120)
    world.settle()
    assert world.phase == "Running"


def test_an_action_on_the_whole_job_disarms_all_delayed_ones() -> None:
    world = running(on("PodEvicted", "AbortJob", timeout="1m"), on("PodFailed", "RestartJob"))
    world.pod_goes("train-worker-0")
    world.settle()
    world.pod_is("train-worker-1", "Failed", exit_code=1)
    world.settle()
    restarted(world)
    assert world.record.armed.by_key == {}

    world.waits(120)
    world.settle()
    assert world.phase == "Running"


def test_the_same_pod_and_event_arm_one_action() -> None:
    world = running(on("TaskFailed", "AbortJob", timeout="1m"))
    world.pod_is("train-worker-0", "Running", restarts=3)
    world.settle()
    world.waits(30)
    world.pod_is("train-worker-0", "Running", restarts=4)
    world.settle()

    assert [one.due for one in world.record.armed.by_key.values()] == [later(60)]
    assert len(done(world)) == 1
