"""Reservations of enqueued jobs, in cores: the table of Volcano's enqueue arithmetic."""

from dataclasses import replace

import numpy as np
import pytest

from tests.framework.sessions import a_session, job_row
from tests.reference.world import World, a_job, a_node, a_shape, a_task, amounts, tasks_of
from volcano_py.api import keys
from volcano_py.framework.session import Session
from volcano_py.framework.state import reservations
from volcano_py.model.shape import Shape
from volcano_py.model.statuses import TaskStatus

ONE = a_shape(cpu=1)
RUNNING = TaskStatus.RUNNING


def a_cluster(phase: str, *, running: int = 0, gated: Shape | None = None, asked: bool = True) -> Session:
    """A job of minMember 2 that asks for 4 cores, with so many tasks of one core running and one that is gated."""
    tasks = tasks_of("j", running, ONE, status=RUNNING, node="n1")
    if gated is not None:
        tasks += (a_task("gated", gated, job="j"),)
    minimum = amounts(cpu=4, memory="1Gi") if asked else None
    job = a_job("j", min_available=2, phase=phase, min_resources=minimum)
    return a_session(World(nodes=(a_node("n1", cpu=32),), jobs=(job,), tasks=tasks))


def cores(ssn: Session, *, whole: bool) -> float:
    return float(reservations.reserved(ssn.state, whole=whole)[0, job_row(ssn, "j")] / 1000)


@pytest.mark.parametrize(
    ("phase", "running", "rest", "whole"),
    [
        pytest.param("Inqueue", 0, 4, 4, id="inqueue"),
        pytest.param("Inqueue", 1, 3, 4, id="inqueue-the-whole-counts-what-it-holds"),
        pytest.param("Inqueue", 5, 0, 4, id="inqueue-beyond-its-minimum"),
        pytest.param("Running", 2, 2, 2, id="running"),
        pytest.param("Running", 1, 0, 0, id="running-with-too-few-tasks"),
        pytest.param("Pending", 2, 0, 0, id="pending"),
        pytest.param("Unknown", 2, 0, 0, id="unknown"),
        pytest.param("Completed", 2, 0, 0, id="completed"),
    ],
)
def test_what_a_job_in_some_phase_will_take(phase: str, running: int, rest: float, whole: float) -> None:
    ssn = a_cluster(phase, running=running)

    assert (cores(ssn, whole=False), cores(ssn, whole=True)) == (rest, whole)


def test_a_job_without_minimum_resources_reserves_nothing_and_could_give_back_all() -> None:
    ssn = a_cluster("Running", running=3, asked=False)

    assert cores(ssn, whole=True) == 0
    assert reservations.elastic(ssn.state.jobs)[0, job_row(ssn, "j")] == 3000


@pytest.mark.parametrize(("running", "elastic"), [(3, 0), (4, 0), (6, 2000)])
def test_what_a_job_holds_beyond_its_minimum_is_elastic(running: int, elastic: float) -> None:
    ssn = a_cluster("Running", running=running)

    assert reservations.elastic(ssn.state.jobs)[0, job_row(ssn, "j")] == elastic


@pytest.mark.parametrize(
    ("gates", "left"),
    [
        pytest.param(("example.com/wait",), 3, id="gated"),
        pytest.param((keys.QUEUE_GATE,), 4, id="waiting-for-its-queue-only"),
        pytest.param((keys.QUEUE_GATE, "example.com/wait"), 3, id="waiting-for-both"),
    ],
)
def test_gated_tasks_are_left_out_of_a_reservation(gates: tuple[str, ...], left: float) -> None:
    ssn = a_cluster("Inqueue", gated=replace(ONE, gates=gates))

    assert cores(ssn, whole=False) == left


def test_gated_tasks_never_make_a_reservation_negative() -> None:
    ssn = a_cluster("Inqueue", gated=a_shape(cpu=9, gates=("g",)))

    assert cores(ssn, whole=False) == 0


def test_ephemeral_storage_is_left_out_of_what_a_job_lacks() -> None:
    job = a_job("j", phase="Inqueue", min_resources=amounts(**{"ephemeral-storage": "1Gi", "cpu": 1}))
    ssn = a_session(World(jobs=(job,)))
    storage = ssn.state.resources.find("ephemeral-storage")
    row = job_row(ssn, "j")

    assert reservations.reserved(ssn.state, whole=False)[storage, row] == 0
    assert reservations.reserved(ssn.state, whole=True)[storage, row] == 2**30 * 1000


@pytest.mark.parametrize(
    ("need", "over"),
    [
        pytest.param([10, 10, 99, 10], [], id="exactly-the-limit-and-pods-left-aside"),
        pytest.param([10.01, 10, 0, 10], [0], id="compared-exactly"),
        pytest.param([99, 99, 99, 99], [0, 3], id="what-is-not-asked-for-does-not-count"),
    ],
)
def test_which_resources_exceed_a_limit(need: list[float], over: list[int]) -> None:
    ssn = a_session(World(nodes=(a_node(gpu=1),)))
    limit = ssn.state.total * 0 + 10
    asked = ssn.state.total * 0 + [1, 0, 1, 1]

    assert reservations.over_asked(limit * 0 + need, limit, asked) == over


def test_tasks_are_counted_as_often_for_many_kinds_of_gated_tasks_as_for_few(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    bincount = np.bincount
    monkeypatch.setattr(np, "bincount", lambda *args, **more: counted.append(1) or bincount(*args, **more))

    def looks(kinds: int) -> int:
        tasks = [a_task(f"t{i}", replace(a_shape(cpu=1 + i), gates=("x",)), job=f"j{i % 2}") for i in range(kinds)]
        ssn = a_session(World(jobs=(a_job("j0"), a_job("j1")), tasks=tuple(tasks)))
        counted.clear()
        found = reservations.gated(ssn.state)[0]
        assert [found[job_row(ssn, name)] for name in ("j0", "j1")] == [
            1000 * sum(1 + i for i in range(parity, kinds, 2)) for parity in (0, 1)
        ]
        return len(counted)

    assert looks(3) == looks(12)
