"""What is assumed holds at that moment, by all that the scheduler has been shown until then."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.simulation import insight, objects
from tests.simulation.insight import Shown, Versions
from tests.simulation.invariants.invariant import Invariant
from tests.simulation.loop import Process
from volcano_py.apiserver.store import Event
from volcano_py.daemon.daemon import SchedulerDaemon
from volcano_py.model.decisions import Bind

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World


class NoStaleBind(Invariant):
    """A bind is accepted only if it fits what was shown since its decision.

    Its node is there, not cordoned, and has room for what it holds and is about to hold. Its PodGroup has the minimum
    that the decision went by. This rests on the versions that the reflectors have delivered and on the true state of
    these versions; the cache is not asked.
    """

    name = "no stale bind"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._cordoned: set[int] = set()  # versions of nodes
        self._minimum: dict[str, int] = {}  # by version of the PodGroup
        self._groups: dict[Process, Versions] = {}  # at the snapshot

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Keep what nodes and PodGroups were in each version."""
        if resource == objects.NODES and event.stored.obj.get("spec", {}).get("unschedulable"):
            self._cordoned.add(event.rv)
        elif resource == objects.GROUPS:
            self._minimum[str(event.rv)] = event.stored.obj["spec"].get("minMember", 1)

    def cycle(self, process: Process, shown: Shown) -> None:
        """Keep the versions of PodGroups."""
        daemon = self._daemon(process)
        self._groups[process] = {} if daemon is None else dict(insight.known(daemon, objects.GROUPS))

    def assumed(self, process: Process, shown: Shown, binds: Sequence[Bind]) -> None:
        """Compare accepted binds with what is shown now."""
        daemon = self._daemon(process)
        if daemon is None:
            return
        for node in sorted({bind.node for bind in binds}):
            version = shown.node(node)
            if not version or version in self._cordoned:
                self.violated(
                    f"{process.name} binds to {node}, which it knows to be {'cordoned' if version else 'gone'}"
                )
            elif beyond := self._beyond(daemon, shown, node):
                self.violated(f"{process.name} binds to {node}, and knows that it has too little room: {beyond}")
        now = insight.known(daemon, objects.GROUPS)
        for job in sorted({bind.job for bind in binds}, key=str):
            before, after = self._groups.get(process, {}).get(str(job)), now.get(str(job))
            if before is None or after is None or before[0] != after[0]:
                continue
            if self._minimum.get(before[1]) != self._minimum.get(after[1]):
                self.violated(f"{process.name} binds pods of {job}, and knows that its minimum has changed meanwhile")

    def _beyond(self, daemon: SchedulerDaemon, shown: Shown, node: str) -> str:
        truth = self.world.truth
        room = truth.room.get(shown.node(node))
        if room is None:
            return ""
        uids = {entry.task.uid for entry in daemon.cache.binds.ledger if entry.node == node}
        uids |= {uid for key, (uid, version) in shown.pods.items() if _on(truth.pods.get(uid), node, int(version))}
        held = None
        for uid in sorted(uids):
            pod = truth.pods[uid]
            if pod.there and not pod.ended:
                held = pod.request if held is None else held.plus(pod.request)
        return "" if held is None else held.beyond(room)

    def _daemon(self, process: Process) -> SchedulerDaemon | None:
        for machine in self.world.schedulers():
            if machine.process is process:
                return insight.daemon_of(machine)
        return None


def _on(pod: object, node: str, version: int) -> bool:
    return pod is not None and pod.node == node and version >= pod.bound_version  # type: ignore[attr-defined]
