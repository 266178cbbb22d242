"""Nominated nodes are tried before all others (Volcano: allocate, nominatedNodeName): a plan is kept as it was made."""

import numpy as np

from volcano_py.framework.hooks.hooks import Hooks
from volcano_py.framework.placing.placement import Placement
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.nominated_room import NominatedRoom
from volcano_py.framework.state.state import State
from volcano_py.framework.state.statement import Statement
from volcano_py.model.arrays import Rows


class NominatedNodes:
    """Places tasks on the nodes that are nominated for equal tasks, as allocate would if there were no others."""

    def __init__(self, state: State, hooks: Hooks, placement: Placement, room: NominatedRoom) -> None:
        self._state = state
        self._hooks = hooks
        self._placement = placement
        self._room = room

    def place_first(self, statement: Statement, queue: QueueInfo, job: JobInfo, tasks: Rows) -> Rows:
        """Place tasks of a job; return those without a nominated node and those that do not fit their node or queue.

        Tasks of one shape are equal: the first of them in task order get the nodes that are nominated for any of them.
        Call it while the nominated room is open to the job.
        """
        nodes = self._room.nodes_of(job)
        if not nodes:
            return tasks
        left = []
        # A Python loop over the tasks of a job that has nominated ones.
        for task, shape_id in zip(tasks.tolist(), self._state.tasks.shape[tasks].tolist(), strict=True):
            nominated = nodes.get(shape_id)
            if not nominated or not self._place(statement, queue, job.row, task, nominated.pop(0)):
                left.append(task)
        return np.array(left, dtype=np.intp)

    def _place(self, statement: Statement, queue: QueueInfo, job_row: int, task: int, node: int) -> bool:
        state, placement, shape_id = self._state, self._placement, int(self._state.tasks.shape[task])
        if not self._hooks.allocatable(queue, state.task_of(shape_id), 1):
            return False
        ranking = placement.ranking(shape_id, placement.node_sets.index_of(node))
        if ranking.ranked[node] > -np.inf:
            statement.allocate(job_row, shape_id, np.array([task]), np.array([node]))
            return True
        if state.looks_ahead and ranking.future[node] > -np.inf:
            statement.pipeline(job_row, shape_id, np.array([task]), np.array([node]))
            return True
        return False
