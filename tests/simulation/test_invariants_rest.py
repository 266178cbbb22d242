"""The invariants of jobs, PodGroups, queues and processes: each fails where it should, and only there."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.simulation import insight, objects, programs
from tests.simulation.draws import generator
from tests.simulation.fabricated import Fabricated
from tests.simulation.invariants import INVARIANTS
from tests.simulation.invariants.rest import Rest
from tests.simulation.plan import Strike
from tests.simulation.sabotages import SABOTAGES
from volcano_py.apiserver.origin import ORIGIN
from volcano_py.kube.retry_queue import RetryQueue
from volcano_py.model.objects import TaskRef

JOB = "vcjob-0"
WAITS_S = 62.0


class Program:
    """A program that does nothing, with such parts as invariants look at."""

    def __init__(self, why_lost: str = "", **parts: object) -> None:
        self.leading = SimpleNamespace(is_set=lambda: False)
        self._context = SimpleNamespace(leadership=SimpleNamespace(why_lost=why_lost))
        vars(self).update(parts)


@pytest.fixture
def world() -> Iterator[Fabricated]:
    """A world with a scheduler and a controller manager that lead."""
    token = ORIGIN.set(ORIGIN.get())
    fabricated = Fabricated()
    fabricated.node("node-0")
    fabricated.lead(fabricated.one)
    fabricated.lead(fabricated.controllers, "vc-controller-manager")
    yield fabricated
    fabricated.loop.abandon()
    ORIGIN.reset(token)


def job(world: Fabricated, phase: str = "Running", pods: int = 2, **counts: int) -> dict[str, Any]:
    """Create a job with its PodGroup."""
    body = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": JOB, "namespace": objects.NAMESPACE},
        "spec": {
            "schedulerName": "volcano",
            "minAvailable": pods,
            "policies": [{"event": "PodEvicted", "action": "RestartJob"}],
            "tasks": [{"name": "main", "replicas": pods, "template": {"spec": objects.pod_spec("1")}}],
        },
    }
    made = world.servers.create(body)
    for step in ("Pending", "Running"):
        status(world, step)
        if step == phase:
            break
    status(world, phase, **counts)
    if phase in ("Pending", "Running"):
        group = objects.group("group", pods, "default", "1")
        group["metadata"]["ownerReferences"] = [owner(made)]
        world.servers.create(group)
        world.put(objects.GROUPS, group, status={"phase": "Running"})
    return made


def status(world: Fabricated, phase: str, **counts: object) -> None:
    """Write the status of the job."""
    world.put(objects.JOBS, world.current(objects.JOBS, JOB), status={"state": {"phase": phase}, **counts})


def owner(made: dict[str, Any]) -> dict[str, Any]:
    """Return a reference to a controller."""
    meta = made["metadata"]
    return {
        "apiVersion": made["apiVersion"],
        "kind": made["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }


def member(
    world: Fabricated, made: dict[str, Any], index: int, name: str = "", phase: str = "Running", task: str = "main"
) -> None:
    """Create a pod of the job."""
    pod = objects.pod(name or f"{JOB}-main-{index}", "1", "group")
    pod["metadata"]["ownerReferences"] = [owner(made)]
    pod["metadata"]["labels"] = {"volcano.sh/task-spec": task, "volcano.sh/task-index": str(index)}
    pod["metadata"]["annotations"] |= {"volcano.sh/job-version": "0", "volcano.sh/task-spec": task}
    with world.asks(world.controllers, "create", "pods"):
        created = world.servers.create(pod)
    world.put(objects.PODS, created, status={"phase": phase})


def test_a_job_as_it_should_be_violates_nothing(world: Fabricated) -> None:
    made = job(world, running=2)
    for index in (0, 1):
        member(world, made, index)
    assert not world.found()
    assert not world.rest("jobs have their pods", "jobs keep their table")


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [("Running", "Completed", True), ("Pending", "Completed", False), ("Completed", "Running", False)],
)
def test_a_way_that_the_table_does_not_have_is_found(world: Fabricated, before: str, after: str, allowed: bool) -> None:
    job(world, before)
    status(world, after)
    assert world.found() == (set() if allowed else {"jobs keep their table"})


def test_a_count_of_restarts_that_decreases_is_found(world: Fabricated) -> None:
    job(world, version=2)
    status(world, "Running", version=1)
    assert world.found() == {"jobs keep their table"}


@pytest.mark.parametrize("stale", [False, True])
def test_a_restart_for_a_pod_that_is_still_there_is_found(world: Fabricated, stale: bool) -> None:
    """A list of an older state may leave a pod out."""
    job(world)
    if stale:
        world.stale_lists()
    state = {"phase": "Restarting", "reason": "PodEvicted"}
    world.put(objects.JOBS, world.current(objects.JOBS, JOB), status={"state": state, "retryCount": 1})
    assert world.found() == (set() if stale else {"jobs keep their table"})


@pytest.mark.parametrize(("retries", "found"), [(0, {"jobs keep their table"}), (1, set())])
def test_a_restart_that_does_not_count_is_found_unless_a_drain_goes_on(
    world: Fabricated, retries: int, found: set[str]
) -> None:
    made = job(world, retryCount=retries)
    member(world, made, 0)
    world.remove(objects.PODS, f"default/{JOB}-main-0")
    state = {"phase": "Restarting", "reason": "PodEvicted"}
    world.put(objects.JOBS, world.current(objects.JOBS, JOB), status={"state": state, "retryCount": retries})
    assert world.found() == found


def test_two_pods_of_one_index_are_found(world: Fabricated) -> None:
    made = job(world)
    member(world, made, 0)
    world.remove(objects.PODS, f"default/{JOB}-main-0")
    member(world, made, 0)
    assert not world.found()
    member(world, made, 0, "another")
    assert world.found() == {"one pod per index"}


@pytest.mark.parametrize(("scaled_at", "wrong"), [(1.0, False), (5.0, False), (90.0, True)])
def test_a_job_that_does_not_restart_for_a_pod_that_it_needs_is_found(
    world: Fabricated, scaled_at: float, wrong: bool
) -> None:
    """The pod is gone after two seconds; the job has one pod less before, soon after, or much later."""
    made = job(world)
    for index in (0, 1):
        member(world, made, index)
    status(world, "Running", taskStatusCount={"main": {"phase": {"Running": 2}}})
    for at in sorted((2.0, scaled_at)):
        world.at(at)
        if at == scaled_at:
            spec = copy.deepcopy(made["spec"])
            spec["tasks"][0]["replicas"] = 1
            world.put(objects.JOBS, made, spec=spec)
        else:
            world.remove(objects.PODS, f"default/{JOB}-main-1")
    assert world.rest("jobs keep their table") == ({"jobs keep their table"} if wrong else set())


@pytest.mark.parametrize("indices", [(0,), (0, 1, 2)])
def test_a_pod_that_is_missing_or_too_many_is_found(world: Fabricated, indices: tuple[int, ...]) -> None:
    made = job(world)
    for index in indices:
        member(world, made, index)
    assert world.rest("jobs have their pods") == {"jobs have their pods"}


@pytest.mark.parametrize("stale", [False, True])
def test_pods_of_a_former_version_are_found(world: Fabricated, stale: bool) -> None:
    """A list of an older state may leave pods out, and their job is restarted for them."""
    made = job(world)
    for index in range(2):
        member(world, made, index)
    if stale:
        world.stale_lists()
    status(world, "Running", version=1)
    assert world.rest("jobs have their pods") == (set() if stale else {"jobs have their pods"})


def test_a_pod_that_outlives_its_job_is_found(world: Fabricated) -> None:
    made = job(world, "Completed")
    member(world, made, 0)
    assert world.rest("jobs have their pods") == {"jobs have their pods"}


def test_a_job_that_rests_on_its_way_is_found(world: Fabricated) -> None:
    job(world, "Restarting", retryCount=1)
    assert world.rest("jobs have their pods") == {"jobs have their pods"}


@pytest.mark.parametrize("version", [0, 1])
def test_a_pod_for_a_version_that_the_job_has_left_is_found(world: Fabricated, version: int) -> None:
    made = job(world, version=version)
    world.at(2.0)
    member(world, made, 0)
    assert world.found() == ({"versions of jobs are kept"} if version else set())


def test_counters_that_are_wrong_are_found(world: Fabricated) -> None:
    made = job(world, running=1, pending=1)
    for index in (0, 1):
        member(world, made, index)
    world.put(objects.GROUPS, world.current(objects.GROUPS, "group"), status={"phase": "Running", "running": 2})
    assert world.rest("statuses are true") == {"statuses are true"}
    status(world, "Running", running=2)
    assert not world.rest("statuses are true")


def test_two_groups_of_one_owner_are_found(world: Fabricated) -> None:
    pod = world.pod("single", group="")
    for name in ("one", "two"):
        group = objects.group(name, 1, "default", "1")
        group["metadata"]["ownerReferences"] = [owner({"apiVersion": "v1", "kind": "Pod", **pod})]
        world.servers.create(group)
        assert world.found() == ({"one group per owner"} if name == "two" else set())


def test_a_pod_without_group_is_found(world: Fabricated) -> None:
    pod = world.pod("single", group="")
    assert world.rest("one group per owner") == {"one group per owner"}
    world.servers.create(objects.group("g", 1, "default", "1"))
    world.put(objects.PODS, pod, metadata={**pod["metadata"], "annotations": {objects.GROUP_NAME: "g"}})
    assert not world.rest("one group per owner")


@pytest.mark.parametrize(
    ("phase", "node", "fits"), [("Running", "", False), ("Inqueue", "node-0", False), ("Running", "node-0", True)]
)
def test_a_phase_that_does_not_fit_is_found(world: Fabricated, phase: str, node: str, fits: bool) -> None:
    group = world.servers.create(objects.group("g", 1, "default", "1"))
    world.pod("p", **({"nodeName": node} if node else {}))
    world.put(objects.GROUPS, group, status={"phase": phase})
    assert world.rest("phases of groups fit") == (set() if fits else {"phases of groups fit"})


def test_a_heap_that_grows_is_found(world: Fabricated) -> None:
    queue: RetryQueue[str] = RetryQueue(attempts=1, clock=world.world.origin_clock, rng=generator(1, "queue"))
    machine = world.world.machines["scheduler-0"]
    machine._task, machine.running = SimpleNamespace(), Program(queue=queue)  # type: ignore[assignment]
    machine.running.leading = SimpleNamespace(is_set=lambda: True)
    invariant = next(each for each in world.world.invariants if each.name == "queues are bounded")
    queue.plan("key", 10.0)
    invariant.now()
    assert not world.found() & {"queues are bounded"}
    queue._due.extend((5.0, number, "key") for number in range(100))
    invariant.now()
    assert world.found() & {"queues are bounded"}
    queue._rebuild()
    world.at(20.0)
    assert world.rest("queues are bounded") == {"queues are bounded"}


def test_a_request_without_an_end_is_found(world: Fabricated) -> None:
    with world.asks(world.one, "get", objects.PODS) as asked:
        asked.connection = SimpleNamespace(is_closing=lambda: False)  # type: ignore[assignment]
    world.servers.open[asked] = None
    for at in (30.0, WAITS_S):
        world.at(at)
        world.now()
        assert world.found() == ({"requests end"} if at == WAITS_S else set())


@pytest.mark.parametrize(("code", "lost"), [(1, "it expired"), (1, ""), (0, "")])
def test_a_program_that_ends_by_itself_is_found(world: Fabricated, code: int, lost: str) -> None:
    world.world.machines["scheduler-1"].ends.append((Program(lost), code))
    world.now()
    assert world.found() == (set() if lost else {"programs end for a reason"})


def test_a_program_that_does_not_end_when_asked_is_found(world: Fabricated) -> None:
    machine = world.world.machines["scheduler-1"]
    machine._task, machine.running = SimpleNamespace(), Program()  # type: ignore[assignment]
    machine.shutdown = SimpleNamespace(graceful=SimpleNamespace(is_set=lambda: True))  # type: ignore[assignment]
    for second in range(40):
        world.at(float(second))
        world.now()
    assert world.found() == {"programs end for a reason"}


def test_an_exception_that_nobody_takes_is_found(world: Fabricated) -> None:
    world.now()
    assert not world.found()
    world.world.machines["scheduler-1"].process.errors.append({"message": "lost", "exception": ValueError()})
    world.now()
    assert world.found() == {"no process fails"}


def test_a_lease_that_is_lost_without_reason_is_found(world: Fabricated) -> None:
    for machine in world.world.machines.values():
        machine._task = SimpleNamespace()  # type: ignore[assignment]
    world.at(30.0)
    world.now()
    world.lead(world.other)
    assert world.found() == {"the lease is kept"}


@pytest.mark.parametrize(
    ("asked_about", "paused", "silent"),
    [(True, False, False), (False, False, False), (False, True, False), (False, False, True)],
)
def test_a_bind_that_nobody_asks_about_is_found(
    world: Fabricated, asked_about: bool, paused: bool, silent: bool
) -> None:
    """A process that was paused has just begun to ask. On a silent connection, a question gets no answer."""
    if silent:  # full seed 990299
        strikes = (Strike(0, 40.0, "half-open connections", "scheduler-0"),)
        world.world.plan = replace(world.world.plan, strikes=strikes)
    entry = SimpleNamespace(task=TaskRef("default", "p", "uid"), assumed_at=0.0)
    machine = world.world.machines["scheduler-0"]
    machine._task, machine.process = SimpleNamespace(), world.one  # type: ignore[assignment]
    machine.running = Program(
        cache=SimpleNamespace(binds=SimpleNamespace(ledger=[entry])),
        binder=SimpleNamespace(holds=lambda uid: False),
    )
    machine.running.leading = SimpleNamespace(is_set=lambda: True)
    invariant = next(each for each in world.world.invariants if each.name == "what is overdue is asked about")
    for number in range(20):
        world.at(80.0 + number + (30.0 if paused and number >= 10 else 0.0))
        name = "p" if asked_about else f"other-{number}"
        with world.asks(world.one, "get", objects.PODS, key=name) as asked:
            invariant.answered(asked, 200)
        invariant.now()
    assert world.found() == (set() if asked_about or paused or silent else {invariant.name})


@pytest.mark.parametrize(("phase", "fits"), [("Running", True), ("Pending", False)])
def test_a_task_waits_until_the_one_that_it_depends_on_runs(world: Fabricated, phase: str, fits: bool) -> None:
    template = {"spec": objects.pod_spec("1")}
    body = objects.vcjob(JOB, [("main", 1, 1, template), ("worker", 1, 1, template)], 2, "default")
    body["spec"]["tasks"][1]["dependsOn"] = {"name": ["main"]}
    made = world.servers.create(body)
    member(world, made, 0, phase=phase)
    world.found()
    member(world, made, 0, "other", task="worker")

    assert ("tasks wait for others" in world.found()) is not fits


def test_every_invariant_has_a_test_in_which_it_fails() -> None:
    """Or a sabotage for which a seed was found."""
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_invariants_*.py"))
    sabotages = {name for sabotage in SABOTAGES.values() for name in sabotage.found_by}
    assert not [name for name in INVARIANTS if f'"{name}"' not in tests and name not in sabotages]


@pytest.mark.parametrize(("bound_at", "until"), [(10.0, 220.0), (190.0, 265.0), (230.0, 295.0)])
def test_after_a_late_bind_others_may_still_be_told_that_they_wait(
    world: Fabricated, bound_at: float, until: float
) -> None:
    rest = next(each for each in world.world.invariants if isinstance(each, Rest))
    world.at(bound_at)
    with world.asks(world.one, "create", "pods/binding", key="default/p") as asked:
        rest.answered(asked, 201)

    assert rest.limit(220.0) == until


def test_nominations_to_nodes_that_are_there_or_gone_are_part_of_what_cycles_see(world: Fabricated) -> None:
    """Short seed 11006482."""
    world.servers.create(objects.group("g", 1, "default", "1"))
    for name, node in (("kept", "node-0"), ("lost", "gone")):
        pod = world.pod(name)
        world.put(objects.PODS, pod, status={"phase": "Pending", "nominatedNodeName": node})

    found = insight.columns(programs.rebuilt(world.servers))

    assert found["nominations"] == {"default/kept": "node-0"}
    assert found["nominations to no node"] == {"default/lost": True}


@pytest.mark.parametrize(("narrow", "until"), [(False, 220.0), (True, 280.0)])
def test_a_text_that_did_not_fit_into_a_narrow_queue_is_told_a_minute_later(
    world: Fabricated, narrow: bool, until: float
) -> None:
    """Short seed 12001760."""
    rest = next(each for each in world.world.invariants if isinstance(each, Rest))
    world.world.plan = replace(world.world.plan, narrow=narrow)

    assert rest.limit(220.0) == until


def test_after_the_end_of_a_nomination_others_may_still_be_told_that_they_wait(world: Fabricated) -> None:
    """Its room in the queue is free again (full seed 950675)."""
    rest = next(each for each in world.world.invariants if isinstance(each, Rest))
    pod = world.pod("p")
    world.at(100.0)
    world.put(objects.PODS, pod, status={"phase": "Pending", "nominatedNodeName": "node-0"})
    assert rest.limit(220.0) == 220.0
    world.at(190.0)
    world.put(objects.PODS, pod, status={"phase": "Pending"})

    assert rest.limit(220.0) == 265.0


@pytest.mark.parametrize(("status", "until"), [(200, 265.0), (503, 220.0)])
def test_after_a_late_list_pods_may_still_be_told_that_they_wait(world: Fabricated, status: int, until: float) -> None:
    """A list waited for a minute on a connection that was half-open (short seed 10003645)."""
    rest = next(each for each in world.world.invariants if isinstance(each, Rest))
    world.at(190.0)
    with world.asks(world.one, "list", "pods") as asked:
        world.world._answered(asked, status)

    assert rest.limit(220.0) == until


@pytest.mark.parametrize(
    ("jump_s", "writer", "resource", "counts"),
    [
        (3000.0, "one", "events", False),
        (-3000.0, "one", "events", False),
        (3000.0, "controllers", "events", True),
        (3000.0, "one", "pods/status", True),
        (20.0, "one", "events", True),
    ],
)
def test_only_reminders_of_a_scheduler_after_a_great_jump_of_a_clock_are_no_unrest(
    world: Fabricated, jump_s: float, writer: str, resource: str, counts: bool
) -> None:
    world.world.plan = replace(world.world.plan, strikes=(Strike(0, 1.0, "clock jump", "scheduler-0", amount=jump_s),))
    rest = next(each for each in world.world.invariants if isinstance(each, Rest))
    world.at(10.0)
    with world.asks(getattr(world, writer), "patch", resource) as asked:
        rest.answered(asked, 200)

    assert (rest.last_write_at > 0) == counts
