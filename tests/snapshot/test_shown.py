from dataclasses import replace

import pytest

from volcano_py.model.decisions import SetPodGroupStatus
from volcano_py.model.objects import GroupCondition, JobKey, JobRecord
from volcano_py.model.wording import without_numbers
from volcano_py.snapshot.shown import shown_after, shown_status

READY = GroupCondition("Scheduled", True, "tasks in gang are ready to be scheduled", "", "session-1")
LACKS = GroupCondition("Unschedulable", True, "NotEnoughResources", "3/4 tasks in gang unschedulable", "session-1")
GROUP = JobRecord(JobKey("ns", "train"), "uid", queue="default", phase="Inqueue")


def status(*conditions: GroupCondition, running: int = 0) -> SetPodGroupStatus:
    return SetPodGroupStatus(GROUP.key, GROUP.uid, "Running", running, 0, 0, conditions)


@pytest.mark.parametrize("conditions", [(), (READY,), (LACKS,), (READY, LACKS)], ids=len)
def test_the_number_of_a_status_is_the_one_it_has_once_it_is_written(conditions: tuple[GroupCondition, ...]) -> None:
    written = replace(GROUP, phase="Running", running=2, conditions=conditions)

    assert shown_after(GROUP, status(*conditions, running=2), without_numbers)[0] == shown_status(written)


def test_a_condition_replaces_the_one_of_its_type() -> None:
    before, later = replace(GROUP, conditions=(LACKS,)), LACKS._replace(status=False)

    assert shown_after(before, status(later), without_numbers) == shown_after(GROUP, status(later), without_numbers)


def test_statuses_that_differ_in_anything_but_the_session_have_other_numbers() -> None:
    distinct = [
        status(),
        status(READY),
        status(READY, running=1),
        status(READY._replace(status=False)),
        status(READY._replace(reason="other")),
        status(READY._replace(message="text")),
        status(LACKS),
        status(READY, LACKS),
    ]
    numbers = [shown_after(GROUP, one, without_numbers)[0] for one in distinct]

    assert len(set(numbers)) == len(distinct)
    assert shown_after(GROUP, status(READY._replace(transition_id="session-2")), without_numbers)[0] == numbers[1]


def test_the_kind_does_not_depend_on_numbers_in_messages() -> None:
    other = LACKS._replace(message="1/4 tasks in gang unschedulable")
    (what, kind), (other_what, other_kind) = (
        shown_after(GROUP, status(one), without_numbers) for one in (LACKS, other)
    )

    assert what != other_what
    assert kind == other_kind
