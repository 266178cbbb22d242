import numpy as np
import pytest

from tests.framework.sessions import a_session, job_row, shape_id, task_row
from tests.reference.world import World, a_job, a_node, a_shape, tasks_of
from volcano_py.framework.hooks.fit_errors import job_fit_error, not_placeable, rejection_of
from volcano_py.framework.session import Session
from volcano_py.model.rejections import Reason, Refusal, Rejection
from volcano_py.model.statuses import TaskStatus
from volcano_py.plugins.gang import Gang

SMALL, BIG = a_shape(cpu=1), a_shape(cpu=5)
LACKING = Rejection(5, (Refusal(Reason("resources", "insufficient-cpu", "Insufficient cpu"), 5),))


@pytest.fixture
def ssn() -> Session:
    world = World(
        nodes=(a_node("n1"),),
        jobs=(a_job("train", min_available=6),),
        tasks=(*tasks_of("train", 5, SMALL), *tasks_of("train", 1, BIG, first=5)),
    )
    return a_session(world, Gang())


def text(ssn: Session) -> str:
    return job_fit_error(ssn.state, ssn.hooks, ssn.state.job(job_row(ssn, "train")))


def test_a_job_that_was_not_tried_has_its_counts_and_no_reason(ssn: Session) -> None:
    assert text(ssn) == "pod group is not ready, 6 Pending, 6 minAvailable; Pending: 6 Unschedulable"


def test_the_reason_of_the_first_task_in_order_that_has_one_is_the_origin(ssn: Session) -> None:
    ssn.state.outcome.rejections[job_row(ssn, "train")] = {shape_id(ssn, BIG): LACKING}

    assert text(ssn) == (
        "pod group is not ready, 6 Pending, 6 minAvailable; Pending: 6 Unschedulable. "
        "Origin reason is train-5: 0/5 nodes are unavailable: 5 Insufficient cpu."
    )


def test_tasks_that_would_have_had_a_node_are_schedulable(ssn: Session) -> None:
    statement = ssn.statement()
    statement.allocate(
        job_row(ssn, "train"),
        shape_id(ssn, SMALL),
        np.array([task_row(ssn, f"train-{index}") for index in range(4)]),
        np.zeros(4, dtype=np.intp),
    )
    statement.discard()
    ssn.state.outcome.rejections[job_row(ssn, "train")] = {shape_id(ssn, BIG): LACKING}

    assert "; Pending: 2 Unschedulable, 4 Schedulable. Origin" in text(ssn)


def test_the_reason_that_blocks_a_job_comes_last(ssn: Session) -> None:
    ssn.state.outcome.blocked[job_row(ssn, "train")] = Reason("enqueue", "x", "the queue is closed")

    assert text(ssn) == "pod group is not ready, 6 Pending, 6 minAvailable. the queue is closed"


def test_counts_are_sorted_as_text_without_zeros() -> None:
    world = World(
        nodes=(a_node("n1"),),
        jobs=(a_job("train", min_available=2),),
        tasks=(
            *tasks_of("train", 10, SMALL, status=TaskStatus.RUNNING, node="n1"),
            *tasks_of("train", 2, SMALL, status=TaskStatus.FAILED, first=10),
            *tasks_of("train", 1, SMALL, first=12),
        ),
    )
    ssn = a_session(world, Gang())

    assert text(ssn) == (
        "pod group is ready, 1 Pending, 10 Running, 2 Failed, 2 minAvailable; Pending: 1 Unschedulable"
    )


@pytest.mark.parametrize(
    ("shape", "code", "text"),
    [
        (a_shape(cpu=1), "", ""),
        (
            a_shape(cpu=1, unsupported=("spec.volumes[data].persistentVolumeClaim", "spec.x")),
            "unsupported-field",
            "spec.volumes[data].persistentVolumeClaim, spec.x: not supported by this scheduler yet",
        ),
        (a_shape(cpu=1, gates=("a", "b")), "scheduling-gates", "waits for scheduling gates: a, b"),
        (a_shape(cpu=1, gates=("a",), unsupported=("spec.x",)), "unsupported-field", "spec.x"),
    ],
)
def test_a_task_that_is_never_placed_names_the_unsupported_field(shape: object, code: str, text: str) -> None:
    reason = not_placeable(shape)  # type: ignore[arg-type]

    if code:
        assert reason is not None
        assert reason.code == code
        assert text in reason.text
    else:
        assert reason is None


def test_a_rejection_of_placement_goes_before_one_of_the_shape() -> None:
    odd = a_shape(cpu=1, unsupported=("spec.x",))
    ssn = a_session(World(jobs=(a_job("train"),), tasks=tasks_of("train", 1, odd)))
    row, index = job_row(ssn, "train"), shape_id(ssn, odd)
    first = rejection_of(ssn.state, ssn.hooks, row, index)
    ssn.state.outcome.rejections[row] = {index: LACKING}

    assert first is not None
    assert "spec.x" in first.message
    assert rejection_of(ssn.state, ssn.hooks, row, index) is LACKING


def test_a_text_follows_the_job_until_the_session_closes_and_is_made_once_from_then_on(ssn: Session) -> None:
    untried = text(ssn)
    ssn.state.outcome.rejections[job_row(ssn, "train")] = {shape_id(ssn, BIG): LACKING}
    tried = text(ssn)
    ssn.close()
    closing = ssn.state.outcome.fit_error
    job = ssn.state.job(job_row(ssn, "train"))

    assert untried != tried == closing(job)
    assert closing(job) is closing(job)
