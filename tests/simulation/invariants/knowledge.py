"""What a scheduler does not know: it asks about it."""

from typing import TYPE_CHECKING, Any, Final

from tests.simulation import objects
from tests.simulation.invariants.invariant import Invariant
from tests.simulation.loop import State

if TYPE_CHECKING:
    from tests.simulation.machines import Machine
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

_OVERDUE_S: Final = 45.0
"""After which a bind that the watch has not confirmed must have been asked about."""
_ASKED_WITHIN_S: Final = 35.0
_OTHERS_ASKED: Final = 2
_AWAKE_S: Final = 15.0
"""For how long a process must have run without a pause: it asks about one pod after another, and each may take long."""
_LOOKS_S: Final = 1.5
_SILENT: Final = frozenset({"half-open connections", "zone fails"})
"""Faults after which a question may get no answer, while questions on other connections do."""


class OverdueIsAskedAbout(Invariant):
    """What is assumed and not confirmed for long is asked about, whatever becomes of questions about others.

    Only questions that the server got are known. So connections that went silent not long ago are an excuse: a question
    may have waited for its answer in vain.
    """

    name = "what is overdue is asked about"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._asked: dict[str, dict[str, float]] = {}  # machine and start -> pod -> when it was read last
        self._times: dict[str, list[float]] = {}
        self._runs: dict[str, tuple[float, float]] = {}  # when a process was seen running, first and last without pause

    def answered(self, asked: "Asked", status: int) -> None:
        """Note whose pods were read."""
        if asked.verb == "get" and asked.resource == objects.PODS:
            machine = self.world.machines.get(asked.client.name)
            if machine is not None and machine.process is asked.client:
                name = asked.path.rpartition("/")[2]
                who = f"{machine.name} {machine.starts}"
                at = self.world.loop.time()
                self._asked.setdefault(who, {})[name] = at
                self._times.setdefault(who, []).append(at)

    def now(self) -> None:
        """Look for entries of ledgers that nobody has asked about although others were."""
        at = self.world.loop.time()
        recent = [one for one in self.world.plan.strikes if 0 <= at - one.at <= 2 * _OVERDUE_S and one.kind in _SILENT]
        for machine, cache in _caches(self.world):
            if any(strike.target in ("", machine.name) for strike in recent):
                continue
            who = f"{machine.name} {machine.starts}"
            times = self._times.get(who, [])
            first, last_look = self._runs.get(who, (at, at))
            self._runs[who] = (first if at - last_look < _LOOKS_S else at), at
            if at - self._runs[who][0] < _AWAKE_S:
                continue
            if sum(time > at - _ASKED_WITHIN_S for time in times) < _OTHERS_ASKED:
                continue
            binder = machine.running.binder
            for entry in cache.binds.ledger:
                late = at - entry.assumed_at
                last = self._asked[who].get(entry.task.name, entry.assumed_at)
                if late > _OVERDUE_S and at - last > _OVERDUE_S and not binder.holds(entry.task.uid):
                    self.violated(f"{machine.name} assumes a bind of {entry.task} for {late:.0f} s and asks for others")


def _caches(world: "World") -> "list[tuple[Machine, Any]]":
    """Return the caches of schedulers that run and lead."""
    found = []
    for machine in world.schedulers():
        daemon = machine.running
        alive = machine.alive and machine.process.state is State.RUNS
        if alive and daemon is not None and daemon.leading.is_set():
            found.append((machine, daemon.cache))
    return found
