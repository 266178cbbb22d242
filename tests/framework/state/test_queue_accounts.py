import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.framework.sessions import a_session, job_row, node_row, task_row
from tests.reference.strategies import worlds
from tests.reference.world import World, a_job, a_node, a_shape, a_task, tasks_of
from volcano_py.framework.session import Session
from volcano_py.framework.state.queue_accounts import JobStamp, JobSums
from volcano_py.framework.state.statement import Statement
from volcano_py.model.objects import QueueRecord
from volcano_py.model.statuses import ALLOCATED_STATUSES, TaskStatus

CPU, GPU = a_shape(cpu=1), a_shape(cpu=1, gpu=1)
CLUSTER = World(
    nodes=(a_node("n1", gpu=4), a_node("n2")),
    queues=(QueueRecord("b"), QueueRecord("a"), QueueRecord("idle")),
    jobs=(a_job("j", queue="a"), a_job("k", queue="b"), a_job("lost", queue="nowhere")),
    tasks=(
        *tasks_of("j", 4, CPU),
        a_task("run", GPU, job="j", status=TaskStatus.RUNNING, node="n1"),
        a_task("done", GPU, job="j", status=TaskStatus.SUCCEEDED, node="n1"),
        a_task("gone", GPU, job="k", status=TaskStatus.RELEASING, node="n1"),
        *tasks_of("k", 2, GPU),
        a_task("stray", CPU, job="lost", status=TaskStatus.RUNNING, node="n2"),
        a_task("loose", CPU, status=TaskStatus.RUNNING, node="n2"),
        a_task("orphan", CPU, job="nobody", status=TaskStatus.RUNNING, node="n2"),
    ),
)


def taken(ssn: Session) -> dict[str, list[float]]:
    """Return cpu and pods that each queue holds."""
    queues = ssn.state.accounts.track_queues()
    return {record.name: queues.taken[[0, 2], row].tolist() for row, record in enumerate(queues.records)}


def place(ssn: Session, job: str, names: list[str], node: str, *, promised: bool = False) -> Statement:
    statement = ssn.statement()
    rows = np.array([task_row(ssn, name) for name in names])
    put = statement.pipeline if promised else statement.allocate
    put(job_row(ssn, job), int(ssn.state.tasks.shape[rows[0]]), rows, np.full(len(rows), node_row(ssn, node)))
    return statement


def test_a_queue_holds_what_tasks_of_its_jobs_hold() -> None:
    assert taken(a_session(CLUSTER)) == {"a": [1000.0, 1.0], "b": [0.0, 0.0], "idle": [0.0, 0.0]}


@pytest.mark.parametrize("promised", [False, True], ids=["allocated", "promised"])
def test_what_is_placed_counts_at_once_and_undo_restores_every_bit(promised: bool) -> None:
    ssn = a_session(CLUSTER)
    before = ssn.state.accounts.track_queues().taken.copy()

    statement = place(ssn, "j", ["j-0", "j-1", "j-2"], "n2", promised=promised)
    assert taken(ssn)["a"] == [4000.0, 4.0]
    one = place(ssn, "k", ["k-0"], "n1", promised=promised)
    assert taken(ssn)["b"] == [1000.0, 1.0]
    one.discard()
    statement.discard()

    assert ssn.state.accounts.track_queues().taken.tobytes() == before.tobytes()


def test_a_commit_changes_nothing_that_a_queue_holds() -> None:
    ssn = a_session(CLUSTER)
    ssn.state.accounts.track_queues()
    statement = place(ssn, "j", ["j-0"], "n2")

    statement.commit()

    assert taken(ssn)["a"] == [2000.0, 2.0]


def test_without_a_reader_queue_accounts_are_not_kept() -> None:
    ssn = a_session(CLUSTER)
    place(ssn, "j", ["j-0"], "n2")

    assert ssn.state.accounts.queues is None
    with pytest.raises(RuntimeError, match="from the opening of the session on"):
        ssn.state.accounts.track_queues()


def test_which_queues_have_jobs() -> None:
    assert a_session(CLUSTER).state.accounts.track_queues().with_jobs().tolist() == [True, True, False]


def test_a_cluster_without_queues_or_jobs() -> None:
    queues = a_session(World(queues=())).state.accounts.track_queues()

    assert queues.taken.shape == (3, 0)
    assert queues.with_jobs().tolist() == []


@settings(max_examples=60, derandomize=True)
@given(world=worlds(), data=st.data())
def test_what_queues_hold_equals_a_count_task_by_task_whatever_was_done_and_undone(
    world: World, data: st.DataObject
) -> None:
    ssn = a_session(world)
    ssn.state.accounts.track_queues()
    before = ssn.state.accounts.queues.taken.tobytes() if ssn.state.accounts.queues is not None else b""
    checkpoint = ssn.state.journal.checkpoint()
    pending = [row for row in range(len(ssn.state.tasks.records)) if ssn.state.tasks.status[row] == TaskStatus.PENDING]
    ours = [
        row
        for row in pending
        if ssn.state.tasks.job[row] >= 0 and ssn.state.jobs.records[ssn.state.tasks.job[row]] is not None
    ]
    for row in ours if len(ssn.state.nodes) else []:
        action = data.draw(st.sampled_from(("allocate", "pipeline", "leave")))
        node = np.array([data.draw(st.integers(0, len(ssn.state.nodes) - 1))])
        if action != "leave":
            statement = ssn.statement()
            job, shape = int(ssn.state.tasks.job[row]), int(ssn.state.tasks.shape[row])
            getattr(statement, action)(job, shape, np.array([row]), node)

    assert taken(ssn) == counted(ssn)
    ssn.state.journal.rollback(checkpoint, ssn.state.nodes.block)
    assert ssn.state.accounts.queues is not None
    assert ssn.state.accounts.queues.taken.tobytes() == before


def counted(ssn: Session) -> dict[str, list[float]]:
    sums = {name: [0.0, 0.0] for name in ssn.state.queues}
    for row, record in enumerate(ssn.state.tasks.records):
        if record is None or ssn.state.tasks.job[row] < 0:
            continue
        job = ssn.state.jobs.records[ssn.state.tasks.job[row]]
        if job is None or job.queue not in sums:
            continue
        if TaskStatus(ssn.state.tasks.status[row]) in (*ALLOCATED_STATUSES, TaskStatus.PIPELINED):
            request = dict(ssn.state.classes.shape_of(int(ssn.state.tasks.shape[row])).request)
            sums[job.queue][0] += request.get("cpu", 0.0)
            sums[job.queue][1] += 1
    return sums


def test_sums_over_any_groups_of_jobs_follow_every_statement_and_its_undo() -> None:
    ssn = a_session(CLUSTER)
    both, none = np.array([0, 2]), np.zeros(0, dtype=np.intp)
    sums = JobSums(
        [both if row == job_row(ssn, "j") else none for row in range(len(ssn.state.jobs))], 3, ssn.state.jobs
    )
    ssn.state.accounts.track(sums)
    before = sums.taken.copy()
    assert before[0].tolist() == [1000.0, 0.0, 1000.0]

    statement = place(ssn, "j", ["j-0", "j-1"], "n2")
    place(ssn, "k", ["k-0"], "n1").discard()

    assert sums.taken[0].tolist() == [3000.0, 0.0, 3000.0]
    statement.discard()
    assert sums.taken.tobytes() == before.tobytes()


def test_a_stamp_differs_after_every_change_and_an_undo_restores_it() -> None:
    ssn = a_session(CLUSTER)
    stamp = JobStamp()
    ssn.state.accounts.track(stamp)
    first = stamp.value

    statement = place(ssn, "j", ["j-0"], "n2")
    second = stamp.value
    one = place(ssn, "k", ["k-0"], "n1")
    third = stamp.value
    j, k = job_row(ssn, "j"), job_row(ssn, "k")
    assert stamp.changed_since(first).tolist() == sorted([j, k])
    assert stamp.changed_since(second).tolist() == [k]
    one.discard()
    assert stamp.value == second
    assert stamp.changed_since(third).tolist() == [k]
    statement.discard()
    assert stamp.value == first
    place(ssn, "k", ["k-0"], "n1")

    assert len({first, second, third, stamp.value}) == 4
    assert stamp.changed_since(second).tolist() == sorted([j, k])
    assert stamp.changed_since(first).tolist() == [k]
    assert stamp.changed_since(stamp.value).tolist() == []
