from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, job_row, node_row, shape_id, task_row
from tests.reference.world import World, a_job, a_node, a_shape, a_task, tasks_of
from volcano_py.framework.session import Session
from volcano_py.framework.state.statement import Statement
from volcano_py.model.decisions import Bind, Decision
from volcano_py.model.objects import JobKey
from volcano_py.model.statuses import TaskStatus

SMALL, BIG = a_shape(cpu=1, memory="1Gi"), a_shape(cpu="1500m", gpu=1)
ALLOCATED, PIPELINED, BINDING, PENDING = (
    TaskStatus.ALLOCATED,
    TaskStatus.PIPELINED,
    TaskStatus.BINDING,
    TaskStatus.PENDING,
)
CLUSTER = World(
    nodes=(a_node("n1", gpu=4), a_node("n2"), a_node("n3")),
    jobs=(a_job("j", min_available=2), a_job("k")),
    tasks=(
        *tasks_of("j", 4, SMALL),
        *tasks_of("j", 2, BIG, first=4),
        *tasks_of("k", 3, SMALL),
        a_task("run", SMALL, status=TaskStatus.RUNNING, node="n2", job="k"),
        a_task("go", BIG, status=TaskStatus.RELEASING, node="n3"),
    ),
)


@pytest.fixture
def batches() -> list[tuple[Decision, ...]]:
    return []


@pytest.fixture
def ssn(batches: list[tuple[Decision, ...]]) -> Session:
    return a_session(CLUSTER, emit=batches.append)


def rows(ssn: Session, *names: str) -> np.ndarray:
    return np.array([task_row(ssn, name) for name in names])


def nodes(ssn: Session, *names: str) -> np.ndarray:
    return np.array([node_row(ssn, name) for name in names])


def allocate(ssn: Session, statement: Statement, tasks: list[str], on: list[str], shape: object = SMALL) -> None:
    statement.allocate(job_row(ssn, tasks[0][0]), shape_id(ssn, shape), rows(ssn, *tasks), nodes(ssn, *on))  # type: ignore[arg-type]


def standing(ssn: Session, *names: str) -> list[tuple[TaskStatus, str]]:
    found = (
        (TaskStatus(ssn.state.tasks.status[row]), int(ssn.state.tasks.node[row])) for row in rows(ssn, *names).tolist()
    )
    return [(status, ssn.state.nodes.names[node] if node >= 0 else "") for status, node in found]


def picture(ssn: Session) -> tuple[tuple[str, tuple[int, ...], bytes], ...]:
    """Return every array that a session may change, to the last bit."""
    tasks, jobs = ssn.state.tasks, ssn.state.jobs
    arrays = (
        *(ssn.state.nodes.block, jobs.block, jobs.phase, jobs.min_available, jobs.priority, jobs.creation),
        *(tasks.status, tasks.node, tasks.job, tasks.shape, tasks.priority, tasks.creation, tasks.suffix),
    )
    return tuple((array.dtype.str, array.shape, array.tobytes()) for array in arrays)


def test_tasks_that_are_allocated_take_what_is_idle(ssn: Session) -> None:
    statement = ssn.statement()
    allocate(ssn, statement, ["j-0", "j-1", "j-2"], ["n1", "n3", "n1"])

    assert standing(ssn, "j-0", "j-1", "j-2", "j-3") == [
        (ALLOCATED, "n1"),
        (ALLOCATED, "n3"),
        (ALLOCATED, "n1"),
        (PENDING, ""),
    ]
    assert ssn.state.nodes.idle[0].tolist() == [2000, 3000, 1500]
    assert ssn.state.nodes.used[0].tolist() == [2000, 1000, 2500]
    assert ssn.state.nodes.pod_count.tolist() == [2, 1, 2]
    job = ssn.state.job(job_row(ssn, "j"))
    assert (job.count(ALLOCATED), job.count(PENDING), job.missing()) == (3, 3, 0)
    assert len(statement) == 3


def test_tasks_that_are_pipelined_take_what_is_being_released(ssn: Session) -> None:
    statement = ssn.statement()
    statement.pipeline(job_row(ssn, "j"), shape_id(ssn, SMALL), rows(ssn, "j-0"), nodes(ssn, "n3"))

    assert standing(ssn, "j-0") == [(PIPELINED, "n3")]
    assert ssn.state.nodes.idle[0].tolist() == [4000, 3000, 2500]
    assert ssn.state.nodes.future_idle[0].tolist() == [4000, 3000, 3000]
    assert ssn.state.nodes.pod_count.tolist() == [0, 1, 2], "a promised pod counts as a pod of its node"
    assert ssn.state.job(job_row(ssn, "j")).missing() == 2


def test_a_commit_is_one_batch_in_the_order_of_placement(ssn: Session, batches: list[tuple[Decision, ...]]) -> None:
    statement = ssn.statement()
    allocate(ssn, statement, ["j-1", "j-0"], ["n1", "n2"])
    allocate(ssn, statement, ["j-4"], ["n1"], BIG)

    assert batches == []
    assert statement.commit() == 3

    key = JobKey("ns", "j")
    assert batches == [
        tuple(
            Bind(CLUSTER.task(name).record.ref, node, key)
            for name, node in (("j-1", "n1"), ("j-0", "n2"), ("j-4", "n1"))
        )
    ]
    assert standing(ssn, "j-1", "j-0", "j-4") == [(BINDING, "n1"), (BINDING, "n2"), (BINDING, "n1")]
    job = ssn.state.job(job_row(ssn, "j"))
    assert (job.count(BINDING), job.count(ALLOCATED), job.missing()) == (3, 0, 0)


def test_discarding_a_later_statement_keeps_a_committed_one(ssn: Session, batches: list[tuple[Decision, ...]]) -> None:
    statement = ssn.statement()
    allocate(ssn, statement, ["j-0"], ["n1"])
    statement.commit()
    before = picture(ssn)

    later = ssn.statement()
    allocate(ssn, later, ["k-0"], ["n1"])
    later.discard()

    assert picture(ssn) == before
    assert len(batches) == 1


def test_pipelined_tasks_stay_in_the_session_and_emit_no_decision(
    ssn: Session, batches: list[tuple[Decision, ...]]
) -> None:
    statement = ssn.statement()
    statement.pipeline(job_row(ssn, "j"), shape_id(ssn, SMALL), rows(ssn, "j-0"), nodes(ssn, "n3"))

    assert statement.commit() == 0
    assert batches == []
    assert standing(ssn, "j-0") == [(PIPELINED, "n3")]


def test_an_empty_statement_commits_nothing(ssn: Session, batches: list[tuple[Decision, ...]]) -> None:
    assert ssn.statement().commit() == 0
    assert batches == []


def test_a_commit_leaves_the_accounts_of_the_nodes_as_they_are(ssn: Session) -> None:
    statement = ssn.statement()
    allocate(ssn, statement, ["j-0", "j-1"], ["n1", "n1"])
    before = ssn.state.nodes.block.copy()
    statement.commit()

    assert np.array_equal(ssn.state.nodes.block, before)


def test_a_discarded_statement_leaves_nothing_but_the_memory_of_an_attempt(ssn: Session) -> None:
    before = picture(ssn)
    statement = ssn.statement()
    allocate(ssn, statement, ["j-0", "j-1"], ["n1", "n2"])
    statement.pipeline(job_row(ssn, "j"), shape_id(ssn, SMALL), rows(ssn, "j-2"), nodes(ssn, "n3"))
    statement.discard()

    assert picture(ssn) == before
    assert len(statement) == 0
    assert ssn.state.outcome.attempt(task_row(ssn, "j-0")) == (ALLOCATED, node_row(ssn, "n1"))
    assert ssn.state.outcome.attempt(task_row(ssn, "j-2")) == (PIPELINED, node_row(ssn, "n3"))
    assert ssn.state.outcome.attempt(task_row(ssn, "j-3")) is None
    assert ssn.state.outcome.attempts(rows(ssn, "j-0", "j-1", "j-2", "j-3")) == 2


def test_a_commit_forgets_earlier_attempts(ssn: Session) -> None:
    statement = ssn.statement()
    allocate(ssn, statement, ["j-0"], ["n1"])
    statement.discard()
    statement = ssn.statement()
    allocate(ssn, statement, ["j-0"], ["n2"])
    statement.commit()

    assert ssn.state.outcome.attempt(task_row(ssn, "j-0")) is None


def test_a_statement_can_be_used_again_after_a_discard(ssn: Session, batches: list[tuple[Decision, ...]]) -> None:
    statement = ssn.statement()
    allocate(ssn, statement, ["j-0"], ["n1"])
    statement.discard()
    allocate(ssn, statement, ["j-0"], ["n2"])

    assert statement.commit() == 1
    assert [decision.node for decision in batches[0] if isinstance(decision, Bind)] == ["n2"]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.just(0), st.just(0)),
        st.tuples(st.sampled_from(("allocate", "pipeline")), st.integers(1, 4), st.integers(0, 10**6)),
        st.tuples(st.just("discard"), st.just(0), st.just(0)),
    ),
    max_size=14,
)


@settings(max_examples=100, derandomize=True)
@given(steps)
def test_discarding_nested_statements_restores_every_bit(history: list[tuple[str, int, int]]) -> None:
    """Tasks and nodes are picked at random, nodes may repeat; a discard undoes what is inside."""
    ssn = a_session(CLUSTER)
    stack = [(ssn.statement(), picture(ssn))]
    for kind, count, pick in history:
        if kind == "open":
            stack.append((ssn.statement(), picture(ssn)))
        elif kind == "discard":
            statement, before = stack.pop()
            statement.discard()
            assert picture(ssn) == before
            if not stack:
                stack.append((ssn.statement(), before))
        else:
            _place(ssn, stack[-1][0], kind, count, pick)
    while stack:
        statement, before = stack.pop()
        statement.discard()
        assert picture(ssn) == before


def _place(ssn: Session, statement: Statement, kind: str, count: int, pick: int) -> None:
    numbers = np.random.default_rng(pick)
    for job, shape in _kinds(numbers):
        row, wanted = job_row(ssn, job), shape_id(ssn, shape)  # type: ignore[arg-type]
        pending = np.flatnonzero(
            (ssn.state.tasks.status == PENDING) & (ssn.state.tasks.job == row) & (ssn.state.tasks.shape == wanted)
        )
        if len(pending):
            tasks = pending[:count]
            getattr(statement, kind)(row, wanted, tasks, numbers.integers(0, 3, size=len(tasks)))
            return


def _kinds(numbers: np.random.Generator) -> Iterator[tuple[str, object]]:
    kinds = [("j", SMALL), ("j", BIG), ("k", SMALL)]
    for index in numbers.permutation(len(kinds)).tolist():
        yield kinds[index]


@settings(max_examples=60, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 10**6), st.booleans()), max_size=6))
def test_after_discards_the_state_is_as_if_only_kept_statements_ran(history: list[tuple[int, int, bool]]) -> None:
    one, other = a_session(CLUSTER), a_session(CLUSTER)
    for count, pick, keep in history:
        statement = one.statement()
        _place(one, statement, "allocate", count, pick)
        if keep:
            _place(other, other.statement(), "allocate", count, pick)
        else:
            statement.discard()

    assert picture(one) == picture(other)
