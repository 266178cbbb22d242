"""Evictions: nobody is evicted for nothing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from tests.simulation import objects
from tests.simulation.insight import Shown
from tests.simulation.invariants.invariant import Invariant
from tests.simulation.loop import Process
from volcano_py.apiserver.store import Event
from volcano_py.model.decisions import Decision, Evict

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

_ROOM: Final = frozenset(
    {
        *("node vanishes", "node cordoned", "node shrinks", "node tainted", "node relabelled", "zone fails"),
        *("pod vanishes", "pod replaced under its name", "foreign pod", "foreign binder", "during a decision"),
        *("pod leaves its group", "minimum changes", "group vanishes", "group edited at a bind", "configuration"),
        *("kill", "kill at a write", "kill of both schedulers", "orderly end", "rolling update"),
        *("pause", "pause at a write", "pause as it dials", "isolation", "partition", "half-open connections"),
    }
)
"""Faults that may take away the room or the beneficiary, or the plan of a scheduler for both."""


_KNOWABLE: Final = frozenset({404, 409})
"""How a bind is refused whose pod is gone, or has a node."""

_DECIDED_S: Final = 1.0
"""How long before an eviction its cycle began at most."""


class _Decided(NamedTuple):
    """The decision of an eviction, and what its scheduler did not know."""

    evict: Evict
    at: float
    was_late: bool
    """Whether a pod of the beneficiary had ended or was gone, and its scheduler had not been shown that."""
    unseen: frozenset[str]
    """The PodGroups of the pods that were there, and that its scheduler had not been shown."""


@dataclass(slots=True)
class _Eviction:
    decided: _Decided
    at: float
    victim: str
    of: str
    """The PodGroup of the victim."""

    @property
    def beneficiary(self) -> str:
        """Return the PodGroup that gets the room, by ``namespace/name``."""
        return str(self.decided.evict.beneficiary)


@dataclass(slots=True)
class _Placed:
    """A pod that got a node."""

    group: str
    priority: int
    created_at: float
    """When it and its PodGroup were there."""
    at: float


class EvictionsHelp(Invariant):
    """Whoever is evicted makes room for somebody who is then placed.

    After the decision of an eviction, a pod of its beneficiary gets a node until the system rests. Excused is only what
    a later event explains: a fault that takes away the room, the beneficiary or the plan; a server that refused the
    bind which the eviction was for (other pods of the beneficiary may have ended since); a queue that was closed or
    opened later; work that was submitted later and may come first; pods or PodGroups that were made later, as by the
    restart of a job; a PodGroup that was made again while its pods ran, because its queue seemed to hold less until
    then; pods of other queues that were made or shown later, as its queue may deserve less since then; pods of higher
    priority that waited beyond the minimum of their job (they evict nobody, but come first when there is room); or a
    change of the beneficiary that was not shown before: its end, that of a pod of it, or another minimum.
    """

    name = "evictions help"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._decided: dict[tuple[Process, str], _Decided] = {}
        self._done: list[_Eviction] = []
        self._changed: dict[str, float] = {}  # group -> when a pod of it was gone or ended, or it asked for more, last
        self._specs: dict[str, object] = {}  # of groups
        self._ended: set[str] = set()  # uids of pods
        # group -> key and uid of each pod that has ended or is gone -> the version since when, endless if it is gone
        self._ends: dict[str, dict[tuple[str, str], float]] = {}
        self._placed: dict[str, float] = {}  # group -> when one of its pods got a node, or was refused one, last
        self._created: dict[str, float] = {}  # uid of a pod -> when it was made
        self._there: dict[str, str] = {}  # uid of a pod that is there -> its key
        self._groups: dict[str, float] = {}  # group -> when it was made
        self._returned: list[float] = []  # when a group was made whose pods had nodes already
        self._others: list[_Placed] = []

    def decided(self, process: Process, shown: Shown, batch: Sequence[Decision]) -> None:
        """Note for whom pods are evicted."""
        for decision in batch:
            if isinstance(decision, Evict):
                ends = self._ends.get(str(decision.beneficiary), {})
                late = any(0 < shown.pod(*pod) < since for pod, since in ends.items())
                pods = self.world.truth.pods
                unseen = frozenset(pods[uid].group for uid, key in self._there.items() if not shown.pod(key, uid))
                self._decided[process, decision.task.uid] = _Decided(decision, self.world.loop.time(), late, unseen)

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Look at pods that are deleted by a scheduler, and at pods that are bound."""
        at = self.world.loop.time()
        if resource == objects.GROUPS:
            spec = event.stored.obj["spec"]
            if self._specs.get(event.stored.key, spec) != spec:
                self._changed[event.stored.key] = at
            self._specs[event.stored.key] = spec
        if resource == objects.GROUPS and event.type == "ADDED":
            self._groups[event.stored.key] = at
            if any(pod.group == event.stored.key and pod.node for pod in self.world.truth.pods.values()):
                self._returned.append(at)
        if resource != objects.PODS:
            return
        meta = event.stored.obj["metadata"]
        pod = self.world.truth.pods[meta["uid"]]
        if event.type == "DELETED":
            self._there.pop(pod.uid, None)
        if event.type == "ADDED":
            self._created[pod.uid] = at
            self._there[pod.uid] = pod.key
        elif event.type == "DELETED" or (pod.ended and pod.uid not in self._ended):
            self._ended.add(pod.uid)
            group = f"{meta['namespace']}/{pod.job}"
            self._changed[group] = at
            since = math.inf if event.type == "DELETED" else int(meta["resourceVersion"])
            self._ends.setdefault(group, {})[event.stored.key, pod.uid] = since
        if asked is None:
            return
        if asked.resource == "pods/binding":
            group = f"{meta['namespace']}/{pod.job}"
            self._placed[group] = at
            created_at = max(self._created[meta["uid"]], self._groups.get(group, 0.0))
            self._others.append(_Placed(group, pod.priority, created_at, at))
        elif asked.verb == "delete" and asked.client.name.startswith("scheduler"):
            decided = self._decided.pop((asked.client, pod.uid), None)
            if decided is None:
                if not pod.terminating:
                    self.violated(f"{asked.client.name} has deleted {pod.key} without having decided so")
            elif decided.evict.beneficiary is not None:
                self._done.append(_Eviction(decided, at, pod.key, f"{meta['namespace']}/{pod.job}"))

    def answered(self, asked: "Asked", status: int) -> None:
        """Look at binds that the server refuses, but not for what the scheduler should have known."""
        if asked.resource == "pods/binding" and status >= 400 and status not in _KNOWABLE:
            namespace, _, name = asked.key.partition("/")
            pod = self.world.servers.get(objects.PODS, name, namespace)
            if pod is not None:
                group = f"{namespace}/{self.world.truth.pods[pod['metadata']['uid']].job}"
                self._placed[group] = self.world.loop.time()

    def at_rest(self) -> None:
        """Look for beneficiaries that were not placed."""
        for one in self._done:
            if self._placed.get(one.beneficiary, -1.0) < one.decided.at and not self._excused(one):
                self.violated(
                    f"{one.victim} was evicted ({one.decided.evict.action}) for {one.beneficiary},"
                    " which got no node after it"
                )

    def _excused(self, one: _Eviction) -> bool:
        plan = self.world.plan
        if any(strike.kind in _ROOM and strike.at + strike.lasts_s >= one.at - 1.0 for strike in plan.strikes):
            return True
        if any(work.at >= one.at - 1.0 for work in plan.work) or any(each.at >= one.at - 1.0 for each in plan.orders):
            return True
        if any(at >= one.at - _DECIDED_S for at in self._returned):
            return True
        priority = self._priority(one.beneficiary)
        if any(self._came_first(other, one, priority) for other in self._others):
            return True
        if one.decided.was_late or self._changed.get(one.beneficiary, -1.0) >= one.at:
            return True  # its pods went, as in a restart of its job, or ended, or it needs more: it is not complete
        queue = self._queue(one.beneficiary)
        return not queue or self._is_asked_elsewhere(one, queue)

    def _queue(self, group: str) -> str:
        """Return the queue of a PodGroup, an empty text if it is gone."""
        namespace, _, name = group.partition("/")
        found = self.world.servers.get(objects.GROUPS, name, namespace)
        return "" if found is None else str(found["spec"].get("queue") or "default")

    def _is_asked_elsewhere(self, one: _Eviction, queue: str) -> bool:
        """Say whether other pods were made in other queues since then: what a queue deserves may have become less.

        With ``capacity`` it does not: there the queue says what it deserves.
        """
        if "capacity" in self.world.plan.conf:
            return False
        since = one.at - _DECIDED_S
        groups = {self.world.truth.pods[uid].group for uid, at in self._created.items() if at >= since}
        return any(self._queue(group) not in ("", queue) for group in (groups | one.decided.unseen) - {one.of})

    def _priority(self, group: str) -> int:
        """Return the highest priority of a pod that this PodGroup has or had."""
        pods = (pod for pod in self.world.truth.pods.values() if pod.group == group)
        return max((pod.priority for pod in pods), default=0)

    @staticmethod
    def _came_first(other: _Placed, one: _Eviction, priority: int) -> bool:
        """Say whether a pod may have got the room: made after the eviction was decided, or of a higher priority."""
        return (
            other.group not in (one.beneficiary, one.of)
            and (
                other.created_at >= one.at - _DECIDED_S
                or other.group in one.decided.unseen
                or other.priority > priority
            )
            and other.at >= one.at
        )
