"""The loop that places the tasks of a job, in order, until what it is for is reached or no task is worth trying."""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from volcano_py.framework.hooks.hooks import Hooks
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.outcome import Partial
from volcano_py.framework.state.state import State
from volcano_py.framework.state.statement import Statement
from volcano_py.model.arrays import Floats, Rows
from volcano_py.model.rejections import Rejection
from volcano_py.model.statuses import TaskStatus


class Goal(Protocol):
    """What the tasks are placed for: a job, or one of its sub-groups."""

    @property
    def missing(self) -> Callable[[], int]:
        """Returns 0 if it is reached, else a lower bound of the tasks that it still needs."""

    @property
    def worth_continuing(self) -> Callable[[frozenset[str]], bool]:
        """Says whether other tasks are worth trying after tasks of these roles found no node."""


class Placer(Protocol):
    """Finds nodes for tasks of one shape."""

    def place(self, statement: Statement, job_row: int, shape_id: int, tasks: Rows) -> int:
        """Place as many of these tasks as fit, in order; return how many found a node."""

    def rejection(self, shape_id: int) -> Rejection:
        """Return why no node takes a task of this shape now."""


class JobGoal:
    """The gang: what plugins demand before the placements of a job are committed."""

    __slots__ = ("missing", "worth_continuing")

    def __init__(self, hooks: Hooks, job: JobInfo) -> None:
        self.missing: Callable[[], int] = partial(hooks.missing, job)
        """Returns 0 if the job is ready, else a lower bound of the tasks that it still needs."""
        self.worth_continuing: Callable[[frozenset[str]], bool] = job.worth_continuing
        """Says whether other tasks are worth trying after tasks of these roles found no node."""


class TaskLoop:
    """Places tasks in runs of one shape, as many at once as are certainly still needed."""

    def __init__(self, state: State, hooks: Hooks) -> None:
        self._state = state
        self._hooks = hooks

    def run(
        self, statement: Statement, queue: QueueInfo, job: JobInfo, tasks: Rows, goal: Goal, placer: Placer
    ) -> tuple[Rows, bool]:
        """Place tasks of a job; return those that were not tried, and whether the goal is reached."""
        state, hooks = self._state, self._hooks
        failed_roles: set[str] = set()
        failed_shapes = state.outcome.rejections.setdefault(job.row, {})
        missing = goal.missing()
        lacking = tasks[:missing]
        start = 0
        while start < len(tasks):
            shape_id = int(state.tasks.shape[tasks[start]])
            if shape_id in failed_shapes:  # one task of this shape was refused, so the others are, too
                start += self.run_length(tasks[start:])
                continue
            wanted = self.run_length(tasks[start : start + max(1, missing)])
            allowed = hooks.allocatable(queue, state.task_of(shape_id), wanted)
            done = placer.place(statement, job.row, shape_id, tasks[start : start + allowed])
            if done:
                missing = goal.missing()
            if done < allowed:
                failed_shapes[shape_id] = placer.rejection(shape_id)
                failed_roles.add(state.tasks.record(int(tasks[start])).role)
                start += self.run_length(tasks[start:])
                if not goal.worth_continuing(frozenset(failed_roles)):
                    return tasks[start:], missing == 0
            elif allowed < wanted:  # the queue may hold no more of these; others may still be worth trying
                asking = lacking if len(lacking) else tasks[start : start + 1]
                failed_shapes[shape_id] = self.over_limit(queue, shape_id, asking, statement)
                start += self.run_length(tasks[start:])
            else:
                start += done
            if missing == 0:
                break
        return tasks[start:], missing == 0

    def try_out(self, job: JobInfo, tasks: Rows, placer: Placer) -> tuple[Partial, bool]:
        """Place tasks of a job as in its turns, and undo it; return what came of it, and whether the job was ready."""
        state, rejections = self._state, self._state.outcome.rejections
        looks_ahead, recorded = state.looks_ahead, rejections.pop(job.row, None)
        statement = self._hooks.statement()
        before = statement.checkpoint()
        try:
            queue, goal = state.queues[job.record.queue], JobGoal(self._hooks, job)
            left, ready = self.run(statement, queue, job, tasks, goal, placer)
            while ready and len(left):  # a job that has its minimum gets another turn for the rest
                left, ready = self.run(statement, queue, job, left, goal, placer)
            places = np.flatnonzero(state.tasks.status[tasks] != TaskStatus.PENDING)
            statuses, nodes = state.tasks.status[tasks[places]], state.tasks.node[tasks[places]]
            partial = Partial(places, statuses.astype(np.int32), nodes.astype(np.intp), rejections.pop(job.row))
        finally:
            statement.rollback(before)
            state.looks_ahead = looks_ahead
            rejections.pop(job.row, None)
            if recorded is not None:
                rejections[job.row] = recorded
        return partial, ready

    def run_length(self, tasks: Rows) -> int:
        """Return how many of these tasks, from the first on, have one shape."""
        if len(tasks) == 1:
            return 1
        shapes = self._state.tasks.shape[tasks]
        other = np.flatnonzero(shapes != shapes[0])
        return int(other[0]) if len(other) else len(tasks)

    def over_limit(
        self, queue: QueueInfo, shape_id: int, lacking: Rows, statement: Statement | None = None
    ) -> Rejection:
        """Return why a queue may not hold one more of the tasks that a job lacks; a statement has placed some."""
        state = self._state
        why = state.outcome.queue_limits.get(queue.name)
        if why is None:
            task, placed = state.task_of(shape_id), [] if statement is None else [task for task, _ in statement.placed]
            asked, given = self._requested(lacking), self._requested(np.array(placed, dtype=np.intp))
            why = self._hooks.over_limit(queue, task, np.maximum(asked, given + task.request), given)
        return Rejection(len(state.nodes), blocked=why)

    def _requested(self, tasks: Rows) -> Floats:
        """Return what these tasks request together, (n_resources,)."""
        requests, shapes = self._state.classes.requests, self._state.tasks.shape
        if not len(tasks):
            return np.zeros(len(requests))
        if self.run_length(tasks) == len(tasks):  # as nearly always; much faster
            return np.asarray(requests[:, shapes[tasks[0]]] * float(len(tasks)))
        return np.asarray(requests[:, shapes[tasks]].sum(axis=1))
