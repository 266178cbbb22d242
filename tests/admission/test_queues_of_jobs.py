"""Jobs and the queues that they name: which queues take jobs, and the way out if one does not."""

from typing import Any

import pytest

from tests.admission.asking import create, job, queue


@pytest.mark.parametrize(
    ("queues", "name", "sentence"),
    [
        ([queue("q", "Closed")], "q", "can only submit job to queue with state `Open`, queue `q` status is `Closed`"),
        ([queue("q", "Unknown")], "q", "can only submit job to queue with state `Open`, queue `q` status is `Unknown`"),
        ([queue("root")], "root", "can not submit job to root queue"),
        ([queue("q"), queue("c", parent="q")], "q", "can only submit job to leaf queue, queue `q` has 1 child queues"),
    ],
)
def test_a_queue_that_takes_no_jobs(queues: list[Any], name: str, sentence: str) -> None:
    assert sentence in create("/jobs/validate", job(queue=name), queues).message


@pytest.mark.parametrize(
    ("name", "queues", "hint"),
    [
        ("nowhere", [], "create the queue first"),
        ("nowhere", [queue("q")], "create the queue first, or name one that is open: q"),
        (
            "nowhere",
            [queue("q"), queue("c", parent="q"), queue("d", "Closed")],
            "create the queue first, or name one that is open: c",
        ),
        ("root", [queue("root")], "create a queue and name it"),
        ("root", [queue("root"), queue("q", parent="root")], "name one that is open: q"),
    ],
)
def test_the_way_out_names_queues_that_take_jobs(name: str, queues: list[Any], hint: str) -> None:
    (refusal,) = create("/jobs/validate", job(queue=name), queues).refusals

    assert refusal.hint == hint


def test_a_queue_that_the_queue_controller_has_not_seen_yet_takes_jobs() -> None:
    assert create("/jobs/validate", job(queue="q"), [queue("q", "")]).message == ""


def test_a_leaf_takes_jobs() -> None:
    assert create("/jobs/validate", job(queue="c"), [queue("q"), queue("c", parent="q")]).allowed
