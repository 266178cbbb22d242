from dataclasses import replace
from typing import ClassVar

import pytest

from tests.framework.failures import without_places
from tests.reference.world import World, a_job, a_node, a_shape, tasks_of
from tests.scheduler.running import DEFAULT, Outcome, a_policy, cycle
from volcano_py.framework.contract.extension_points import JobEnqueueable, Vote
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.state.info import JobInfo
from volcano_py.model.objects import JobKey, QueueRecord
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins import PLUGINS

ONE = a_shape(cpu=1)


class Doorman(Plugin, JobEnqueueable):
    """Permits two jobs in all, rejects jobs named ``bad``, and fails for jobs named ``odd``."""

    name: ClassVar = "doorman"

    def __init__(self, arguments: object = None) -> None:
        self.inside = 0

    def job_enqueueable(self, job: JobInfo) -> Vote:
        if job.key.name == "odd":
            raise RuntimeError("tripped")
        if job.key.name == "bad" or self.inside == 2:
            return Vote.REJECT
        self.inside += 1
        return Vote.ABSTAIN


POLICY = a_policy(DEFAULT + "  - name: doorman\n", plugins={**PLUGINS, "doorman": Doorman})
OVERCOMMIT = a_policy(DEFAULT + "  - name: overcommit\n")
SOME = {"cpu": 1000.0}


@pytest.mark.parametrize("phase", ["", "Pending"])
def test_a_pending_job_is_enqueued_and_placed_in_the_same_cycle(phase: str) -> None:
    world = World((a_node("n1"),), jobs=(a_job("j", phase=phase),), tasks=tasks_of("j", 1, ONE))
    found = cycle(world)

    assert found.report.jobs_enqueued == 1
    assert found.groups["j"].phase == "Inqueue"
    assert found.binds == [("j-0", "n1")]


def test_an_enqueued_job_counts_once_however_late_the_watch_shows_its_phase() -> None:
    world = World((a_node("n1"),), jobs=(a_job("j", phase="Pending"),), tasks=tasks_of("j", 1, ONE))
    first = cycle(world)
    second = cycle(world, memory=first.memory)
    third = cycle(world, memory=second.memory)

    assert [found.report.jobs_enqueued for found in (first, second, third)] == [1, 0, 0]


def enqueued(found: Outcome) -> set[str]:
    return {name for name, status in found.groups.items() if status.phase == "Inqueue"}


def test_a_job_stays_enqueued_while_its_phase_is_on_its_way() -> None:
    """Otherwise a job that comes before it takes its place, and pods may have been evicted for it."""
    nowhere = a_shape(cpu=1, node_selector={"no": "node"})
    wait = {"phase": "Pending", "min_resources": SOME, "min_available": 1}
    world = World(
        (a_node("n1", cpu=2),),
        jobs=(a_job("a", **wait), a_job("b", **wait)),
        tasks=(*tasks_of("a", 1, nowhere), *tasks_of("b", 1, nowhere)),
    )
    store = world.store()
    before = cycle(store, OVERCOMMIT)
    assert enqueued(before) == {"a", "b"}

    store.set_job(a_job("first", priority=9, **wait))
    later = cycle(store, OVERCOMMIT, memory=before.memory)
    assert set(later.memory.enqueued) == {JobKey("ns", "a"), JobKey("ns", "b")}
    assert not {"a", "b"} & later.groups.keys()

    # One of them shows something that was not decided, and the other one has been made again.
    store.set_job(a_job("a", running=1, **wait))
    store.remove_job(JobKey("ns", "b"))
    store.set_job(replace(a_job("b", **wait), uid="another"))
    asked = cycle(store, OVERCOMMIT, memory=later.memory)
    assert JobKey("ns", "first") in asked.memory.enqueued
    assert len(asked.memory.enqueued) == 2


FULL = {"cpu": 4000.0}


@pytest.mark.parametrize("phase", ["Pending", "Inqueue", "Running", "Unknown"])
@pytest.mark.parametrize("plugin", ["overcommit", "capacity", "proportion"])
@pytest.mark.parametrize("left", [(), (TaskStatus.FAILED, TaskStatus.SUCCEEDED)], ids=["no-pods", "ended-pods"])
def test_the_group_of_a_workload_without_pods_reserves_nothing(
    phase: str, plugin: str, left: tuple[TaskStatus, ...]
) -> None:
    """Its Job of Kubernetes is suspended, or has failed and its pods were removed."""
    gone = a_job("gone", phase=phase, min_resources=FULL, min_available=4, priority=9, follows_pods=True)
    other = a_job("other", phase="Pending", min_resources=FULL, min_available=4)
    ended = [task for n, status in enumerate(left) for task in tasks_of("gone", 1, ONE, first=n, status=status)]
    world = World((a_node("n1", cpu=4),), jobs=(gone, other), tasks=(*ended, *tasks_of("other", 4, ONE)))
    found = cycle(world, a_policy(DEFAULT + f"  - name: {plugin}\n"))

    assert len(found.binds) == 4
    assert found.groups["gone"].phase == "Pending" if "gone" in found.groups else phase == "Pending"


def test_the_group_of_a_workload_is_enqueued_when_its_first_pod_comes() -> None:
    job = a_job("j", phase="Pending", min_resources=SOME, min_available=1, follows_pods=True)
    world = World((a_node("n1", cpu=2),), jobs=(job,))
    store = world.store()
    before = cycle(store, OVERCOMMIT)
    for task in tasks_of("j", 1, ONE):
        store.set_task(task.record, task.shape, task.status, task.node)
    after = cycle(store, OVERCOMMIT, memory=before.memory)

    assert (enqueued(before), after.binds) == (set(), [("j-0", "n1")])


def test_a_group_that_is_enqueued_before_its_pods_are_made_keeps_its_room() -> None:
    early = a_job("early", phase="Inqueue", min_resources=FULL, min_available=4)
    late = a_job("late", phase="Pending", min_resources=FULL, min_available=4)
    world = World((a_node("n1", cpu=4),), jobs=(early, late), tasks=tasks_of("late", 4, ONE))

    assert not cycle(world, OVERCOMMIT).binds


@pytest.mark.parametrize("phase", ["Inqueue", "Running", "Unknown", "Completed"])
def test_no_vote_is_taken_on_an_enqueued_job(phase: str) -> None:
    world = World(jobs=(a_job("j", phase=phase, min_resources=SOME),), tasks=tasks_of("j", 1, ONE))

    assert cycle(world, POLICY).report.jobs_enqueued == 0


def test_jobs_are_enqueued_in_order_and_a_refused_one_does_not_block_others() -> None:
    names = ("bad", "a", "b", "c")
    world = World(
        (a_node("n1", cpu=64),),
        jobs=tuple(a_job(name, min_available=1, min_resources=SOME, priority=-i) for i, name in enumerate(names)),
        tasks=tuple(task for name in names for task in tasks_of(name, 1, ONE)),
    )
    found = cycle(world, POLICY)

    assert [name for name, _ in found.binds] == ["a-0", "b-0"]
    assert {name: group.phase for name, group in found.groups.items()} == {
        "a": "Inqueue",
        "b": "Inqueue",
        "bad": "Pending",
        "c": "Pending",
    }
    assert all(found.messages[name].startswith("pod group is not ready") for name in ("bad-0", "c-0"))


def test_a_job_without_minimum_resources_is_not_put_to_the_vote() -> None:
    world = World((a_node("n1"),), jobs=(a_job("bad"),), tasks=tasks_of("bad", 1, ONE))

    assert cycle(world, POLICY).binds == [("bad-0", "n1")]


def test_a_plugin_that_fails_for_one_job_costs_only_that_job() -> None:
    world = World(
        (a_node("n1"),),
        jobs=(a_job("odd", min_resources=SOME, creation=1.0), a_job("j", min_resources=SOME, creation=2.0)),
        tasks=(*tasks_of("odd", 1, ONE), *tasks_of("j", 1, ONE)),
    )
    found = cycle(world, POLICY)

    assert found.binds == [("j-0", "n1")]
    assert without_places(found.report.failures) == [
        "plugin doorman failed in job_enqueueable: RuntimeError: tripped; PodGroup ns/odd waits for the next cycle"
    ]
    assert "tripped" in found.messages["odd-0"]


@pytest.mark.parametrize("state", ["Closed", "Closing", "Unknown"])
def test_no_job_of_a_queue_that_is_not_open_is_enqueued(state: str) -> None:
    world = World(
        (a_node("n1"),),
        queues=(QueueRecord("q", state=state),),
        jobs=(a_job("new", queue="q"), a_job("old", queue="q", phase="Inqueue")),
        tasks=(*tasks_of("new", 1, ONE), *tasks_of("old", 1, ONE)),
    )
    found = cycle(world)

    assert found.binds == [("old-0", "n1")], "what came in before the queue was closed goes on"
    assert f'queue "q" is {state}, not Open: it takes no new job' in found.messages["new-0"]
    assert found.groups["new"].phase == "Pending"


def test_a_missing_queue_is_reported_with_the_job() -> None:
    world = World((a_node("n1"),), jobs=(a_job("j", queue="ml"),), tasks=tasks_of("j", 1, ONE))
    found = cycle(world)

    assert found.binds == []
    assert 'queue "ml" of PodGroup ns/j does not exist: create it or change spec.queue' in found.messages["j-0"]


def test_a_job_without_tasks_that_is_not_enqueued_is_reported_with_the_reason() -> None:
    world = World((a_node("n1"),), jobs=(a_job("bad", min_available=1, min_resources=SOME),))

    report = cycle(world, POLICY).report

    assert {key.name: job.ready for key, job in report.jobs.items()} == {"bad": 0}
    assert report.pending_tasks == 0
