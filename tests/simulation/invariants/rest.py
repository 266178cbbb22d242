"""What must hold once nothing happens any more."""

from typing import TYPE_CHECKING, Final

from tests.simulation import insight, objects, programs
from tests.simulation.invariants.invariant import Invariant
from volcano_py.apiserver.store import Event
from volcano_py.model.decisions import RecordEvent

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World


_EVENTS: Final = "events"
_TOLD_WITHIN_S: Final = 75.0
_NEXT_MINUTE_S: Final = 60.0
_REMINDING_JUMP_S: Final = 2100.0
"""With such a jump of a clock, a pod seems to have waited for 45 minutes, though no schedule lasts ten."""


class Rest(Invariant):
    """Without faults and without work, the system comes to rest: it writes nothing but leases."""

    name = "rest"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self.last_write_at = 0.0
        self.last_change_at = 0.0
        """When a pod was bound, a nomination ended, or a list showed a scheduler what it had missed."""
        self.last = ""
        self._nominated: set[str] = set()

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Note the time of every write, also of the cluster itself."""
        if resource == objects.PODS:
            self._note_nomination(event)
        if resource != objects.LEASES and not self._may_remind(resource, asked):
            self.last_write_at = self.world.loop.time()
            self.last = (
                f"{'cluster' if asked is None else asked.client.name} {event.type} {resource} {event.stored.key}"
            )

    def answered(self, asked: "Asked", status: int) -> None:
        """Count writes that are refused, too."""
        if asked.verb == "list" and status < 300 and asked.client.name.startswith("scheduler"):
            self.last_change_at = self.world.loop.time()
        if (
            asked.method != "GET"
            and not asked.resource.startswith("leases")
            and not self._may_remind(asked.resource, asked)
        ):
            self.last_write_at = self.world.loop.time()
            self.last = f"{asked.client.name} {asked.verb} {asked.resource}: {status}"
            if asked.resource == "pods/binding" and status < 300:
                self.last_change_at = self.last_write_at

    def _note_nomination(self, event: Event) -> None:
        pod = event.stored.obj
        uid, nominated = pod["metadata"]["uid"], bool(pod["status"].get("nominatedNodeName"))
        if uid in self._nominated and not nominated:
            self.last_change_at = self.world.loop.time()
        (self._nominated.add if nominated else self._nominated.discard)(uid)

    def _may_remind(self, resource: str, asked: "Asked | None") -> bool:
        """Return whether a write may repeat why a pod waits: a scheduler's event, after a great jump of a clock."""
        if resource != _EVENTS or asked is None or not asked.client.name.startswith("scheduler"):
            return False
        jumps = [abs(strike.amount) for strike in self.world.plan.strikes if strike.kind == "clock jump"]
        return sum(jumps) > _REMINDING_JUMP_S

    def limit(self, recovered_at: float) -> float:
        """Return until when something may be written, if all must be decided at ``recovered_at``.

        A bind and the end of a nomination change what others wait for, and so does a list, which a scheduler may have
        got only after a minute without an answer. Pods are told so within a minute, and PodGroups ten seconds later. If
        the work queues take a few objects only, a text that did not fit waits for the next minute.
        """
        told_at = max(recovered_at, min(self.last_change_at, recovered_at) + _TOLD_WITHIN_S)
        return told_at + (_NEXT_MINUTE_S if self.world.plan.narrow else 0.0)


class NothingLeftToDecide(Invariant):
    """A fresh full cycle over a rebuilt cache decides nothing: it binds and evicts nothing, and its texts are there.

    So no gang stays in part that such a cycle would complete, and what users read is what a scheduler that starts now
    would write. Events are not compared: they tell what happened, not what is. The cycle keeps the cool-downs of the
    leader, which forbid for some minutes that two jobs evict each other in turn; its clock, which may be wrong and by
    which these end; and its order of equal nodes and pods, on which it may depend whether a plan of evictions is found.
    """

    name = "nothing left to decide"

    def at_rest(self) -> None:
        """Run such a cycle."""
        leading = [machine for machine in self.world.schedulers() if insight.works(machine)]
        if not leading:
            self.violated("no scheduler leads")
            return
        cache, memory = programs.rebuilt(self.world.servers), programs.of_time(leading[0].running)
        now, seed = leading[0].clock.now(), programs.seed_of(leading[0].running)
        for decision in programs.fresh_cycle(cache, self.world.conf.text, now, memory, seed):
            if not isinstance(decision, RecordEvent) and cache.to_write(decision) is not None:
                self.violated(f"a fresh cycle decides {decision}")
