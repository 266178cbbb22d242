"""Cdp: a pod that has just been placed is protected from eviction for a while (cool-down protection).

The pod's label or, without it, annotation ``volcano.sh/cooldown-time`` is a duration. A running pod is no victim of
preempt and reclaim until this time has passed since it was scheduled (its condition PodScheduled=True). Other actions
do not ask this plugin. (Volcano: plugins/cdp.)
"""

import numpy as np

from volcano_py.framework.contract.extension_points import Preemptable, Preemptor, Reclaimable
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools
from volcano_py.model.objects import TaskTrait


class Cdp(Plugin, Preemptable, Reclaimable):
    """Protection of recently placed pods."""

    name = "cdp"
    counts = frozenset({"preemptable", "reclaimable"})

    def on_session_open(self, ssn: State) -> None:
        """Keep the time of the session and its tasks."""
        self._now = ssn.now
        self._tasks = ssn.tasks

    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting tasks whose cool-down is over."""
        return self._cooled(candidates)

    def reclaimable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting tasks whose cool-down is over."""
        return self._cooled(candidates)

    def _cooled(self, candidates: VictimCandidates) -> Bools:
        cooled = np.ones(len(candidates), dtype=bool)
        # A Python loop over the candidates with a cool-down time, which is in their records.
        for place in np.flatnonzero(candidates.traits & TaskTrait.COOLS_DOWN.value).tolist():
            cooled[place] = self._tasks.record(int(candidates.rows[place])).protected_until <= self._now
        return cooled
