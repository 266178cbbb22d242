"""What earlier evictions bind a session to."""

from collections.abc import Iterable

import pytest

from tests.framework.sessions import a_session, job_row
from tests.reference.world import World, a_job, a_node, a_shape, a_task
from volcano_py.framework.session import Session
from volcano_py.framework.state.memory import Cooldown, Memory, PlannedEviction
from volcano_py.framework.state.pending_evictions import COOLDOWN_S, PLAN_S
from volcano_py.model.objects import JobKey
from volcano_py.model.statuses import TaskStatus

SHAPE = a_shape(cpu=1)
PREEMPTOR, VICTIM = JobKey("ns", "preemptor"), JobKey("ns", "victim")
PLAN = PlannedEviction(PREEMPTOR, ("uid-ns-one", "uid-ns-other"), 1.0)


def cluster(**victims: TaskStatus) -> World:
    tasks = (a_task(name, SHAPE, job="victim", status=status, node="n1") for name, status in victims.items())
    return World(
        (a_node(),), jobs=(a_job("preemptor"), a_job("victim")), tasks=(*tasks, a_task("waits", SHAPE, job="preemptor"))
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
def test_a_preemptor_waits_while_its_victims_terminate(
    victims: dict[str, TaskStatus], until: float, waits: bool
) -> None:
    plan = PlannedEviction(PLAN.job, PLAN.victims, until)
    ssn = session(Memory(plans=(plan,)), **victims)

    assert ssn.pending_evictions.waits(ssn.state.job(job_row(ssn, "preemptor"))) is waits
    assert ssn.pending_evictions.plans == ((plan,) if waits else ())


def test_a_victim_cannot_preempt_its_preemptor_until_the_cool_down_is_over() -> None:
    for until, preemptors in ((1.0, ["preemptor"]), (0.0, [])):
        ssn = session(Memory(cooldowns=(Cooldown(PREEMPTOR, VICTIM, until),)))
        victim, preemptor = (ssn.state.job(job_row(ssn, name)) for name in ("victim", "preemptor"))

        assert [
            ssn.state.jobs.record(row).key.name for row in ssn.pending_evictions.preemptors(victim).tolist()
        ] == preemptors
        assert ssn.pending_evictions.preemptors(preemptor).tolist() == []


def test_a_plan_is_remembered_with_a_cool_down_for_every_victim() -> None:
    ssn = session(Memory(), one=TaskStatus.RUNNING, other=TaskStatus.RUNNING)
    rows = [row for row, record in enumerate(ssn.state.tasks.records) if record is not None and record.name != "waits"]
    ssn.pending_evictions.add(ssn.state.job(job_row(ssn, "preemptor")), rows)

    (plan,) = ssn.pending_evictions.plans
    assert (plan.job, sorted(plan.victims), plan.until) == (PREEMPTOR, ["uid-ns-one", "uid-ns-other"], PLAN_S)
    assert ssn.pending_evictions.cooldowns == (Cooldown(PREEMPTOR, VICTIM, COOLDOWN_S),)


def three_jobs(*cooldowns: Cooldown) -> Session:
    names = ("preemptor", "victim", "third")
    world = World((a_node(),), jobs=tuple(a_job(name) for name in names))
    return a_session(world, memory=Memory(cooldowns=cooldowns))


def named(ssn: Session, rows: Iterable[int]) -> list[str]:
    return sorted(ssn.state.jobs.record(row).key.name for row in rows)


def test_a_victim_of_a_victim_cannot_preempt_the_first_preemptor_either() -> None:
    third = JobKey("ns", "third")
    ssn = three_jobs(Cooldown(PREEMPTOR, VICTIM, 1.0), Cooldown(VICTIM, third, 1.0))

    preemptors = {
        name: ssn.pending_evictions.preemptors(ssn.state.job(job_row(ssn, name))).tolist()
        for name in ("preemptor", "victim", "third")
    }

    assert {name: named(ssn, rows) for name, rows in preemptors.items()} == {
        "preemptor": [],
        "victim": ["preemptor"],
        "third": ["preemptor", "victim"],
    }
