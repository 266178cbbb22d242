"""Pdb: no eviction violates a PodDisruptionBudget.

The plugin checks the victims of every action in the order of their eviction. A victim may be evicted only if every
budget that covers it still allows a disruption. Terminating pods and pods that this session has already evicted count
against the budget, because the number in its status may be older.

(Volcano: plugins/pdb.) Differences: Volcano counts a budget anew for every node, so a plan over several nodes may
violate it. Its gang actions do not ask this plugin. Its empty selector covers no pod, and a pod without labels is never
a victim. In its action shuffle a budget makes the plugin choose the pods that the budget allows to evict.

Here a budget only filters victims (`Plugin.protects`). If all plugins that vote are there to protect, all pods that the
budgets allow may be evicted, as in Volcano. Otherwise the vote of this plugin does not count. In Volcano it does: in
a later tier it allows every victim as soon as the earlier tiers allow none, so any job could preempt any other without
end.
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from volcano_py.framework.contract.extension_points import (
    Preemptable,
    Preemptor,
    Reclaimable,
    UnifiedEvictable,
    VictimFilter,
    VictimTasks,
)
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.victim_candidates import Earlier, VictimCandidates
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Ints, Rows
from volcano_py.model.facts import BudgetRecord
from volcano_py.model.statuses import TaskStatus


class Pdb(Plugin, Preemptable, Reclaimable, UnifiedEvictable, VictimTasks, VictimFilter):
    """Protection by pod disruption budgets."""

    name = "pdb"
    protects = True
    counts = frozenset({"preemptable", "reclaimable", "protected", "unified_evictable"})

    def on_session_open(self, ssn: State) -> None:
        """Keep the session."""
        self._ssn = ssn

    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting all candidates; `protected` then applies the budgets."""
        return np.ones(len(candidates), dtype=bool)

    def reclaimable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting all candidates; `protected` then applies the budgets."""
        return np.ones(len(candidates), dtype=bool)

    def unified_evictable(self, preemptor: Preemptor, candidates: VictimCandidates) -> None:
        """Do not vote; the plugin answers only so that its filter applies to these actions."""

    def victim_tasks(self, candidates: VictimCandidates) -> Bools:
        """Return no victims; the plugin answers only so that its filter applies to this action."""
        return np.zeros(len(candidates), dtype=bool)

    def protected(self, preemptor: Preemptor | None, candidates: VictimCandidates) -> Bools:
        """Return the candidates for which a budget is used up once those before them in their group are evicted."""
        found = np.zeros(len(candidates), dtype=bool)
        starts, covering = self._covering
        many = starts[candidates.rows + 1] - starts[candidates.rows]
        if not many.any():
            return found
        # One entry for each pair of a candidate and a budget that covers it.
        place = np.repeat(np.arange(len(candidates)), many)
        offset = np.arange(len(place)) - np.repeat(np.cumsum(many) - many, many)
        budget = covering[starts[candidates.rows[place]] + offset]
        earlier = Earlier(candidates.groups[place], budget).count()
        found[place[earlier >= self._left()[budget]]] = True
        return found

    def _left(self) -> Ints:
        """Return how many disruptions each budget still allows, shape (n_budgets,)."""
        starts, covering = self._covering
        leaving = np.flatnonzero(self._ssn.tasks.status == TaskStatus.RELEASING)
        left = np.array([budget.allowed for budget in self._budgets], dtype=np.int64)
        for row in leaving[starts[leaving + 1] > starts[leaving]].tolist():  # the few releasing tasks with a budget
            left[covering[starts[row] : starts[row + 1]]] -= 1
        return left

    @cached_property
    def _budgets(self) -> list[BudgetRecord]:
        return [budget for budgets in self._ssn.facts.budgets.values() for budget in budgets]

    @cached_property
    def _covering(self) -> tuple[Rows, Rows]:
        """``starts`` and ``covering``: the budgets of task row t are ``covering[starts[t]:starts[t + 1]]``."""
        numbers: dict[str, list[int]] = {}
        for number, budget in enumerate(self._budgets):
            numbers.setdefault(budget.namespace, []).append(number)
        records = self._ssn.tasks.records
        counts = np.zeros(len(records) + 1, dtype=np.intp)
        covering: list[int] = []
        # A Python loop over tasks, because labels are in their records; once per session, at the first use.
        for row, record in enumerate(records) if numbers else ():
            if record is None or record.namespace not in numbers:
                continue
            labels: Mapping[str, str] = record.label_map
            mine = [n for n in numbers[record.namespace] if self._budgets[n].covers(record.name, labels)]
            covering += mine
            counts[row + 1] = len(mine)
        return np.cumsum(counts), np.array(covering, dtype=np.intp)
