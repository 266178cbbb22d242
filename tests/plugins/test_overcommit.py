from collections.abc import Mapping
from typing import Any

import pytest

from tests.framework.sessions import a_session, job_row
from tests.reference.world import World, a_job, a_node, a_shape, a_task, amounts, tasks_of
from tests.scheduler.running import cycle
from volcano_py.framework.contract.extension_points import Vote
from volcano_py.framework.session import Session
from volcano_py.framework.state.memory import Memory
from volcano_py.model.objects import JobRecord
from volcano_py.model.rejections import Reason
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.overcommit import Overcommit, OvercommitArgs

CONF = """\
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
  - name: overcommit
  - name: predicates
"""
TEN_CORES = (a_node("n1", cpu=10, memory="100Gi"),)


def asks(name: str, cpu: str | int, *, phase: str = "Pending", **fields: Any) -> JobRecord:
    return a_job(name, phase=phase, min_resources=amounts(cpu=cpu), **fields)


def answer(ssn: Session, name: str) -> str:
    plugin = ssn.hooks.plugins()[0]
    assert isinstance(plugin, Overcommit)
    found = plugin.job_enqueueable(ssn.state.job(job_row(ssn, name)))
    return found.text if isinstance(found, Reason) else found.name


def test_a_job_may_request_up_to_the_factor_times_the_cluster() -> None:
    ssn = a_session(World(nodes=TEN_CORES, jobs=(asks("fits", 12), asks("over", "12001m"))), Overcommit())

    assert answer(ssn, "fits") == Vote.PERMIT.name
    assert answer(ssn, "over") == "resource in cluster is overused: overused cpu"


def test_every_resource_that_is_overused_is_named_in_order() -> None:
    job = a_job("j", min_resources=amounts(cpu=99, memory="999Gi", gpu=1))
    ssn = a_session(World(nodes=TEN_CORES, jobs=(job,)), Overcommit())

    expected = "resource in cluster is overused: overused cpu, overused memory, overused nvidia.com/gpu"
    assert answer(ssn, "j") == expected


def test_a_job_without_minimum_resources_is_permitted() -> None:
    assert answer(a_session(World(jobs=(a_job("j"),)), Overcommit()), "j") == Vote.PERMIT.name


def test_resources_in_use_are_not_available_to_pending_jobs() -> None:
    tasks = (
        a_task("foreign", a_shape(cpu=2), status=TaskStatus.RUNNING, node="n1", foreign=True),
        a_task("leaving", a_shape(cpu=2), status=TaskStatus.RELEASING, node="n1"),
    )
    ssn = a_session(World(nodes=TEN_CORES, jobs=(asks("fits", 8), asks("over", 9)), tasks=tasks), Overcommit())

    assert [answer(ssn, "fits"), answer(ssn, "over")[:11]] == ["PERMIT", "resource in"]


def test_an_enqueued_job_counts_with_its_whole_request() -> None:
    jobs = (asks("inside", 5, phase="Inqueue"), asks("fits", 6), asks("over", 7))
    tasks = tasks_of("inside", 1, status=TaskStatus.RUNNING, node="n1")  # counted twice, as in Volcano
    ssn = a_session(World(nodes=TEN_CORES, jobs=jobs, tasks=tasks), Overcommit())

    assert [answer(ssn, "fits"), answer(ssn, "over")[:11]] == ["PERMIT", "resource in"]


def test_an_enqueued_job_counts_for_later_jobs() -> None:
    ssn = a_session(World(nodes=TEN_CORES, jobs=(asks("a", 7), asks("b", 7))), Overcommit())

    ssn.hooks.job_enqueued(ssn.state.job(job_row(ssn, "a")))

    assert answer(ssn, "b") == "resource in cluster is overused: overused cpu"


@pytest.mark.parametrize(
    ("arguments", "factor", "warnings"),
    [
        pytest.param({}, 1.2, 0, id="default"),
        pytest.param({"overcommit-factor": 2}, 2.0, 0, id="integer"),
        pytest.param({"overcommit-factor": 1.5}, 1.5, 0, id="number"),
        pytest.param({"overcommit-factor": 0.9}, 1.2, 1, id="below-one"),
        pytest.param({"overcommit-factor": float("nan")}, 1.2, 1, id="not-a-number"),
        pytest.param({"overcommit-factor": "2"}, 1.2, 1, id="quoted"),
    ],
)
def test_the_factor(arguments: Mapping[str, Any], factor: float, warnings: int) -> None:
    told: list[str] = []

    assert Overcommit.parse(arguments, told.append) == OvercommitArgs(factor)
    assert len(told) == warnings


def test_a_refused_job_stays_pending_leaves_room_for_the_next_and_is_reported_once() -> None:
    world = World(
        nodes=TEN_CORES,
        jobs=(asks("big", 13, creation=0.0), asks("small", 1, creation=1.0)),
        tasks=(*tasks_of("big", 1, a_shape(cpu=13)), *tasks_of("small", 1)),
    )
    text = "resource in cluster is overused: overused cpu"

    first = cycle(world, CONF)
    second = cycle(world, CONF, memory=first.memory)

    assert first.binds == [("small-0", "n1")]
    assert (first.report.jobs_refused, first.report.jobs_enqueued) == (1, 1)
    assert "big" not in first.groups or first.groups["big"].phase == "Pending"
    assert first.messages["big-0"].endswith(f". {text}")
    assert [event for event in first.events if event[3] == text] == [("big", "Normal", "Unschedulable", text)]
    assert not [event for event in second.events if event[3] == text]
    assert second.memory.refusals == first.memory.refusals != Memory().refusals
