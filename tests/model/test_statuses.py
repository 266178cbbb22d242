import pytest

from volcano_py.model.statuses import (
    ALLOCATED_STATUSES,
    N_STATUSES,
    OCCUPYING_STATUSES,
    READY_STATUSES,
    SCHEDULED_STATUSES,
    VALID_STATUSES,
    PodGroupPhase,
    TaskStatus,
    members,
)

TABLE = {  # status: sets it belongs to (a allocated, r ready, v valid, s scheduled, o occupying)
    TaskStatus.PENDING: "v",
    TaskStatus.ALLOCATED: "arvo",
    TaskStatus.PIPELINED: "v",
    TaskStatus.BINDING: "arvo",
    TaskStatus.BOUND: "arvso",
    TaskStatus.RUNNING: "arvso",
    TaskStatus.RELEASING: "o",
    TaskStatus.SUCCEEDED: "rvs",
    TaskStatus.FAILED: "s",
    TaskStatus.UNKNOWN: "o",
}
SETS = {
    "a": ALLOCATED_STATUSES,
    "r": READY_STATUSES,
    "v": VALID_STATUSES,
    "s": SCHEDULED_STATUSES,
    "o": OCCUPYING_STATUSES,
}


@pytest.mark.parametrize("status", TaskStatus, ids=lambda status: status.label)
def test_every_status_belongs_to_the_sets_of_the_table(status: TaskStatus) -> None:
    assert {letter for letter, statuses in SETS.items() if status in statuses} == set(TABLE[status])


def test_statuses_are_the_rows_of_tables_of_counts() -> None:
    assert [int(status) for status in TaskStatus] == list(range(N_STATUSES))


def test_a_mask_answers_for_a_whole_column_and_cannot_be_changed() -> None:
    mask = members(READY_STATUSES)

    assert [TaskStatus(row) for row, ready in enumerate(mask) if ready] == list(READY_STATUSES)
    with pytest.raises(ValueError, match="read-only"):
        mask[0] = True


def test_labels_are_volcanos_words() -> None:
    assert [status.label for status in (TaskStatus.PENDING, TaskStatus.BINDING)] == ["Pending", "Binding"]


@pytest.mark.parametrize(
    ("text", "phase"),
    [
        ("", PodGroupPhase.PENDING),
        ("Pending", PodGroupPhase.PENDING),
        ("Inqueue", PodGroupPhase.INQUEUE),
        ("Running", PodGroupPhase.RUNNING),
        ("Unknown", PodGroupPhase.UNKNOWN),
        ("Completed", PodGroupPhase.COMPLETED),
        ("Dreaming", PodGroupPhase.UNKNOWN),
    ],
)
def test_a_phase_is_read_from_the_wire(text: str, phase: PodGroupPhase) -> None:
    assert PodGroupPhase.of(text) is phase


@pytest.mark.parametrize("phase", PodGroupPhase)
def test_a_phase_is_written_as_it_is_read(phase: PodGroupPhase) -> None:
    assert PodGroupPhase.of(phase.label) is phase
