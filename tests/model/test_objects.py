import pytest

from tests.reference.world import a_task
from volcano_py.model.objects import JobKey, QueueRecord, TaskRef


def test_a_pod_recreated_under_the_same_name_is_another_task() -> None:
    assert a_task("p", uid="1").record.ref != a_task("p", uid="2").record.ref


def test_keys_and_references_read_as_namespace_and_name() -> None:
    assert str(JobKey("ns", "train")) == "ns/train"
    assert str(TaskRef("ns", "train-0", "uid")) == "ns/train-0"


def test_a_task_belongs_to_the_job_of_its_own_namespace() -> None:
    assert a_task("p", job="train", namespace="ml").record.key == JobKey("ml", "train")
    assert a_task("p").record.key is None


@pytest.mark.parametrize(("state", "open_"), [("", True), ("Open", True), ("Closed", False), ("Closing", False)])
def test_a_queue_that_no_controller_has_seen_counts_as_open(state: str, open_: bool) -> None:
    assert QueueRecord("q", state=state).open is open_
