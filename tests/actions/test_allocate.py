from collections import Counter

import pytest

from tests.reference.world import World, a_job, a_node, a_queue, a_shape, a_task, tasks_of
from tests.scheduler.running import DEFAULT, WITHOUT_GANG, cycle
from volcano_py.model.objects import QueueRecord, TaskRecord
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.columns import TaskColumns

ONE = a_shape(cpu=1)
RUNNING = TaskStatus.RUNNING


def test_a_gang_is_bound_in_one_batch_and_tasks_beyond_its_minimum_one_by_one() -> None:
    world = World((a_node("n1", cpu=8),), jobs=(a_job("j", min_available=3),), tasks=tasks_of("j", 5, ONE))

    assert cycle(world).gangs == [["j-0", "j-1", "j-2"], ["j-3"], ["j-4"]]


def test_other_jobs_take_turns_between_the_extra_tasks_of_a_job() -> None:
    world = World(
        (a_node("n1", cpu=6),),
        jobs=(a_job("a", min_available=1, creation=1.0), a_job("b", min_available=2, creation=2.0)),
        tasks=(*tasks_of("a", 4, ONE), *tasks_of("b", 4, ONE)),
    )

    assert cycle(world).gangs == [["a-0"], ["b-0", "b-1"], ["a-1"], ["a-2"], ["a-3"]]


def test_running_members_count_and_only_the_rest_is_placed_as_a_gang() -> None:
    running = tasks_of("j", 2, ONE, status=RUNNING, node="n1")
    world = World(
        (a_node("n1", cpu=4),), jobs=(a_job("j", min_available=4),), tasks=(*running, *tasks_of("j", 2, ONE, first=2))
    )

    assert cycle(world).gangs == [["j-2", "j-3"]]


def test_a_gang_that_lacks_one_place_takes_none() -> None:
    world = World((a_node("n1", cpu=5),), jobs=(a_job("j", min_available=6),), tasks=tasks_of("j", 6, ONE))
    found = cycle(world)

    assert found.binds == []
    assert found.report.jobs_discarded == 1
    assert sorted(set(found.reasons.values())) == ["Schedulable", "Unschedulable"]
    assert found.messages["j-5"] == "0/1 nodes are unavailable: 1 Insufficient cpu."
    assert found.messages["j-0"] == "Pod ns/j-0 can possibly be assigned to n1, once minAvailable is satisfied"


def test_without_gang_as_many_as_fit_are_placed() -> None:
    world = World((a_node("n1", cpu=5),), jobs=(a_job("j", min_available=6),), tasks=tasks_of("j", 6, ONE))

    assert len(cycle(world, WITHOUT_GANG).binds) == 5


def test_resources_of_a_discarded_statement_go_to_another_job() -> None:
    world = World(
        (a_node("n1", cpu=4),),
        jobs=(a_job("big", min_available=6, creation=1.0), a_job("small", min_available=2, creation=2.0)),
        tasks=(*tasks_of("big", 6, ONE), *tasks_of("small", 2, ONE)),
    )

    assert cycle(world).gangs == [["small-0", "small-1"]]


def test_a_shape_that_finds_no_node_does_not_hold_up_other_shapes() -> None:
    """Volcano skips the whole role; here what differs is tried."""
    big = a_shape(cpu=64)
    world = World(
        (a_node("n1", cpu=4),),
        jobs=(a_job("j", min_available=2),),
        tasks=(
            *tasks_of("j", 2, big, role="w", priority=9),
            *tasks_of("j", 2, ONE, role="w", first=2),
            *tasks_of("j", 1, big, role="w", first=4),
        ),
    )
    found = cycle(world)

    assert found.binds == [("j-w-2", "n1"), ("j-w-3", "n1")]
    assert {found.messages[name] for name in ("j-w-0", "j-w-1", "j-w-4")} == {
        "0/1 nodes are unavailable: 1 Insufficient cpu."
    }


def test_a_gang_that_waits_for_terminating_pods_stays_pipelined_and_binds_nothing() -> None:
    leaving = tasks_of("old", 2, a_shape(cpu=2), status=TaskStatus.RELEASING, node="n1")
    world = World(
        (a_node("n1", cpu=4), a_node("n2", cpu=1)),
        jobs=(a_job("first", min_available=3, creation=1.0), a_job("second", min_available=1, creation=2.0)),
        tasks=(*leaving, *tasks_of("first", 3, ONE), *tasks_of("second", 1, ONE)),
    )
    found = cycle(world)

    assert found.binds == []
    waiting = [name for name, message in found.messages.items() if "once resource is released" in message]
    assert waiting == ["first-1", "first-2", "second-0"]
    assert found.messages["first-0"] == "Pod ns/first-0 can possibly be assigned to n2, once minAvailable is satisfied"


def test_every_task_of_a_gang_that_waits_for_terminating_pods_says_why() -> None:
    leaving = tasks_of("old", 1, a_shape(cpu=2), status=TaskStatus.RELEASING, node="n1")
    world = World(
        (a_node("n1", cpu=2), a_node("n2", cpu=1)),
        jobs=(a_job("j", min_available=2),),
        tasks=(*leaving, *tasks_of("j", 2, ONE)),
    )
    found = cycle(world)

    assert found.binds == []
    assert found.reasons == {"j-0": "Schedulable", "j-1": "Unschedulable"}
    assert found.report.pending_tasks == 2


@pytest.mark.parametrize(
    ("shape", "record"),
    [
        pytest.param(a_shape(), {}, id="best-effort"),
        pytest.param(a_shape(cpu=1, gates=("g",)), {}, id="gated"),
        pytest.param(a_shape(cpu=1, unsupported=("spec.x",)), {}, id="unsupported"),
        pytest.param(ONE, {"foreign": True}, id="of-another-scheduler"),
    ],
)
def test_pods_that_we_may_not_place_are_left_alone(shape: object, record: dict[str, object]) -> None:
    world = World(
        (a_node("n1"),),
        jobs=(a_job("j"),),
        tasks=(a_task("odd", shape, job="j", **record), a_task("even", ONE, job="j")),  # type: ignore[arg-type]
    )

    assert cycle(world).binds == [("even", "n1")]


def test_a_pod_of_another_scheduler_counts_on_its_node_and_in_no_gang() -> None:
    world = World(
        (a_node("n1", cpu=3),),
        jobs=(a_job("j", min_available=2),),
        tasks=(a_task("theirs", ONE, job="j", status=RUNNING, node="n1", foreign=True), *tasks_of("j", 3, ONE)),
    )

    assert cycle(world).gangs == [["j-0", "j-1"]]


@pytest.mark.parametrize("conf", [DEFAULT, WITHOUT_GANG], ids=["gang", "no-gang"])
def test_an_action_that_is_named_twice_places_nothing_twice(conf: str) -> None:
    world = World((a_node("n1", cpu=8),), jobs=(a_job("j", min_available=2),), tasks=tasks_of("j", 3, ONE))
    found = cycle(world, conf.replace("enqueue, allocate", "enqueue, allocate, allocate"))

    assert found.binds == [("j-0", "n1"), ("j-1", "n1"), ("j-2", "n1")]


def test_without_the_enqueue_action_allocate_enqueues_pending_jobs() -> None:
    world = World((a_node("n1"),), jobs=(a_job("j"),), tasks=tasks_of("j", 1, ONE))
    found = cycle(world, DEFAULT.replace("enqueue, ", ""))

    assert found.binds == [("j-0", "n1")]
    assert found.groups["j"].phase == "Inqueue"


@pytest.mark.parametrize("order", ["allocate, backfill", "backfill, allocate"])
def test_without_the_enqueue_action_pending_jobs_without_tasks_are_enqueued(order: str) -> None:
    rooms = (a_node("n1", cpu=1),)
    world = World(rooms, jobs=(a_job("waits", min_available=4, min_resources={"cpu": 4000.0}),))
    found = cycle(world, DEFAULT.replace("enqueue, allocate", order))

    assert found.groups["waits"].phase == "Inqueue"
    assert found.report.jobs_enqueued == 1


def test_without_the_enqueue_action_a_job_of_a_missing_queue_is_not_enqueued() -> None:
    world = World((a_node("n1"),), jobs=(a_job("lost", queue="nowhere", min_available=1),))
    found = cycle(world, DEFAULT.replace("enqueue, ", ""))

    assert found.groups["lost"].phase == "Pending"
    assert "create it or change spec.queue" in found.events[0][-1]


def test_a_job_enqueued_by_allocate_counts_once_however_late_the_watch_shows_its_phase() -> None:
    world = World((a_node("n1"),), jobs=(a_job("waits", min_available=4),))
    first = cycle(world, DEFAULT.replace("enqueue, ", ""))
    second = cycle(world, DEFAULT.replace("enqueue, ", ""), memory=first.memory)

    assert [first.report.jobs_enqueued, second.report.jobs_enqueued] == [1, 0]


def test_only_the_enqueue_action_enqueues_jobs_wherever_it_is_in_the_list() -> None:
    world = World((a_node("n1"),), jobs=(a_job("j"),), tasks=tasks_of("j", 1, ONE))
    found = cycle(world, DEFAULT.replace("enqueue, allocate", "allocate, enqueue"))

    assert found.binds == []
    assert found.groups["j"].phase == "Inqueue"


def test_a_job_whose_gang_can_never_be_complete_is_not_tried() -> None:
    world = World((a_node("n1"),), jobs=(a_job("j", min_available=3),), tasks=tasks_of("j", 2, ONE))
    found = cycle(world)

    assert found.binds == []
    assert "Not enough valid tasks for gang-scheduling, valid: 2, min: 3" in found.messages["j-0"]


def test_the_first_queue_takes_all_it_can() -> None:
    world = World(
        (a_node("n1", cpu=3),),
        queues=(QueueRecord("late", creation=2.0), QueueRecord("early", creation=1.0)),
        jobs=(a_job("a", queue="late"), a_job("b", queue="early")),
        tasks=(*tasks_of("a", 2, ONE), *tasks_of("b", 2, ONE)),
    )

    assert [name for name, _ in cycle(world).binds] == ["b-0", "b-1", "a-0"]


def test_the_members_of_a_job_with_roles_are_not_scanned_for_every_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 executors beyond the minimum would otherwise cost 2,000 times 2,000 look-ups."""
    read: Counter[int] = Counter()
    record = TaskColumns.record

    def counting(columns: TaskColumns, row: int) -> TaskRecord:
        read[row] += 1
        return record(columns, row)

    monkeypatch.setattr(TaskColumns, "record", counting)
    world = World(
        (a_node("n1", cpu=400, pods=400),),
        jobs=(a_job("s", min_available=2, task_min_available={"driver": 1, "executor": 1}),),
        tasks=(*tasks_of("s", 1, ONE, role="driver"), *tasks_of("s", 200, ONE, role="executor")),
    )

    assert len(cycle(world).binds) == 201
    assert max(read.values()) < 10


@pytest.mark.parametrize("in_vain", [6, 7, 8])
def test_a_job_that_is_tried_again_is_not_lost_when_all_jobs_are_looked_at(in_vain: int) -> None:
    """After eight turns in vain, queues without jobs are dropped; the job of the last turn may still get something."""
    big = a_shape(cpu=4)
    jobs = [a_job(f"v{number}", min_available=1) for number in range(in_vain)]
    jobs.append(a_job("first", min_available=1, priority=9))
    jobs.append(a_job("goes-on", queue="other", min_available=1, phase="Running", creation=9.0))
    tasks = [a_task(f"v{number}-0", big, job=f"v{number}") for number in range(in_vain)]
    tasks += [
        a_task("first-0", a_shape(cpu=2), job="first"),
        a_task("runs", ONE, job="goes-on", status=RUNNING, node="n1"),
        a_task("large", big, job="goes-on", priority=5),
        a_task("small", ONE, job="goes-on", priority=1),
    ]
    queues = (a_queue("default"), a_queue("other", creation=5.0))
    world = World((a_node("n1", cpu=5),), queues=queues, jobs=tuple(jobs), tasks=tuple(tasks))

    assert cycle(world).binds == [("first-0", "n1"), ("small", "n1")]


def test_a_job_is_told_of_room_that_the_last_turn_has_left_to_others() -> None:
    """More jobs than are looked at one by one, and the last of them leaves its nominated node to the others."""
    there, elsewhere = {"zone": "a"}, {"zone": "b"}
    others = [f"v{number}" for number in range(70)]
    jobs = (
        *(a_job(name, min_available=1) for name in others),
        a_job("last", queue="other", min_available=1, creation=9.0),
    )
    tasks = (
        *(a_task(f"{name}-0", a_shape(cpu=2, node_selector=there), job=name) for name in others),
        a_task("last-0", a_shape(cpu=1, node_selector=elsewhere), job="last", nominated="n1"),
    )
    nodes = (a_node("n1", cpu=2, labels=there), a_node("n2", cpu=1, labels=elsewhere))
    found = cycle(World(nodes, queues=(a_queue("default"), a_queue("other", creation=5.0)), jobs=jobs, tasks=tasks))

    assert found.binds == [("last-0", "n2")]
    assert "room that was reserved for another PodGroup has just become free" in found.messages["v0-0"]


@pytest.mark.parametrize("n_waiting", [5, 70])
def test_a_second_allocate_tries_again_what_the_first_refused(n_waiting: int) -> None:
    """Many jobs are looked at together, a few have their turns; both get what an eviction in between has freed."""
    high, other = a_shape(cpu=1, node_selector={"zone": "a"}), a_shape(cpu=1, node_selector={"zone": "b"})
    low = a_shape(cpu=2, node_selector={"zone": "a"})
    names = [f"w{number:02}" for number in range(n_waiting)]
    world = World(
        (a_node("n0", cpu=2, labels={"zone": "a"}), a_node("n1", cpu=1, labels={"zone": "b"})),
        queues=(a_queue("default"), a_queue("q", capability={"cpu": 2})),
        jobs=(
            a_job("low", queue="q", min_available=0, phase="Running", preemptable=True),
            a_job("high", queue="q", min_available=1, phase="Inqueue", priority=9),
            *(a_job(name, queue="q", min_available=1, phase="Inqueue") for name in names),
        ),
        tasks=(
            a_task("low-0", low, job="low", status=RUNNING, node="n0"),
            a_task("high-0", high, job="high", priority=9),
            *(a_task(f"{name}-0", other, job=name) for name in names),
        ),
    )
    conf = DEFAULT.replace('"enqueue, allocate"', '"allocate, preempt, allocate"') + "  - name: proportion\n"

    assert cycle(world, conf).binds == [("w00-0", "n1")]


@pytest.mark.parametrize("n_jobs", [5, 70])
def test_without_gang_every_task_says_why_its_own_shape_finds_no_node(n_jobs: int) -> None:
    """A job without a minimum has another turn for its other tasks, however many of them found no node."""
    names = [f"j{number:02}" for number in range(n_jobs)]
    large = {"cpu": a_shape(cpu=3), "memory": a_shape(memory=1 << 40)}
    world = World(
        (a_node("n1", cpu=2),),
        jobs=tuple(a_job(name, min_available=2) for name in names),
        tasks=tuple(a_task(f"{name}-{of}", shape, job=name) for name in names for of, shape in large.items()),
    )
    found = cycle(world, WITHOUT_GANG, verify_every=1)

    assert {message for name, message in found.messages.items() if name.endswith("-memory")} == {
        "0/1 nodes are unavailable: 1 Insufficient memory."
    }
    assert found.report.jobs_verified == n_jobs
    assert found.report.differences == []
