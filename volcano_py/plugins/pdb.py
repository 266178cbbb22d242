"""Pdb: no eviction breaks a PodDisruptionBudget.

Victims of every action are checked, in the order in which they would go: one goes only as long as each budget that
covers it still allows a disruption. What this session evicts already and what terminates count against the budget:
the number in its status may be older than they are.

(Volcano: plugins/pdb. There a budget is counted anew for every node, so that a plan over several nodes may break it;
the actions for gangs do not ask; an empty selector covers nobody and a pod without labels is never a victim; and in the
action shuffle budgets are a reason to evict what they allow. Here a budget is only ever a filter. Where no other plugin
votes at all, whoever it does not cover may go, as there; but in a later tier than others, where all may go in Volcano
as soon as the others let nobody, it has no vote: any job would take from any other, without end.)
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from volcano_py.framework.contract.extension_points import (
    Preemptable,
    Preemptor,
    Purpose,
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
    """Budgets for disruptions."""

    name = "pdb"
    counts = frozenset({"preemptable", "reclaimable", "protected", "unified_evictable"})

    def on_session_open(self, ssn: State) -> None:
        """Note whose budgets they are, and which votes are this plugin's alone."""
        self._ssn = ssn
        self._alone = {
            Purpose.PREEMPT: Preemptable in self.sole,
            Purpose.RECLAIM: Reclaimable in self.sole,
        }

    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools | None:
        """Let all go if nobody else votes; what budgets allow of those who would go is for the filter to say."""
        return np.ones(len(candidates), dtype=bool) if self._alone[Purpose.PREEMPT] else None

    def reclaimable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools | None:
        """Let all go if nobody else votes; what budgets allow of those who would go is for the filter to say."""
        return np.ones(len(candidates), dtype=bool) if self._alone[Purpose.RECLAIM] else None

    def unified_evictable(self, preemptor: Preemptor, candidates: VictimCandidates) -> None:
        """Have no opinion; the plugin answers here so that its filter counts."""

    def victim_tasks(self, candidates: VictimCandidates) -> Bools:
        """Name nobody; the plugin answers here so that its filter counts."""
        return np.zeros(len(candidates), dtype=bool)

    def protected(self, preemptor: Preemptor | None, candidates: VictimCandidates) -> Bools:
        """Return for which one of its budgets allows no more when those before it in its group are gone."""
        found = np.zeros(len(candidates), dtype=bool)
        starts, covering = self._covering
        many = starts[candidates.rows + 1] - starts[candidates.rows]
        if not many.any():
            return found
        # One entry for each candidate and budget that covers it.
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
        for row in leaving[starts[leaving + 1] > starts[leaving]].tolist():  # the few that leave and are covered
            left[covering[starts[row] : starts[row + 1]]] -= 1
        return left

    @cached_property
    def _budgets(self) -> list[BudgetRecord]:
        return [budget for budgets in self._ssn.facts.budgets.values() for budget in budgets]

    @cached_property
    def _covering(self) -> tuple[Rows, Rows]:
        """For task row t: ``covering[starts[t]:starts[t + 1]]`` are the budgets that cover it, by their number."""
        numbers: dict[str, list[int]] = {}
        for number, budget in enumerate(self._budgets):
            numbers.setdefault(budget.namespace, []).append(number)
        records = self._ssn.tasks.records
        counts = np.zeros(len(records) + 1, dtype=np.intp)
        covering: list[int] = []
        # A Python loop over tasks, once a session in which anything may be evicted: labels are in their records.
        for row, record in enumerate(records) if numbers else ():
            if record is None or record.namespace not in numbers:
                continue
            labels: Mapping[str, str] = record.label_map
            mine = [n for n in numbers[record.namespace] if self._budgets[n].covers(record.name, labels)]
            covering += mine
            counts[row + 1] = len(mine)
        return np.cumsum(counts), np.array(covering, dtype=np.intp)
