"""Cdp: a pod that has just been placed is protected from eviction for a while (cool-down protection).

The pod's label or, without it, annotation ``volcano.sh/cooldown-time`` is a duration. A running pod is no victim of
preempt and reclaim until this time has passed since it was scheduled (its condition PodScheduled=True). Other actions
do not ask this plugin. (Volcano: plugins/cdp.)

In Volcano, if this plugin's tier allows no victim, a later tier decides alone and may choose a protected pod. In a
later tier, this plugin allows every victim whom the earlier tiers do not. Here a protected pod is never evicted,
whatever the tiers, and the vote of the plugin counts only beside others that protect (`Plugin.protects`).
"""

from functools import cached_property

import numpy as np

from volcano_py.framework.contract.extension_points import Preemptable, Preemptor, Reclaimable, VictimFilter
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools
from volcano_py.model.objects import TaskTrait


class Cdp(Plugin, Preemptable, Reclaimable, VictimFilter):
    """Protection of recently placed pods."""

    name = "cdp"
    protects = True
    counts = frozenset({"preemptable", "reclaimable", "protected"})

    def on_session_open(self, ssn: State) -> None:
        """Keep the time of the session and its tasks."""
        self._now = ssn.now
        self._tasks = ssn.tasks

    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting tasks whose cool-down is over."""
        return ~self.protected(preemptor, candidates)

    def reclaimable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting tasks whose cool-down is over."""
        return ~self.protected(preemptor, candidates)

    def protected(self, preemptor: Preemptor | None, candidates: VictimCandidates) -> Bools:
        """Return the tasks whose cool-down is not over."""
        return self._cooling[candidates.rows]

    @cached_property
    def _cooling(self) -> Bools:
        """The tasks whose cool-down is not over, shape (n_tasks,)."""
        found = np.zeros(len(self._tasks.records), dtype=bool)
        # A Python loop over the tasks with a cool-down time, which is in their records; once per session, if asked.
        for row in np.flatnonzero(self._tasks.traits & TaskTrait.COOLS_DOWN.value).tolist():
            record = self._tasks.records[row]
            found[row] = record is not None and record.protected_until > self._now
        return found
