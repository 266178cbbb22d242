"""Plans of evictions, at the moment of their decision: they make the room that they are for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.simulation.insight import Basis, Shown
from tests.simulation.invariants.invariant import Invariant
from tests.simulation.loop import Process
from tests.simulation.truth import NOTHING, Amounts, PodTruth
from volcano_py.model.decisions import Bind, Decision, Evict, Nominate

if TYPE_CHECKING:
    from tests.simulation.world import World


@dataclass(slots=True)
class _Cycle:
    """What one cycle has decided so far: nodes by uid of the pod."""

    shown: Shown
    basis: Basis
    placed: dict[str, str] = field(default_factory=dict)
    """Bound or nominated."""
    evicted: dict[str, str] = field(default_factory=dict)


class PlansMakeRoom(Invariant):
    """A plan of evictions makes room for its beneficiary, which then has its minimum.

    This is looked at when the plan is decided, with the numbers of its snapshot, so no fault is an excuse:

    - On each node of a victim, the pods that the cycle binds or nominates to it fit when its victims are gone.
    - With its pods that have nodes, are bound, or are nominated, the beneficiary has its minimum.

    A victim on a node that has room may be needed all the same, if a queue is at its limit.
    """

    name = "plans make room"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._cycles: dict[Process, _Cycle] = {}

    def decided(self, process: Process, shown: Shown, batch: Sequence[Decision]) -> None:
        """Add a batch to what its cycle has decided, and look at its plans."""
        if shown.basis is None:
            return
        cycle = self._cycles.get(process)
        if cycle is None or cycle.shown is not shown:
            cycle = self._cycles[process] = _Cycle(shown, shown.basis())
        for decision in batch:
            if isinstance(decision, Bind | Nominate):
                cycle.placed[decision.task.uid] = decision.node
            elif isinstance(decision, Evict):
                cycle.evicted[decision.task.uid] = decision.node
        plans = [each for each in batch if isinstance(each, Evict) and each.beneficiary is not None]
        for node in dict.fromkeys(each.node for each in plans):
            self._look_at_room(process, cycle, node)
        for group in dict.fromkeys(str(each.beneficiary) for each in plans):
            self._look_at_minimum(process, cycle, group)

    def _look_at_room(self, process: Process, cycle: _Cycle, node: str) -> None:
        room = Amounts(*map(int, cycle.basis.free.get(node, NOTHING)))
        for pod in self._on(cycle.evicted, node):
            room = room.plus(pod.request)
        held = NOTHING
        for pod in self._on(cycle.placed, node):
            held = held.plus(pod.request)
        if beyond := held.beyond(room):
            self.violated(f"{process.name} evicts pods from {node} and places others there that do not fit: {beyond}")

    def _look_at_minimum(self, process: Process, cycle: _Cycle, group: str) -> None:
        pods = self.world.truth.pods
        placed = sum(pods[uid].group == group for uid in {**cycle.basis.nominated, **cycle.placed})
        lacks = cycle.basis.missing.get(group, 0) - placed
        if lacks > 0:
            self.violated(f"{process.name} evicts pods for {group}, which still lacks {lacks} of its minimum")

    def _on(self, nodes: Mapping[str, str], node: str) -> list[PodTruth]:
        return [self.world.truth.pods[uid] for uid, its in nodes.items() if its == node]
