"""What the least number of pods of a job uses."""

import time
from typing import Any

import pytest

from tests.controllers.job.builders import a_job_task, a_ready_job
from volcano_py.api.quantity import QuantityError
from volcano_py.controllers.job.min_resources import _by_priority, min_resources, ranked


def task(name: str, replicas: int, cpu: str, minimum: int | None = None, priority: str = "", **more: Any) -> Any:
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}, **more}}
    spec = {"containers": [container]} | ({"priorityClassName": priority} if priority else {})
    return a_job_task(name, replicas, {"spec": spec}, **({} if minimum is None else {"minAvailable": minimum}))


PRIORITIES = {"high": 100, "low": -5}


def cpu(*tasks: Any, least: int = 0, **job: Any) -> str:
    return min_resources(a_ready_job(*tasks, minAvailable=least, **job), PRIORITIES)["cpu"]


def test_all_pods_of_a_job_without_a_minimum_count() -> None:
    assert min_resources(a_ready_job(task("w", 3, "500m")), {}) == {
        "cpu": "1500m",
        "requests.cpu": "1500m",
        "pods": "3",
        "count/pods": "3",
    }


def test_below_the_sum_of_the_minimums_replicas_are_taken_task_by_task_by_priority() -> None:
    tasks = task("w", 4, "1"), task("m", 2, "10", priority="high")

    assert cpu(*tasks, least=1) == "10"
    assert cpu(*tasks, least=3) == "21"


def test_from_the_sum_of_the_minimums_on_each_task_gives_its_own_first() -> None:
    tasks = task("w", 4, "1", minimum=1), task("m", 3, "10", minimum=1, priority="high")

    assert cpu(*tasks, least=2) == "11"
    assert cpu(*tasks, least=3) == "21"
    assert cpu(*tasks, least=5) == "32"
    assert cpu(*tasks, least=7) == "34"


def test_more_pods_than_there_are_are_not_counted() -> None:
    assert cpu(task("w", 2, "1"), least=9) == "2"


def test_a_job_of_no_pods_uses_nothing() -> None:
    assert min_resources(a_ready_job(task("w", 0, "1")), {}) == {}


def test_tasks_are_ranked_by_their_class_or_that_of_the_job_and_equal_ones_stay_in_order() -> None:
    job = a_ready_job(task("a", 1, "1"), task("b", 1, "1", priority="low"), task("c", 1, "1", priority="high"))
    assert [one.task.name for one in ranked(job, PRIORITIES)] == ["c", "a", "b"]

    job = a_ready_job(task("a", 1, "1", priority="low"), task("b", 1, "1"), priorityClassName="high")
    assert [one.task.name for one in ranked(job, PRIORITIES)] == ["b", "a"]
    assert [one.task.name for one in ranked(job, {})] == ["a", "b"]


def test_limits_count_in_the_words_of_a_quota() -> None:
    found = min_resources(a_ready_job(task("w", 2, "1", limits={"cpu": "2", "memory": "1Gi"})), {})

    assert {name: found[name] for name in ("limits.cpu", "limits.memory")} == {
        "limits.cpu": "4",
        "limits.memory": "2Gi",
    }


@pytest.mark.parametrize("quantity", ["many", "1 cpu", "-"])
def test_a_quantity_that_cannot_be_read_names_the_task(quantity: str) -> None:
    with pytest.raises(QuantityError, match="template of task w"):
        min_resources(a_ready_job(task("w", 1, quantity)), {})


def test_a_job_of_thousands_of_tasks_takes_time_that_grows_with_their_number() -> None:
    """All controllers wait meanwhile."""
    tasks = [*ranked(a_ready_job(task("t", 1, "1")), {}) * 60_000]
    before = time.process_time()

    assert sum(_by_priority(tasks, 59_999)) == 59_999
    assert time.process_time() - before < 5  # with a sum over all tasks before each task, it is a minute
