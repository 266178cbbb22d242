"""What the controller does for a job in each phase, look by look."""

from typing import Any

import pytest

from tests.controllers.job.builders import a_command, a_job_pod_body, a_job_task, a_vcjob, on
from tests.controllers.job.world import World
from volcano_py.api.meta import ObjectMeta
from volcano_py.controllers.job import decision
from volcano_py.controllers.job.volumes import Claim

TWO = a_job_task(replicas=2)


def counts(world: World) -> dict[str, int]:
    """Return the counters of the status that are not zero."""
    status = world.job.status
    names = ("pending", "running", "succeeded", "failed", "terminating", "unknown")
    return {name: getattr(status, name) for name in names if getattr(status, name)}


def of_tasks(world: World) -> dict[str, dict[str, int]]:
    return {name: state.phase for name, state in world.job.status.task_status_count.items()}


# From creation to the end


def test_a_job_runs_and_completes() -> None:
    world = World(a_vcjob(TWO))
    world.runs()
    world.pod_is("train-worker-0", "Succeeded")
    world.pod_is("train-worker-1", "Succeeded")
    world.settle()

    assert world.phases == ["Pending", "Running", "Completed"]
    assert [one.status for one in world.job.status.conditions] == world.phases
    assert counts(world) == {"succeeded": 2}
    assert of_tasks(world) == {"worker": {"Succeeded": 2}}
    assert world.alive() == ["train-worker-0", "train-worker-1"]
    assert world.group is None
    state = world.job.status.state
    assert (state.reason, state.message) == ("PodsSucceeded", "all pods have ended: 2 succeeded, 0 failed")


def test_a_job_without_plugins_costs_few_writes() -> None:
    world = World(a_vcjob(a_job_task(replicas=20)))
    world.starts()
    for phase in ("Running", "Succeeded"):
        for index in range(20):
            world.pod_is(f"train-worker-{index}", phase)
        world.settle()
        world.waits(2)
        world.settle()

    assert world.phase == "Completed"
    assert world.writes <= 20 + 10


def test_a_second_look_over_unchanged_objects_writes_nothing() -> None:
    world = World(a_vcjob(TWO, plugins={"svc": []}, volumes=[{"mountPath": "/d", "volumeClaim": {}}]))
    world.runs()
    for event in (None, "Succeeded"):
        if event:
            for name in list(world.pods):
                world.pod_is(name, event)
        world.settle()
        world.waits(5)
        world.settle()
        before = world.writes, list(world.events)

        world.settle()

        assert (world.writes, world.events) == before


def test_a_process_that_takes_over_a_job_that_runs_writes_only_the_objects_of_plugins() -> None:
    world = World(a_vcjob(TWO, plugins={"svc": []}, policies=[on("*", "RestartJob")]))
    world.runs()
    world.waits(5)
    world.settle()
    before, phases = world.writes, list(world.phases)

    world.restart()
    world.settle()

    assert world.writes - before == len(world.objects)
    assert world.phases == phases


def test_a_job_that_is_being_deleted_is_left_to_the_garbage_collector() -> None:
    world = World(a_vcjob(TWO))
    world.runs()
    world.job = a_vcjob(TWO, phase="Running", meta={"deletionTimestamp": world.now, "generation": 2})
    world.restart()
    world.pod_goes("train-worker-0")

    plan = world.look()

    assert (plan.status, plan.create, plan.kill, plan.writes, plan.again) == (None, (), (), (), False)


# Pending


def test_the_first_look_writes_the_phase_before_anything_is_created() -> None:
    world = World(a_vcjob(TWO))

    plan = world.look()

    assert (world.phase, plan.writes, plan.create) == ("Pending", (), ())
    assert world.job.status.min_available == 2
    assert world.group is None


def test_pods_wait_until_the_queue_has_let_their_group_in() -> None:
    world = World(a_vcjob(TWO))
    world.settle()
    assert world.group is not None
    assert world.pods == {}

    world.group_is("Pending")
    world.settle()
    assert world.pods == {}

    world.group_is("Inqueue")
    world.settle()
    assert world.alive() == ["train-worker-0", "train-worker-1"]


def test_claims_and_objects_of_plugins_exist_before_the_group_and_the_group_before_pods() -> None:
    world = World(a_vcjob(TWO, plugins={"svc": []}, volumes=[{"mountPath": "/d", "volumeClaim": {}}]))
    order = []
    for _ in range(10):
        before = len(world.objects), len(world.claims), world.group is not None
        world.look()
        after = len(world.objects), len(world.claims), world.group is not None
        order += [
            name for name, was, now in zip(("objects", "claims", "group"), before, after, strict=True) if was != now
        ]

    assert order == ["objects", "claims", "group"]
    (claim,) = world.claims
    assert f"volume-pvc-{claim.removeprefix('ns/')}" in world.job.status.controlled_resources
    assert world.job.spec.volumes[0].volume_claim_name == claim.removeprefix("ns/")


def test_the_scheduler_s_reason_for_waiting_is_told_once_each() -> None:
    world = World(a_vcjob(TWO))
    world.settle()
    full = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "0/3 nodes"}
    for _ in range(2):
        world.group_is("Pending", full)
        world.settle()
    world.group_is("Pending", {**full, "message": "0/4 nodes"})
    world.settle()
    world.group_is("Inqueue", {"type": "Scheduled", "status": "True"})
    world.settle()

    told = world.told(decision.EVENT_GROUP_PENDING)
    assert [text.partition("reason: ")[2] for text in told] == ["0/3 nodes", "0/4 nodes"]
    assert told[0].startswith(f"PodGroup ns:train-{world.job.metadata.uid} unschedulable, ")


# What a job needs and does not exist


@pytest.mark.parametrize(
    ("spec", "reason", "named", "appears"),
    [
        pytest.param(
            {"queue": "team"}, "QueueNotFound", "queue team", lambda world: world.queues.add("team"), id="queue"
        ),
        pytest.param(
            {"volumes": [{"mountPath": "/d", "volumeClaimName": "data"}]},
            "ClaimNotFound",
            "PersistentVolumeClaim ns/data",
            lambda world: world.claims.update({"ns/data": Claim(ObjectMeta(name="data"))}),
            id="claim",
        ),
        pytest.param(
            {"priorityClassName": "high"},
            "PriorityClassNotFound",
            "PriorityClass high",
            lambda world: world.priorities.update(high=1),
            id="priority-class-of-the-job",
        ),
        pytest.param(
            {"tasks": [a_job_task(template={"spec": {"priorityClassName": "high"}})]},
            "PriorityClassNotFound",
            "PriorityClass high",
            lambda world: world.priorities.update(high=1),
            id="priority-class-of-a-task",
        ),
    ],
)
def test_a_job_that_cannot_proceed_says_why_and_the_way_out_and_goes_on_when_the_thing_appears(
    spec: dict[str, Any], reason: str, named: str, appears: Any
) -> None:
    world = World(a_vcjob(**{"queue": "default", **spec}) if "tasks" not in spec else a_vcjob(*spec["tasks"]))
    world.settle()
    world.waits(2)
    world.settle()
    state = world.job.status.state
    assert (state.phase, state.reason) == ("Pending", reason)
    assert state.message == f"{named} does not exist: create it; the job goes on when it exists"
    assert reason in decision.PROBLEMS
    assert world.group is None

    appears(world)
    world.waits(2)
    world.runs()

    assert world.phase == "Running"
    assert world.job.status.state.reason == "MinAvailableReached"


def test_a_job_with_an_unknown_plugin_says_so_and_creates_nothing() -> None:
    world = World(a_vcjob(TWO, plugins={"nope": []}))
    world.settle()
    world.waits(2)
    world.settle()

    state = world.job.status.state
    assert (state.phase, state.reason) == ("Pending", "PluginError")
    assert "nope" in state.message
    assert world.group is None


def test_a_quantity_that_cannot_be_read_is_named() -> None:
    container = {"name": "main", "resources": {"requests": {"cpu": "lots"}}}
    world = World(a_vcjob(a_job_task(template={"spec": {"containers": [container]}})))
    world.settle()
    world.waits(2)
    world.settle()

    state = world.job.status.state
    assert state.reason == "InvalidTemplate"
    assert "template of task worker" in state.message
    assert "lots" in state.message


def test_a_problem_is_written_once() -> None:
    world = World(a_vcjob(TWO, queue="team"))
    world.settle()
    before = world.writes
    for _ in range(3):
        world.waits(2)
        world.settle()

    assert world.writes == before


def test_a_job_that_runs_goes_on_without_its_queue() -> None:
    world = World(a_vcjob(TWO))
    world.runs()
    world.queues.clear()
    world.pod_goes("train-worker-0")
    world.settle()

    assert "train-worker-0" in world.pods
    assert world.phase in ("Running", "Pending")


# Running


def test_counters_that_change_within_a_phase_are_written_at_most_once_a_second() -> None:
    world = World(a_vcjob(a_job_task(replicas=4, minAvailable=1)))
    world.runs()
    world.waits(5)
    world.pod_is("train-worker-0", "Succeeded")
    world.settle()
    assert counts(world) == {"running": 3, "succeeded": 1}

    world.pod_is("train-worker-1", "Succeeded")
    plan = world.look()
    assert (plan.status, plan.look_again_s) == (None, decision.COUNTERS_EVERY_S)

    world.waits(1)
    world.settle()
    assert counts(world) == {"running": 2, "succeeded": 2}


def test_a_pod_that_vanishes_is_created_again() -> None:
    world = World(a_vcjob(a_job_task(replicas=2, minAvailable=1)))
    world.runs()
    first = world.uid_of("train-worker-0")
    world.pod_goes("train-worker-0")
    world.settle()

    assert world.uid_of("train-worker-0") != first
    assert world.phase == "Running"


def test_a_pod_that_terminates_is_created_again_only_when_it_is_gone() -> None:
    world = World(a_vcjob(a_job_task(replicas=2, minAvailable=1)))
    world.runs()
    world.pods["train-worker-0"]["metadata"]["deletionTimestamp"] = world.now
    world.pod_is("train-worker-0", "Running")
    world.waits(2)
    world.settle()
    assert counts(world) == {"running": 1, "terminating": 1}

    world.pod_goes("train-worker-0")
    world.settle()
    assert world.alive() == ["train-worker-0", "train-worker-1"]


def test_a_job_whose_pods_are_pending_again_is_pending_and_runs_later() -> None:
    world = World(a_vcjob(TWO))
    world.runs()
    for name in list(world.pods):
        world.pod_goes(name)
    world.settle()
    assert world.phase == "Pending"

    for name in world.alive():
        world.pod_is(name, "Running")
    world.settle()
    assert world.phases == ["Pending", "Running", "Pending", "Running"]


# Scaling


def test_a_job_grows_with_its_group() -> None:
    world = World(a_vcjob(TWO, plugins={"svc": []}))
    world.runs()
    world.edits(tasks=[a_job_task(replicas=4)], minAvailable=4)
    hosts = world.objects["ConfigMap train-svc"].body["data"]["worker.host"]
    plans = [world.look() for _ in range(3)]

    assert [bool(plan.ensure or plan.writes) for plan in plans] == [True, True, False]
    assert world.objects["ConfigMap train-svc"].body["data"]["worker.host"] != hosts
    world.settle()
    assert len(world.alive()) == 4
    assert world.group is not None
    assert world.group["spec"]["minMember"] == 4


def test_a_job_shrinks_from_the_end_and_that_is_no_eviction() -> None:
    world = World(a_vcjob(a_job_task(replicas=4), policies=[on("PodEvicted", "AbortJob")]))
    world.runs()
    world.edits(tasks=[a_job_task(replicas=1)], minAvailable=1)
    world.settle()
    assert world.alive() == ["train-worker-0"]
    assert world.terminating() == ["train-worker-1", "train-worker-2", "train-worker-3"]

    world.terminated_go()
    world.settle()
    assert world.phases == ["Pending", "Running"]


def test_a_job_scaled_to_zero_keeps_its_phase_and_grows_again() -> None:
    world = World(a_vcjob(TWO))
    world.runs()
    world.edits(tasks=[a_job_task(replicas=0)], minAvailable=0)
    world.settle()
    world.terminated_go()
    world.settle()
    assert (world.phase, world.pods) == ("Running", {})

    world.edits(tasks=[a_job_task(replicas=1)], minAvailable=1)
    world.settle()
    assert world.alive() == ["train-worker-0"]


# Ends


def test_pods_that_still_run_when_enough_have_succeeded_are_killed_and_count_as_terminating() -> None:
    world = World(a_vcjob(a_job_task(replicas=3), minSuccess=1))
    world.runs()
    world.pod_is("train-worker-1", "Succeeded")
    world.look()
    assert (world.phase, counts(world)) == ("Completed", {"succeeded": 1, "terminating": 2})

    world.settle()
    assert world.terminating() == ["train-worker-0", "train-worker-2"]
    world.terminated_go()
    world.waits(2)
    world.settle()
    assert counts(world) == {"succeeded": 1}
    assert of_tasks(world) == {"worker": {"Succeeded": 1}}


def test_a_finished_job_keeps_what_its_users_still_read() -> None:
    world = World(a_vcjob(TWO, plugins={"svc": []}))
    world.runs()
    for name in list(world.pods):
        world.pod_is(name, "Failed", exit_code=1)
    world.settle()
    world.waits(2)
    world.settle()
    before = world.job.status
    world.waits(60)
    world.settle()

    assert (world.phase, world.job.status) == ("Failed", before)
    assert world.alive() == ["train-worker-0", "train-worker-1"]
    assert (world.objects, world.group) == ({}, None)
    assert "plugin-svc" not in before.controlled_resources


@pytest.mark.parametrize(
    ("action", "on_the_way", "final"),
    [
        ("AbortJob", "Aborting", "Aborted"),
        ("TerminateJob", "Terminating", "Terminated"),
        ("CompleteJob", "Completing", "Completed"),
    ],
)
def test_a_job_that_is_ended_kills_what_runs_and_keeps_what_has_ended(action: str, on_the_way: str, final: str) -> None:
    world = World(a_vcjob(a_job_task(replicas=3), plugins={"svc": []}))
    world.runs()
    world.pod_is("train-worker-2", "Succeeded")
    world.settle()
    world.asks(a_command(action))
    world.look()
    assert (world.phase, counts(world)) == (on_the_way, {"terminating": 2, "succeeded": 1})

    world.settle()
    assert world.phase == on_the_way
    assert world.terminating() == ["train-worker-0", "train-worker-1"]
    world.terminated_go()
    world.settle()

    assert world.phase == final
    assert counts(world) == {"succeeded": 1}
    assert (world.job.status.version, world.job.status.retry_count) == (1, 0)
    assert (world.alive(), world.objects, world.group) == (["train-worker-2"], {}, None)


def test_a_job_that_lost_a_pod_completes_when_enough_of_the_others_succeed() -> None:
    world = World(a_vcjob(a_job_task(replicas=3), minSuccess=2))
    world.runs()
    world.pod_goes("train-worker-0")
    world.settle()
    assert world.phase == "Pending"

    for name in ("train-worker-1", "train-worker-2"):
        world.pod_is(name, "Succeeded")
    world.settle()

    assert (world.phase, world.job.status.state.reason) == ("Completed", "MinSuccessReached")
    assert world.terminating() == ["train-worker-0"]


def test_a_process_that_takes_over_kills_what_is_left() -> None:
    world = World(a_vcjob(TWO, phase="Terminating", status={"version": 1}))
    world.pods = {name: a_job_pod_body(name) for name in ("train-worker-0", "train-worker-1")}
    world.restart()
    world.settle()

    assert world.terminating() == ["train-worker-0", "train-worker-1"]
    world.terminated_go()
    world.settle()
    assert world.phase == "Terminated"
