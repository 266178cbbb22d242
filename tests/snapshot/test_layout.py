import numpy as np
import pytest

from volcano_py.model.statuses import ALLOCATED_STATUSES, READY_STATUSES, VALID_STATUSES, TaskStatus
from volcano_py.snapshot import layout

REQUEST = np.array([1000.0, 2048.0, 1.0])
NONZERO = np.array([100.0, 200.0])

NODE_SIGNS = {  # status: idle, used, releasing, pipelined, requested
    TaskStatus.PENDING: (0, 0, 0, 0, 0),
    TaskStatus.ALLOCATED: (-1, 1, 0, 0, 1),
    TaskStatus.PIPELINED: (0, 0, 0, 1, 1),
    TaskStatus.BINDING: (-1, 1, 0, 0, 1),
    TaskStatus.BOUND: (-1, 1, 0, 0, 1),
    TaskStatus.RUNNING: (-1, 1, 0, 0, 1),
    TaskStatus.RELEASING: (-1, 1, 1, 0, 1),
    TaskStatus.SUCCEEDED: (0, 0, 0, 0, 0),
    TaskStatus.FAILED: (0, 0, 0, 0, 0),
    TaskStatus.UNKNOWN: (-1, 1, 0, 0, 1),
}


@pytest.mark.parametrize("status", TaskStatus, ids=lambda status: status.label)
def test_what_a_task_adds_to_its_node_follows_volcanos_table(status: TaskStatus) -> None:
    delta = layout.node_delta(status, REQUEST, NONZERO)
    sections = delta[: 6 * 3].reshape(6, 3)
    signs = NODE_SIGNS[status]

    assert delta.shape == (layout.node_rows(3),)
    assert [section.tolist() for section in sections[:5]] == [(sign * REQUEST).tolist() for sign in signs]
    assert not sections[layout.ALLOCATABLE].any()
    assert delta[6 * 3 :].tolist() == (signs[layout.REQUESTED] * NONZERO).tolist()


@pytest.mark.parametrize("best_effort", [False, True])
@pytest.mark.parametrize("status", TaskStatus, ids=lambda status: status.label)
def test_what_a_task_adds_to_its_job(status: TaskStatus, best_effort: bool) -> None:
    delta = layout.job_delta(status, REQUEST, best_effort)
    counts, sections = delta[: len(TaskStatus)], delta[layout.JOB_HEAD :].reshape(4, 3)

    assert delta.shape == (layout.job_rows(3),)
    assert np.flatnonzero(counts).tolist() == [status]
    assert counts.sum() == 1
    assert delta[layout.HELD_ROW] == (status in READY_STATUSES or (best_effort and status is TaskStatus.PENDING))
    assert delta[layout.VALID_ROW] == (status in VALID_STATUSES)
    assert sections[layout.ALLOCATED].tolist() == (REQUEST * (status in ALLOCATED_STATUSES)).tolist()
    assert sections[layout.PENDING].tolist() == (REQUEST * (status is TaskStatus.PENDING)).tolist()
    assert sections[layout.TOTAL].tolist() == REQUEST.tolist()
    assert sections[layout.PROMISED].tolist() == (REQUEST * (status is TaskStatus.PIPELINED)).tolist()


def test_a_bind_moves_a_task_from_one_count_to_another_and_changes_nothing_else() -> None:
    one, other = (layout.job_delta(status, REQUEST, False) for status in (TaskStatus.ALLOCATED, TaskStatus.BINDING))

    assert np.flatnonzero(one != other).tolist() == [TaskStatus.ALLOCATED, TaskStatus.BINDING]


def test_a_node_block_of_more_resources_keeps_every_section() -> None:
    old = np.arange(layout.node_rows(3) * 2, dtype=float).reshape(-1, 2)

    wide = layout.widen_nodes(old, 3, 5)

    assert wide.shape == (layout.node_rows(5), 2)
    for which in range(layout.N_SECTIONS):
        section = layout.section(wide, which, 5)
        assert np.array_equal(section[:3], layout.section(old, which, 3))
        assert not section[3:].any()
    assert np.array_equal(wide[-layout.N_NONZERO :], old[-layout.N_NONZERO :])


def test_a_job_block_of_more_resources_keeps_every_section() -> None:
    old = np.arange(layout.job_rows(3) * 2, dtype=float).reshape(-1, 2)

    wide = layout.widen_jobs(old, 3, 4)

    assert wide.shape == (layout.job_rows(4), 2)
    assert np.array_equal(wide[: layout.JOB_HEAD], old[: layout.JOB_HEAD])
    before, after = old[layout.JOB_HEAD :].reshape(4, 3, 2), wide[layout.JOB_HEAD :].reshape(4, 4, 2)
    assert np.array_equal(after[:, :3], before)
    assert not after[:, 3].any()
