"""Binds: one per pod, as decided, to nodes that are there, and never beyond what a node has."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.simulation import insight, objects
from tests.simulation.insight import Shown
from tests.simulation.invariants.invariant import Invariant
from tests.simulation.loop import Process
from tests.simulation.truth import PodTruth
from volcano_py.apiserver.store import Event
from volcano_py.model.decisions import Bind, Decision

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

_TIMEOUT_S: Final = 10.0
"""The deadline of a Binding. What takes effect later surprises its sender as much as a bind of somebody else."""


class OneBinding(Invariant):
    """A pod gets one node in its life, by one successful Binding, and that Binding was decided for this very pod.

    A pod that replaces another one under its name has another uid. Rests on the true state alone, and on what the
    schedulers have decided.
    """

    name = "one binding per pod"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._bound: dict[str, str] = {}
        self._decided: dict[tuple[Process, str], set[str]] = {}

    def decided(self, process: Process, shown: Shown, batch: Sequence[Decision]) -> None:
        """Note the nodes that were chosen for each pod."""
        for decision in batch:
            if isinstance(decision, Bind):
                self._decided.setdefault((process, decision.task.uid), set()).add(decision.node)

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Look at the node of each pod."""
        if resource != objects.PODS or event.type == "DELETED":
            return
        pod = event.stored.obj
        node, uid = pod["spec"].get("nodeName", ""), pod["metadata"]["uid"]
        before = self._bound.get(uid, "")
        binds = asked is not None and asked.resource == "pods/binding"
        if before and (node != before or binds):
            self.violated(f"pod {event.stored.key} was on {before} and is bound to {node or 'no node'} now")
        if asked is not None and binds and node not in self._decided.get((asked.client, uid), ()):
            self.violated(
                f"{asked.client.name} has bound {event.stored.key} ({uid}) to {node} without having decided so"
            )
        if node:
            self._bound[uid] = node


class _Decision(NamedTuple):
    shown: Shown
    node: str


class _Decisions:
    """What each process has decided about each pod, and what it had been shown then."""

    def __init__(self) -> None:
        self._found: dict[tuple[Process, str], list[_Decision]] = {}

    def add(self, process: Process, shown: Shown, batch: Sequence[Decision]) -> None:
        """Take a batch."""
        for decision in batch:
            if isinstance(decision, Bind):
                self._found.setdefault((process, decision.task.uid), []).append(_Decision(shown, decision.node))

    def behind(self, asked: "Asked", uid: str) -> _Decision | None:
        """Return the decision that a Binding carries out: the last one before it was sent."""
        found = self._found.get((asked.client, uid), [])
        before = bisect_right(found, asked.sent_at, key=lambda each: each.shown.at)
        return found[before - 1] if before else None


class WithinAllocatable(Invariant):
    """Our binds never put more on a node than it has, as far as the scheduler that decided them could know.

    The sum is made when a bind takes effect. It counts

    - what the same process has bound before: it knows its own binds, also before a watch shows them. What took effect
      when its sender had given it up already counts as somebody else's;
    - what others have bound, another scheduler of ours included, if the watch had shown that at the snapshot of the
      decision.

    Pods that have ended, and pods that are gone, do not count; terminating ones do. The node has what the watch had
    shown at the snapshot. So nothing counts that it could not know, and its own binds always count. A pod of its own
    that took effect first may have been decided later, when the node had grown: then the node has what was shown for
    that decision, which knew of both.
    """

    name = "no node above its allocatable"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._decisions = _Decisions()
        self._carried_out: dict[tuple[Process, str], _Decision] = {}  # by uid of the pod
        self._confirmed: dict[Process, set[str]] = {}  # uids of bound pods that were shown as bound once

    def cycle(self, process: Process, shown: Shown) -> None:
        """Note which binds the process has seen confirmed."""
        seen = self._confirmed.setdefault(process, set())
        pods = self.world.truth.pods
        for uid, version in shown.pods.values():
            pod = pods.get(uid)
            if pod is not None and pod.node and int(version) >= pod.bound_version:
                seen.add(uid)

    def decided(self, process: Process, shown: Shown, batch: Sequence[Decision]) -> None:
        """Keep the decisions."""
        self._decisions.add(process, shown, batch)

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Add up the node of a pod that was bound just now."""
        if resource != objects.PODS or asked is None or asked.resource != "pods/binding":
            return
        truth = self.world.truth
        pod = truth.pods[event.stored.obj["metadata"]["uid"]]
        decision = self._decisions.behind(asked, pod.uid)
        if decision is None or _too_late(pod):
            return
        self._carried_out[asked.client, pod.uid] = decision
        seen = self._confirmed.get(asked.client, set())
        held, shown = pod.request, [decision.shown]
        for other in truth.on_node.get(pod.node, {}).values():
            if other is not pod and _counts(other, asked.client, decision.shown, seen):
                held = held.plus(other.request)
                later = self._carried_out.get((asked.client, other.uid))
                if later is not None and later.shown.at > decision.shown.at:
                    shown.append(later.shown)
        rooms = [truth.room.get(each.node(pod.node)) for each in shown]
        if None in rooms:
            return  # see BindsToOpenNodes
        beyond = [held.beyond(room) for room in rooms if room is not None]
        if all(beyond):
            self.violated(f"{asked.client.name} has bound {event.stored.key} to {pod.node}: {beyond[0]} are held now")


def _too_late(pod: PodTruth) -> bool:
    return pod.bound_at - pod.bound_sent_at >= _TIMEOUT_S


def _counts(other: PodTruth, binder: Process, shown: Shown, seen: set[str]) -> bool:
    """Say whether a process knew that a pod was on its node, or was about to be."""
    if shown.pod(other.key, other.uid) >= other.bound_version:
        return True
    # A list with older state may take back what was shown before; who believes it is not to blame.
    return other.binder is binder and not _too_late(other) and other.uid not in seen


class BindsToOpenNodes(Invariant):
    """Nobody binds to a node that it was never shown, or of which it was shown that it is gone or cordoned.

    A Binding is built after its decision, after the answer to an earlier attempt, and at most its deadline before it is
    sent. A node that the sender's watch had shown to be closed before the latest of these moments is no place for it.
    """

    name = "binds go to open nodes"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._decisions = _Decisions()
        self._answered: dict[tuple[Process, str], float] = {}
        self._closed: dict[Process, dict[str, float]] = {}  # node -> since when it is known to be gone or cordoned

    def cycle(self, process: Process, shown: Shown) -> None:
        """Note which nodes the process knows to be closed."""
        closed = self._closed.setdefault(process, {})
        for index in range(len(self.world.plan.nodes)):
            if self._open(shown, name := f"node-{index}"):
                closed.pop(name, None)
            else:
                closed.setdefault(name, shown.at)

    def _open(self, shown: Shown, node: str) -> bool:
        version = shown.node(node)
        return bool(version) and version not in self.world.truth.cordoned

    def decided(self, process: Process, shown: Shown, batch: Sequence[Decision]) -> None:
        """Look whether the nodes are open."""
        self._decisions.add(process, shown, batch)
        for decision in batch:
            if isinstance(decision, Bind) and not self._open(shown, decision.node):
                self.violated(f"{process.name} decides to bind {decision.task} to {decision.node}, gone or cordoned")

    def answered(self, asked: "Asked", status: int) -> None:
        """Note when attempts were answered."""
        if asked.resource == "pods/binding":
            self._answered[asked.client, asked.key] = self.world.loop.time()

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Look at a bind that takes effect."""
        if resource != objects.PODS or asked is None or asked.resource != "pods/binding":
            return
        pod = event.stored.obj
        node = pod["spec"].get("nodeName", "")
        since = self._closed.get(asked.client, {}).get(node)
        decision = self._decisions.behind(asked, pod["metadata"]["uid"])
        if since is None or decision is None:
            return
        earlier = self._answered.get((asked.client, asked.key), 0.0)
        built_at = max(decision.shown.at, asked.sent_at - _TIMEOUT_S, earlier if earlier < asked.sent_at else 0.0)
        if since < built_at:
            self.violated(
                f"{asked.client.name} has bound {event.stored.key} to {node}, {built_at - since:.1f} s after"
                " it was shown that the node is gone or cordoned"
            )


class LeadersKnowAllBinds(Invariant):
    """The first cycle of a leader knows every pod that was on a node when its acquisition of the lease was accepted.

    What was bound later may reach it later. A list from a server with older state proves nothing, so a leader that may
    have got one is not to blame.
    """

    name = "leaders know all binds"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._acquired: dict[Process, float] = {}
        self._began: set[Process] = set()

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Note who has acquired a lease."""
        if resource == objects.LEASES and asked is not None and event.stored.obj["spec"].get("holderIdentity"):
            self._acquired.setdefault(asked.client, self.world.loop.time())

    def cycle(self, process: Process, shown: Shown) -> None:
        """Look at the first cycle of each leader."""
        if process in self._began:
            return
        self._began.add(process)
        since = self._acquired.get(process)
        if since is None:
            self.violated(f"{process.name} decides without having acquired the lease")
            return
        if self.world.servers.stale_lists_since(since - 1.0):
            return
        machine = self.world.machines[process.name]
        daemon = insight.daemon_of(machine) if machine.process is process else None
        unreadable = frozenset() if daemon is None else insight.unreadable(daemon, objects.PODS)
        for held in self.world.truth.on_node.values():
            for pod in held.values():
                if pod.key in unreadable:
                    continue  # nothing goes to the node of such a pod
                if pod.bound_at < since and shown.pod(pod.key, pod.uid) < pod.bound_version:
                    self.violated(f"{process.name} begins to decide and does not know that {pod.key} is on {pod.node}")
