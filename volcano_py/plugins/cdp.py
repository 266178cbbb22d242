"""Cdp: a pod that has just been placed is left alone for a while (cool-down protection).

``volcano.sh/cooldown-time`` of the pod, a label or else an annotation, is a duration. Until that long after the pod was
scheduled (its condition PodScheduled=True) it is no victim of preempt and reclaim, if it runs. Other actions do not
ask. (Volcano: plugins/cdp.)
"""

import numpy as np

from volcano_py.framework.contract.extension_points import Preemptable, Preemptor, Reclaimable
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools
from volcano_py.model.objects import TaskTrait


class Cdp(Plugin, Preemptable, Reclaimable):
    """Protection of pods that were placed a moment ago."""

    name = "cdp"
    counts = frozenset({"preemptable", "reclaimable"})

    def on_session_open(self, ssn: State) -> None:
        """Note the time."""
        self._now = ssn.now
        self._tasks = ssn.tasks

    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Let go what has cooled down."""
        return self._cooled(candidates)

    def reclaimable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Let go what has cooled down."""
        return self._cooled(candidates)

    def _cooled(self, candidates: VictimCandidates) -> Bools:
        cooled = np.ones(len(candidates), dtype=bool)
        # A Python loop over the candidates that have a cool-down time: it is in their records.
        for place in np.flatnonzero(candidates.traits & TaskTrait.COOLS_DOWN.value).tolist():
            cooled[place] = self._tasks.record(int(candidates.rows[place])).protected_until <= self._now
        return cooled
