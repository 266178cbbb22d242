"""Which tasks may have pods."""

from typing import Any

import pytest

from tests.controllers.job.builders import a_job_task, a_ready_job, a_vcjob
from volcano_py.api.batch import Job
from volcano_py.controllers.job.depends_on import by_name, may_start


def chain(iteration: str = "", names: tuple[str, ...] = ("a", "b")) -> Job:
    depends = {"name": list(names)} | ({"iteration": iteration} if iteration else {})
    return a_ready_job(a_job_task("a", 2), a_job_task("b", 3, minAvailable=1), a_job_task("c", 1, dependsOn=depends))


def starts(job: Job, **ready: int) -> bool:
    return may_start(by_name(job), job.spec.tasks[-1], ready)


@pytest.mark.parametrize(
    ("iteration", "ready", "expected"),
    [
        ("", {}, False),
        ("", {"a": 2}, False),
        ("", {"a": 2, "b": 1}, True),
        ("", {"a": 1, "b": 3}, False),
        ("all", {"a": 2}, False),
        ("any", {}, False),
        ("any", {"a": 1}, False),
        ("any", {"b": 1}, True),
        ("any", {"a": 2}, True),
    ],
)
def test_all_dependencies_must_be_ready_unless_any_is_enough(
    iteration: str, ready: dict[str, int], expected: bool
) -> None:
    assert starts(chain(iteration), **ready) is expected


def test_any_means_nothing_with_a_single_dependency() -> None:
    assert not starts(chain("any", ("a",)))
    assert starts(chain("any", ("a",)), a=2)


@pytest.mark.parametrize("depends", [None, {"name": []}])
def test_a_task_without_dependencies_starts_at_once(depends: Any) -> None:
    assert starts(a_ready_job(a_job_task(**({"dependsOn": depends} if depends else {}))))


def test_a_task_that_does_not_exist_holds_nobody_up() -> None:
    assert starts(chain("", ("a", "nobody")), a=2)


def test_a_task_without_a_minimum_holds_nobody_up() -> None:
    assert starts(a_vcjob(a_job_task("a", 2), a_job_task("c", dependsOn={"name": ["a"]})))
    assert starts(a_ready_job(a_job_task("a", 2, minAvailable=0), a_job_task("c", dependsOn={"name": ["a"]})))
