"""Evictions in a statement: what they do at once, what a commit makes of them, and that every undo is exact."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, job_row, node_row, shape_id, task_row
from tests.reference.world import World, a_job, a_node, a_shape, a_task, tasks_of
from volcano_py.framework.session import Session
from volcano_py.framework.state.statement import Cause, Statement
from volcano_py.model.decisions import Decision, Evict, Nominate
from volcano_py.model.objects import JobKey
from volcano_py.model.shape import HostPort
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.predicates import Predicates
from volcano_py.plugins.proportion import Proportion

PENDING, PIPELINED, RUNNING, BOUND, RELEASING = (
    TaskStatus.PENDING,
    TaskStatus.PIPELINED,
    TaskStatus.RUNNING,
    TaskStatus.BOUND,
    TaskStatus.RELEASING,
)
SMALL, WEB = a_shape(cpu=1, memory="1Gi"), a_shape(cpu="500m", host_ports=(HostPort("0.0.0.0", "TCP", 80),))
CLUSTER = World(
    nodes=(a_node("n1", cpu=2), a_node("n2", cpu=2)),
    jobs=(a_job("j", min_available=1), a_job("k", min_available=2)),
    tasks=(
        a_task("run", SMALL, status=RUNNING, node="n1", job="j"),
        a_task("stay", SMALL, status=BOUND, node="n1", job="j"),
        a_task("web", WEB, status=RUNNING, node="n2", job="j"),
        *tasks_of("k", 3, SMALL),
    ),
)
CAUSE = Cause("preempt", "room for ns/k", JobKey("ns", "k"))


@pytest.fixture
def batches() -> list[tuple[Decision, ...]]:
    return []


@pytest.fixture
def ssn(batches: list[tuple[Decision, ...]]) -> Session:
    return a_session(CLUSTER, Predicates(), Proportion(), emit=batches.append)


def rows(ssn: Session, *names: str) -> np.ndarray:
    return np.array([task_row(ssn, name) for name in names])


def promise(ssn: Session, statement: Statement, task: str, node: str) -> None:
    statement.pipeline(job_row(ssn, "k"), shape_id(ssn, SMALL), rows(ssn, task), np.array([node_row(ssn, node)]))


def picture(ssn: Session) -> dict[str, bytes]:
    """Return everything that a statement may change, to the last bit."""
    assert ssn.state.accounts.queues is not None
    arrays: dict[str, Any] = {
        "nodes": ssn.state.nodes.block,
        "jobs": ssn.state.jobs.block,
        "status": ssn.state.tasks.status,
        "node": ssn.state.tasks.node,
        "queues": ssn.state.accounts.queues.taken,
    }
    found = {name: array.tobytes() for name, array in arrays.items()}
    found["ports"] = repr([ssn.state.nodes.ports.of(row) for row in range(len(ssn.state.nodes))]).encode()
    return found


def test_a_victims_resources_are_releasing_and_it_no_longer_counts(ssn: Session) -> None:
    ssn.statement().evict(rows(ssn, "run"))

    n1 = node_row(ssn, "n1")
    assert ssn.state.nodes.idle[0, n1] == 0
    assert ssn.state.nodes.releasing[0, n1] == ssn.state.nodes.future_idle[0, n1] == 1000
    assert ssn.state.nodes.pod_count[n1] == 1, "to predicates it is gone"
    job = ssn.state.job(job_row(ssn, "j"))
    assert (job.count(RUNNING), job.count(RELEASING), job.ready_count) == (1, 1, 2)
    assert ssn.state.accounts.queues is not None
    assert ssn.state.accounts.queues.taken[0, 0] == 1500


def test_a_victim_gives_its_ports_back(ssn: Session) -> None:
    statement = ssn.statement()
    statement.evict(rows(ssn, "web"))
    assert ssn.state.nodes.ports.of(node_row(ssn, "n2")) == ()

    statement.put_back(task_row(ssn, "web"))
    assert ssn.state.nodes.ports.of(node_row(ssn, "n2")) == WEB.host_ports


def test_evictions_of_many_are_the_same_as_of_one_after_the_other(ssn: Session) -> None:
    at_once = ssn.statement()
    at_once.evict(rows(ssn, "run", "web", "stay"))
    together = picture(ssn)
    at_once.discard()
    one_by_one = ssn.statement()
    for name in ("run", "web", "stay"):
        one_by_one.evict(rows(ssn, name))

    assert picture(ssn) == together
    assert one_by_one.evicted == rows(ssn, "run", "web", "stay").tolist()


def test_a_victim_that_is_put_back_is_running_as_before(ssn: Session) -> None:
    before = picture(ssn)
    statement = ssn.statement()
    statement.evict(rows(ssn, "stay", "run"))
    statement.put_back(task_row(ssn, "stay"))

    assert TaskStatus(ssn.state.tasks.status[task_row(ssn, "stay")]) is BOUND
    assert statement.evicted == [task_row(ssn, "run")]
    statement.put_back(task_row(ssn, "run"))
    assert picture(ssn) == before


def test_a_commit_sends_all_victims_and_the_nominations_in_one_batch(
    ssn: Session, batches: list[tuple[Decision, ...]]
) -> None:
    statement = ssn.statement()
    statement.evict(rows(ssn, "run", "stay"))
    promise(ssn, statement, "k-0", "n1")
    promise(ssn, statement, "k-1", "n1")

    assert statement.commit(CAUSE) == 2

    ref = {name: CLUSTER.task(name).record.ref for name in ("run", "stay", "k-0", "k-1")}
    assert batches == [
        (
            *(Evict(ref[name], "n1", JobKey("ns", "j"), *CAUSE) for name in ("run", "stay")),
            *(Nominate(ref[name], "n1") for name in ("k-0", "k-1")),
        )
    ]


def test_pipelined_tasks_without_victims_emit_no_nomination(ssn: Session, batches: list[tuple[Decision, ...]]) -> None:
    statement = ssn.statement()
    promise(ssn, statement, "k-0", "n2")
    statement.commit(CAUSE)

    assert batches == []


def test_evictions_without_a_cause_are_refused(ssn: Session) -> None:
    statement = ssn.statement()
    statement.evict(rows(ssn, "run"))

    with pytest.raises(ValueError, match="without a cause"):
        statement.commit()


def test_a_statement_goes_back_to_a_checkpoint(ssn: Session) -> None:
    statement = ssn.statement()
    statement.evict(rows(ssn, "run"))
    checkpoint, then = statement.checkpoint(), picture(ssn)
    statement.evict(rows(ssn, "web"))
    statement.put_back(task_row(ssn, "run"))
    promise(ssn, statement, "k-0", "n2")
    statement.rollback(checkpoint)

    assert picture(ssn) == then
    assert (statement.evicted, statement.placed) == ([task_row(ssn, "run")], [])


def test_placement_sees_the_resources_that_evictions_release(ssn: Session) -> None:
    ssn.statement().evict(rows(ssn, "run"))
    state = ssn.placement.ranking(shape_id(ssn, a_shape(cpu=1, memory="1Gi")))

    assert (state.future > -np.inf).tolist() == [True, False]
    assert (state.ranked > -np.inf).tolist() == [False, True]


steps = st.lists(
    st.tuples(st.sampled_from(("checkpoint", "rollback", "evict", "put_back", "promise")), st.integers(0, 10**6)),
    max_size=16,
)


@settings(max_examples=120, derandomize=True)
@given(steps)
def test_going_back_restores_every_bit(history: list[tuple[str, int]]) -> None:
    ssn = a_session(CLUSTER, Predicates(), Proportion())
    before, statement = picture(ssn), ssn.statement()
    stack = [(statement.checkpoint(), before)]
    for kind, pick in history:
        _step(ssn, statement, stack, kind, pick)
    while stack:
        checkpoint, then = stack.pop()
        statement.rollback(checkpoint)
        assert picture(ssn) == then
    statement.discard()
    assert picture(ssn) == before


def _step(ssn: Session, statement: Statement, stack: list[Any], kind: str, pick: int) -> None:
    pending = np.flatnonzero((ssn.state.tasks.status == PENDING) & (ssn.state.tasks.job >= 0)).tolist()
    standing = np.flatnonzero((ssn.state.tasks.status == RUNNING) | (ssn.state.tasks.status == BOUND)).tolist()
    if kind == "checkpoint":
        stack.append((statement.checkpoint(), picture(ssn)))
    elif kind == "rollback" and len(stack) > 1:
        checkpoint, then = stack.pop()
        statement.rollback(checkpoint)
        assert picture(ssn) == then
    elif kind == "evict" and standing:
        chosen = standing[pick % len(standing) :][: 1 + pick % 3]
        statement.evict(np.array(chosen))
    elif kind == "put_back" and statement.evicted:
        statement.put_back(statement.evicted[pick % len(statement.evicted)])
    elif kind == "promise" and pending:
        promise(ssn, statement, ssn.state.tasks.record(pending[pick % len(pending)]).name, ("n1", "n2")[pick % 2])
