from collections import Counter
from dataclasses import replace

import pytest

from tests.reference.world import World, a_job, a_node, a_shape, a_task, tasks_of
from tests.scheduler.running import DEFAULT, a_policy, cycle
from volcano_py.framework.state.sub_groups import JobSubGroups
from volcano_py.model.objects import QueueRecord, SubGroupPolicy
from volcano_py.model.shape import HostPort
from volcano_py.model.statuses import TaskStatus

ONE, NOTHING = a_shape(cpu=1), a_shape()
RUNNING, RELEASING = TaskStatus.RUNNING, TaskStatus.RELEASING
ALL = DEFAULT.replace("enqueue, allocate", "enqueue, allocate, backfill")
ONLY = DEFAULT.replace("enqueue, allocate", "backfill")
PROPORTION = ALL + "  - name: proportion\n"


def test_a_task_that_asks_for_nothing_is_placed_by_backfill_and_not_by_allocate() -> None:
    world = World((a_node("n1"),), jobs=(a_job("j", min_available=2),), tasks=tasks_of("j", 2, NOTHING))

    assert cycle(world, DEFAULT).binds == []
    assert cycle(world, ALL).binds == [("j-0", "n1"), ("j-1", "n1")]


def test_backfill_ignores_tasks_with_requests() -> None:
    tasks = (*tasks_of("j", 1, ONE), *tasks_of("j", 1, NOTHING, first=1))
    world = World((a_node("n1"),), jobs=(a_job("j", phase="Inqueue"),), tasks=tasks)

    assert cycle(world, ONLY).binds == [("j-1", "n1")]


def test_a_gang_counts_its_best_effort_members_before_they_have_a_place() -> None:
    tasks = (*tasks_of("j", 1, ONE), *tasks_of("j", 1, NOTHING, first=1))
    world = World((a_node("n1"),), jobs=(a_job("j", min_available=2),), tasks=tasks)

    assert cycle(world, ALL).gangs == [["j-0"], ["j-1"]]


def test_a_gang_runs_in_part_if_its_best_effort_members_find_no_place() -> None:
    """As in Volcano; the row `backfill` in docs/parity.md says so."""
    tasks = (*tasks_of("j", 1, ONE), *tasks_of("j", 2, NOTHING, first=1))
    world = World((a_node("n1", pods=2),), jobs=(a_job("j", min_available=3),), tasks=tasks)

    found = cycle(world, ALL)

    assert found.gangs == [["j-0"], ["j-1"]]
    (condition,) = found.groups["j"].conditions
    assert (condition.type, condition.status, condition.reason) == ("Unschedulable", True, "BestEffortPodsWait")
    assert condition.message == (
        "1/3 tasks in gang unschedulable: pod group is not ready, 1 Pending, 2 Binding, 3 minAvailable; "
        "Pending: 1 Unschedulable. Origin reason is j-2: 0/1 nodes are unavailable: 1 node(s) pod number exceeded."
    )


def test_a_gang_of_best_effort_members_is_not_ready_while_its_queue_is_closed() -> None:
    queue = QueueRecord("default", state="Closed")
    job = a_job("j", min_available=2, phase="Pending")
    world = World((a_node("n1"),), queues=(queue,), jobs=(job,), tasks=tasks_of("j", 2, NOTHING))
    found = cycle(world, ALL)

    (condition,) = found.groups["j"].conditions
    assert (condition.type, condition.status) == ("Unschedulable", True)
    assert "pod group is not ready" in condition.message
    assert 'queue "default" is Closed' in condition.message


def test_a_running_gang_that_lacks_only_best_effort_members_keeps_its_phase() -> None:
    """As in Volcano: policies of jobs act on the phase Unknown."""
    tasks = (*tasks_of("j", 1, ONE, status=TaskStatus.RUNNING, node="n1"), *tasks_of("j", 1, NOTHING, first=1))
    world = World((a_node("n1", pods=1),), jobs=(a_job("j", min_available=2, phase="Inqueue"),), tasks=tasks)
    found = cycle(world, ALL)

    assert found.groups["j"].phase == "Inqueue"
    assert [one.reason for one in found.groups["j"].conditions] == ["BestEffortPodsWait"]


def test_best_effort_members_of_a_gang_that_is_not_complete_are_taken_back() -> None:
    tasks = (*tasks_of("j", 1, a_shape(cpu=99)), *tasks_of("j", 1, NOTHING, first=1))
    world = World(
        (a_node("n1", pods=1),),
        jobs=(a_job("j", min_available=2, creation=0.0), a_job("k", creation=1.0)),
        tasks=(*tasks, *tasks_of("k", 1, NOTHING)),
    )

    found = cycle(world, ALL)

    assert found.binds == [("k-0", "n1")]
    assert found.messages["j-1"] == "Pod ns/j-1 can possibly be assigned to n1, once minAvailable is satisfied"
    assert found.reasons["j-1"] == "Schedulable"


def test_backfill_takes_the_best_node_and_counts_a_small_request_for_each_task() -> None:
    nodes = (a_node("n1", cpu=2, memory="4Gi"), a_node("n2", cpu=4, memory="8Gi"))
    world = World(nodes, jobs=(a_job("j"),), tasks=tasks_of("j", 9, NOTHING))

    assert Counter(node for _, node in cycle(world, ALL).binds) == {"n1": 3, "n2": 6}


@pytest.mark.parametrize(
    ("conf", "text"),
    [
        pytest.param(ALL, "node(s) pod number exceeded", id="predicates"),
        pytest.param(ALL.replace("  - name: predicates\n", ""), "Insufficient pods", id="no-predicates"),
    ],
)
def test_a_node_that_has_all_the_pods_it_may_have_takes_no_more(conf: str, text: str) -> None:
    world = World((a_node("n1", pods=2),), jobs=(a_job("j"),), tasks=tasks_of("j", 3, NOTHING))

    found = cycle(world, conf)

    assert len(found.binds) == 2
    assert found.messages == {"j-2": f"0/1 nodes are unavailable: 1 {text}."}


def test_backfill_pipelines_nothing_onto_resources_being_released() -> None:
    leaving = a_task("old", ONE, status=RELEASING, node="n1")
    world = World((a_node("n1", pods=1),), jobs=(a_job("j"),), tasks=(leaving, *tasks_of("j", 1, NOTHING)))

    assert cycle(world, ALL).messages == {"j-0": "0/1 nodes are unavailable: 1 node(s) pod number exceeded."}


def test_a_pipelined_pod_slot_is_not_given_away() -> None:
    leaving = a_task("old", a_shape(cpu=2), status=RELEASING, node="n1")
    waiting = tasks_of("gang", 2, ONE)
    world = World(
        (a_node("n1", cpu=2, pods=2),),
        jobs=(a_job("gang", min_available=2), a_job("j")),
        tasks=(leaving, *waiting, *tasks_of("j", 1, NOTHING)),
    )

    found = cycle(world, ALL.replace("  - name: predicates\n", ""))

    assert not found.binds
    assert found.messages["j-0"] == "0/1 nodes are unavailable: 1 Insufficient pods."


def test_an_overcommitted_node_takes_no_more_pods() -> None:
    heavy = a_task("heavy", a_shape(cpu=9), status=RUNNING, node="n1")
    world = World((a_node("n1"),), jobs=(a_job("j"),), tasks=(heavy, *tasks_of("j", 1, NOTHING)))

    assert cycle(world, ALL).messages == {"j-0": "0/1 nodes are unavailable: 1 Insufficient cpu."}


@pytest.mark.parametrize(
    ("job", "why"),
    [
        pytest.param({"phase": "Pending"}, "not-enqueued", id="not-enqueued"),
        pytest.param({"queue": "missing"}, "no-queue", id="queue-missing"),
        pytest.param({"min_available": 5}, "too-few", id="too-few-tasks"),
    ],
)
def test_jobs_that_may_not_be_scheduled_are_left_alone(job: dict[str, object], why: str) -> None:
    record = a_job("j", **{"phase": "Inqueue", **job})  # type: ignore[arg-type]
    world = World((a_node("n1"),), jobs=(record,), tasks=tasks_of("j", 1, NOTHING))

    assert cycle(world, ONLY).binds == [], why


def test_gated_tasks_wait() -> None:
    world = World((a_node("n1"),), jobs=(a_job("j"),), tasks=tasks_of("j", 2, a_shape(gates=("g",))))

    assert cycle(world, ALL).binds == []


def test_the_last_pod_slot_goes_by_queue_then_job_then_task() -> None:
    queues = (QueueRecord("a", creation=1.0), QueueRecord("b"))
    jobs = (a_job("j", queue="a", priority=9), a_job("k", queue="b"), a_job("l", queue="b", priority=1))
    tasks = (*tasks_of("j", 1, NOTHING), *tasks_of("k", 1, NOTHING))
    first = replace(tasks_of("l", 1, NOTHING, first=1)[0], record=replace_priority("l-1", 5))
    world = World((a_node("n1", pods=3),), queues, jobs, (*tasks, *tasks_of("l", 1, NOTHING), first))

    assert [name for name, _ in cycle(world, ALL).binds] == ["l-1", "l-0", "k-0"]


def replace_priority(name: str, priority: int) -> object:
    return a_task(name, NOTHING, job=name[0], priority=priority).record


def test_backfill_does_not_ask_for_shares_of_queues() -> None:
    world = World(
        (a_node("n1", pods=10),),
        (QueueRecord("a"),),
        jobs=(a_job("run", queue="a", phase="Running"), a_job("j", queue="a", phase="Inqueue", creation=1.0)),
        tasks=(*tasks_of("run", 4, ONE, status=RUNNING, node="n1"), *tasks_of("j", 1, NOTHING)),
    )

    assert cycle(world, PROPORTION).binds == [("j-0", "n1")]


def test_a_host_port_is_taken_once_per_node() -> None:
    shape = a_shape(host_ports=(HostPort("0.0.0.0", "TCP", 80),))
    world = World((a_node("n1"), a_node("n2")), jobs=(a_job("j"),), tasks=tasks_of("j", 3, shape))

    found = cycle(world, ALL)

    assert sorted(node for _, node in found.binds) == ["n1", "n2"]
    taken = "node(s) didn't have free ports for the requested pod ports"
    assert found.messages == {"j-2": f"0/2 nodes are unavailable: 2 {taken}."}


def test_a_second_backfill_places_only_what_still_waits() -> None:
    world = World((a_node("n1"),), jobs=(a_job("j"),), tasks=tasks_of("j", 2, NOTHING))

    assert len(cycle(world, ALL.replace("backfill", "backfill, backfill")).binds) == 2


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether best-effort pods that wait counted, for each time that the sub-groups of a job were counted."""
    found: list[bool] = []
    lacking = JobSubGroups.lacking

    def noted(groups: JobSubGroups, *, promised: bool = False, best_effort: bool = True) -> int:
        found.append(best_effort)
        return lacking(groups, promised=promised, best_effort=best_effort)

    monkeypatch.setattr(JobSubGroups, "lacking", noted)
    return found


GROUPED = a_job("j", min_available=1, sub_group_policies=(SubGroupPolicy("p", match_label_keys=("x",), size=1),))


def test_gangs_are_counted_once_unless_best_effort_pods_wait(counted: list[bool]) -> None:
    """With roles or sub-groups, each count is a walk over all tasks or jobs."""
    cycle(World((a_node("n1"),), jobs=(GROUPED,), tasks=tasks_of("j", 2, ONE)))
    assert False not in counted
    tasks = (*tasks_of("j", 1, ONE), *tasks_of("j", 1, NOTHING, first=1))
    cycle(World((a_node("n1", pods=1),), jobs=(GROUPED,), tasks=tasks))
    assert False in counted


def test_sub_groups_of_jobs_that_are_as_they_were_are_not_counted_again(counted: list[bool]) -> None:
    tasks = tasks_of("j", 2, ONE, status=TaskStatus.BOUND, node="n1")
    store = World((a_node("n1"),), jobs=(replace(GROUPED, phase="Running"),), tasks=tasks).store()
    policy = a_policy(DEFAULT)
    first = cycle(store, policy)
    assert counted

    counted.clear()
    cycle(store, policy, memory=first.memory)
    assert not counted
