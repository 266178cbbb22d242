"""A plan of evictions for a whole gang: bundles are evicted until the minimum of the gang has nodes.

Bundles are taken in order: safe tasks one by one, and whole jobs at once. First enough bundles are taken that their
resources and the free ones together cover the need of the gang. Then more are taken until the gang has its minimum on
nodes as allocate would choose them. If no number of bundles is enough, safe tasks are searched node by node, as for
single tasks. The proof and the trimming are those of every plan (`framework.evicting.plan`); the unit that is put back
is a safe task or a whole job.

(Volcano: gangpreempt and gangreclaim. They place all waiting tasks, also those beyond the minimum, and evict every
victim that was taken on the way.)
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from volcano_py.framework.contract.extension_points import Preemptor, Purpose
from volcano_py.framework.contract.plugin import PluginFailed
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.evicting.bundles import Bundle, Ranks, bundles
from volcano_py.framework.evicting.displaced import candidates_for
from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.evicting.minimum import greatest_gains
from volcano_py.framework.evicting.plan import PlaceGang, Plan
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.statement import Cause
from volcano_py.model.arrays import Floats, Rows
from volcano_py.model.resources import EPSILON


class GangPlans:
    """The plans that an action for gangs makes for one job."""

    def __init__(
        self,
        eviction: Eviction,
        purpose: Purpose,
        queue: QueueInfo,
        job: JobInfo,
        candidates: VictimCandidates,
        ranks: Ranks,
        *,
        allow_whole: bool,
        may_preempt: Callable[[Rows], bool] = lambda _: True,
        place_gang: PlaceGang | None = None,
    ) -> None:
        """Take the preemptor, the candidates grouped by node, and the order of victims.

        ``may_preempt`` says whether all of some tasks may be placed by evicting others. ``place_gang`` is for gangs
        that are placed by topology (`Plan`).
        """
        self._eviction = eviction
        self._place_gang = place_gang
        self._purpose, self._queue, self._job = purpose, queue, job
        self._candidates = candidates_for(eviction, job, candidates)
        self._ranks = ranks
        self._allow_whole = allow_whole
        self._may_preempt = may_preempt

    def make(self, tasks: Rows, cause: Cause) -> int:
        """Evict tasks so that these tasks of the job complete its minimum, in order; return how many get nodes.

        If the job already has its minimum, each task gets a plan of its own.
        """
        missing = self._eviction.missing_once_free(self._job)
        if missing:
            return self._make(tasks, missing, cause)
        placed = 0
        # A Python loop over the tasks of a job without a gang, as long as it starves.
        for row in range(len(tasks)):
            if not self._eviction.starving(self._job) or self._eviction.must_stop():
                break
            placed += self._make(tasks[row : row + 1], 1, cause)
        return placed

    def _make(self, tasks: Rows, missing: int, cause: Cause) -> int:
        eviction, queue, job = self._eviction, self._queue, self._job
        if not self._may_preempt(tasks[:missing]):
            return 0
        preemptor = Preemptor(self._purpose, job, queue, gains=greatest_gains(eviction.state, job, tasks, missing))
        need = eviction.state.classes.requests[:, eviction.state.tasks.shape[tasks[:missing]]].sum(axis=1)
        candidates = self._candidates.running_or_bound()  # not those evicted for an earlier task of the job
        units = list(_units(bundles(eviction, preemptor, candidates, need, self._ranks, allow_whole=self._allow_whole)))
        plan = Plan(
            eviction,
            self._purpose,
            queue,
            job,
            candidates,
            place_gang=self._place_gang,
        )
        try:
            enough = _fewest(plan, units, _first_enough(eviction, units, need), tasks)
            if enough is not None:
                return plan.conclude(cause, _merged(units[:enough]))
        except PluginFailed:
            plan.abandon()
            raise
        plan.abandon()
        return 0 if self._place_gang is not None else self._make_node_by_node(tasks, candidates, cause)

    def _make_node_by_node(self, tasks: Rows, candidates: VictimCandidates, cause: Cause) -> int:
        """Search safe tasks on one node after the other, whichever tasks of a job are there.

        Bundles, in contrast, fix the tasks that a job can lose without looking at their nodes.
        """
        plan = Plan(
            self._eviction,
            self._purpose,
            self._queue,
            self._job,
            candidates,
            for_gang=True,
        )
        shapes = self._eviction.state.tasks.shape
        try:
            plan.fill(tasks, lambda shape_id, count: self._may_preempt(tasks[shapes[tasks] == shape_id][:count]))
            return plan.conclude(cause)
        except PluginFailed:
            plan.abandon()
            raise


def _units(found: Iterable[Bundle]) -> Iterable[Bundle]:
    """Yield what is evicted at a time: a safe task, or all that is left of a job."""
    for one in found:
        if one.whole:
            yield one
        else:
            yield from (Bundle(one.job, one.rows[place : place + 1], whole=False) for place in range(len(one.rows)))


def _merged(units: Sequence[Bundle]) -> list[Rows]:
    """Return the units that may be put back: if a whole job is evicted, its safe tasks are one unit with the rest."""
    wholes: dict[int, list[Rows]] = {unit.job: [] for unit in units if unit.whole}
    found: list[Rows] = []
    for unit in units:
        wholes.get(unit.job, found).append(unit.rows)
    return [*found, *(np.concatenate(parts) for parts in wholes.values())]


def _first_enough(eviction: Eviction, units: Sequence[Bundle], need: Floats) -> int:
    """Return how many units cover the need, summed over all nodes; all of them if even they do not."""
    open_ = ~eviction.placement.node_sets.shut
    free = (eviction.state.nodes.idle + eviction.state.nodes.releasing)[:, open_].sum(axis=1)
    amounts = np.array(
        [
            free,
            *(eviction.state.classes.requests[:, eviction.state.tasks.shape[unit.rows]].sum(axis=1) for unit in units),
        ]
    )
    enough = (np.cumsum(amounts, axis=0) > need - EPSILON).all(axis=1)
    return int(enough.argmax()) if enough.any() else len(units)


def _fewest(plan: Plan, units: Sequence[Bundle], least: int, tasks: Rows) -> int | None:
    """Return the smallest number of units, from ``least`` on, with which the job gets its minimum; None if none does.

    It may be 0, because what is free or reserved for the job may be enough. The search doubles its steps and then
    halves them: more room never hurts, except where pods keep others away. The plan is left with that number.
    """

    def enough(count: int) -> bool:
        victims = [unit.rows for unit in units[:count]]
        return plan.retry(np.concatenate(victims) if victims else np.zeros(0, dtype=np.intp), tasks)

    failed, count, step = least - 1, least, 1
    while not enough(count):
        if count == len(units):
            return None
        failed, count, step = count, min(count + step, len(units)), step * 2
    best = count
    while best - failed > 1:
        middle = (best + failed) // 2
        if enough(middle):
            best = middle
        else:
            failed = middle
    enough(best)
    return best
