"""Which tasks of a job may have pods: those whose dependencies are ready."""

from collections.abc import Mapping

from volcano_py.api.batch import Job, Task

ANY = "any"


def dependency_ready(task: Task | None, ready: int) -> bool:
    """Say whether a task with ``ready`` pods that succeeded or are ready lets dependent tasks start.

    A task that does not exist or has no minimum is ready.
    """
    return task is None or task.min_available is None or ready >= task.min_available


def is_any(task: Task) -> bool:
    """Say whether one of the dependencies of a task is enough."""
    depends = task.depends_on
    return depends is not None and depends.iteration == ANY and len(depends.name) > 1


def by_name(job: Job) -> dict[str, Task]:
    """Return the tasks of a job."""
    return {task.name: task for task in job.spec.tasks}


def may_start(tasks: Mapping[str, Task], task: Task, ready: Mapping[str, int]) -> bool:
    """Say whether pods of one of these tasks may be created; ``ready`` has the number of ready pods of each."""
    depends = task.depends_on
    if depends is None or not depends.name:
        return True
    answers = [dependency_ready(tasks.get(name), ready.get(name, 0)) for name in depends.name]
    return any(answers) if is_any(task) else all(answers)
