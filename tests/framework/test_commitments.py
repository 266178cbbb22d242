"""What earlier evictions bind a session to."""

from collections.abc import Iterable

import pytest

from tests.framework.sessions import a_session, job_row
from tests.reference.world import World, a_job, a_node, a_shape, a_task
from volcano_py.framework.commitments import PLAN_S, TRUCE_S
from volcano_py.framework.memory import Memory, PlannedEviction, Truce
from volcano_py.framework.session import Session
from volcano_py.model.objects import JobKey
from volcano_py.model.statuses import TaskStatus

SHAPE = a_shape(cpu=1)
TAKER, LOSER = JobKey("ns", "taker"), JobKey("ns", "loser")
PLAN = PlannedEviction(TAKER, ("uid-ns-one", "uid-ns-other"), 1.0)


def cluster(**victims: TaskStatus) -> World:
    tasks = (a_task(name, SHAPE, job="loser", status=status, node="n1") for name, status in victims.items())
    return World(
        (a_node(),), jobs=(a_job("taker"), a_job("loser")), tasks=(*tasks, a_task("waits", SHAPE, job="taker"))
    )


def session(memory: Memory, **victims: TaskStatus) -> Session:
    return a_session(cluster(**victims), memory=memory)


@pytest.mark.parametrize(
    ("victims", "until", "waits"),
    [
        pytest.param({"one": TaskStatus.RELEASING, "other": TaskStatus.RELEASING}, 1.0, True, id="all-are-leaving"),
        pytest.param({"one": TaskStatus.RELEASING}, 1.0, True, id="some-are-gone"),
        pytest.param({}, 1.0, False, id="all-are-gone"),
        pytest.param({"one": TaskStatus.RELEASING, "other": TaskStatus.RUNNING}, 1.0, False, id="one-stands-again"),
        pytest.param({"one": TaskStatus.RELEASING}, 0.0, False, id="time-is-up"),
    ],
)
def test_a_job_waits_as_long_as_its_victims_leave(victims: dict[str, TaskStatus], until: float, waits: bool) -> None:
    plan = PlannedEviction(PLAN.job, PLAN.victims, until)
    ssn = session(Memory(plans=(plan,)), **victims)

    assert ssn.commitments.waits(ssn.job(job_row(ssn, "taker"))) is waits
    assert ssn.commitments.plans == ((plan,) if waits else ())


def test_who_has_lost_may_not_take_back_until_the_truce_is_over() -> None:
    for until, takers in ((1.0, ["taker"]), (0.0, [])):
        ssn = session(Memory(truces=(Truce(TAKER, LOSER, until),)))
        loser, taker = (ssn.job(job_row(ssn, name)) for name in ("loser", "taker"))

        assert [ssn.jobs.record(row).key.name for row in ssn.commitments.takers(loser).tolist()] == takers
        assert ssn.commitments.takers(taker).tolist() == []


def test_a_plan_is_remembered_with_a_truce_for_every_loser() -> None:
    ssn = session(Memory(), one=TaskStatus.RUNNING, other=TaskStatus.RUNNING)
    rows = [row for row, record in enumerate(ssn.tasks.records) if record is not None and record.name != "waits"]
    ssn.commitments.add(ssn.job(job_row(ssn, "taker")), rows)

    (plan,) = ssn.commitments.plans
    assert (plan.job, sorted(plan.victims), plan.until) == (TAKER, ["uid-ns-one", "uid-ns-other"], PLAN_S)
    assert ssn.commitments.truces == (Truce(TAKER, LOSER, TRUCE_S),)


def three_jobs(*truces: Truce) -> Session:
    names = ("taker", "loser", "third")
    world = World((a_node(),), jobs=tuple(a_job(name) for name in names))
    return a_session(world, memory=Memory(truces=truces))


def named(ssn: Session, rows: Iterable[int]) -> list[str]:
    return sorted(ssn.jobs.record(row).key.name for row in rows)


def test_who_has_lost_to_a_loser_takes_nothing_from_its_taker_either() -> None:
    third = JobKey("ns", "third")
    ssn = three_jobs(Truce(TAKER, LOSER, 1.0), Truce(LOSER, third, 1.0))

    takers = {
        name: ssn.commitments.takers(ssn.job(job_row(ssn, name))).tolist() for name in ("taker", "loser", "third")
    }

    assert {name: named(ssn, rows) for name, rows in takers.items()} == {
        "taker": [],
        "loser": ["taker"],
        "third": ["loser", "taker"],
    }


def test_losers_are_those_of_the_same_queue_from_whom_the_job_itself_has_taken() -> None:
    third = JobKey("ns", "third")
    ssn = three_jobs(Truce(TAKER, LOSER, 1.0), Truce(LOSER, third, 1.0))

    assert named(ssn, ssn.commitments.losers_to({job_row(ssn, "taker")})) == ["loser"]
    assert named(ssn, ssn.commitments.losers_to({job_row(ssn, "third")})) == []
    assert named(ssn, ssn.commitments.losers_to(set())) == []
