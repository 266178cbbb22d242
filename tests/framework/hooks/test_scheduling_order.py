import numpy as np

from tests.framework.sessions import a_session, job_row
from tests.reference.world import World, a_job, a_node, a_shape, tasks_of
from volcano_py.framework.contract.extension_points import Overused, QueueOrder
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.hooks.scheduling_order import SchedulingOrder
from volcano_py.framework.session import Session
from volcano_py.framework.state.info import QueueInfo
from volcano_py.model.objects import QueueRecord
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.gang import Gang
from volcano_py.plugins.priority import Priority


class FewestTurns(Plugin, QueueOrder, Overused):
    """The queue that had fewer turns first; none has more than two."""

    name = "fewest-turns"

    def __init__(self, arguments: object = None) -> None:
        self.turns: dict[str, int] = {}

    def queue_order(self, left: QueueInfo, right: QueueInfo) -> float:
        return self.turns.get(left.name, 0) - self.turns.get(right.name, 0)

    def overused(self, queue: QueueInfo) -> bool:
        return self.turns.get(queue.name, 0) == 2


def turns(ssn: Session) -> SchedulingOrder:
    return SchedulingOrder(ssn.state, ssn.hooks, ssn.state.jobs.present(), skip_overused=True)


def names(ssn: Session) -> list[str]:
    return [f"{queue.name}/{ssn.state.jobs.record(row).key.name}" for queue, row in turns(ssn)]


def test_queue_by_queue_and_job_by_job() -> None:
    world = World(
        queues=(QueueRecord("q"), QueueRecord("p", creation=5.0)),
        jobs=(
            a_job("late", queue="q", creation=9.0),
            a_job("early", queue="q", creation=1.0),
            a_job("urgent", queue="q", creation=9.0, priority=7),
            a_job("other", queue="p"),
        ),
    )

    assert names(a_session(world, Priority())) == ["q/urgent", "q/early", "q/late", "p/other"]


def test_a_job_of_an_unknown_queue_has_no_turn() -> None:
    assert names(a_session(World(jobs=(a_job("j", queue="missing"),)))) == []


def test_without_jobs_there_are_no_turns() -> None:
    ssn = a_session(World(jobs=(a_job("j"),)))

    assert list(SchedulingOrder(ssn.state, ssn.hooks, np.zeros(0, dtype=np.intp), skip_overused=True)) == []


def test_the_queue_order_is_evaluated_after_every_turn_and_an_overused_queue_gets_no_more_turns() -> None:
    fair = FewestTurns()
    jobs = [a_job(f"{queue}{index}", queue=queue) for queue in ("p", "q") for index in range(3)]
    ssn = a_session(World(queues=(QueueRecord("p"), QueueRecord("q")), jobs=tuple(jobs)), fair)
    found = []
    for queue, row in turns(ssn):
        found.append(ssn.state.jobs.record(row).key.name)
        fair.turns[queue.name] = fair.turns.get(queue.name, 0) + 1

    assert found == ["p0", "q0", "p1", "q1"]


def test_an_overused_queue_gets_turns_in_actions_that_allocate_nothing() -> None:
    greedy = FewestTurns()
    greedy.turns["default"] = 2
    ssn = a_session(World(jobs=(a_job("a"),)), greedy)

    assert list(turns(ssn)) == []
    assert len(list(SchedulingOrder(ssn.state, ssn.hooks, ssn.state.jobs.present(), skip_overused=False))) == 1


def test_a_returned_job_is_ordered_by_its_current_state() -> None:
    """The first job has become ready in its turn, and unready jobs go first."""
    shape = a_shape(cpu=1)
    world = World(
        nodes=(a_node("n1"),),
        jobs=(a_job("a", min_available=1), a_job("b", min_available=1), a_job("c", min_available=1)),
        tasks=(*tasks_of("a", 3, shape), *tasks_of("b", 1, shape), *tasks_of("c", 1, shape)),
    )
    ssn = a_session(world, Gang())
    order = turns(ssn)
    found: list[str] = []
    for queue, row in order:
        name = ssn.state.jobs.record(row).key.name
        found.append(name)
        if name == "a" and found.count("a") < 3:
            pending = ssn.hooks.pending.of(row)[found.count("a") - 1 :][:1]
            ssn.statement().allocate(row, int(ssn.state.tasks.shape[pending[0]]), pending, np.array([0]))
            order.give_back(queue, row)

    assert found == ["a", "b", "c", "a", "a"]
    assert ssn.state.job(job_row(ssn, "a")).count(TaskStatus.ALLOCATED) == 2


def test_the_last_job_of_a_queue_may_be_returned() -> None:
    ssn = a_session(World(jobs=(a_job("j"),)))
    order = turns(ssn)
    found = 0
    for queue, row in order:
        found += 1
        if found < 3:
            order.give_back(queue, row)

    assert found == 3
