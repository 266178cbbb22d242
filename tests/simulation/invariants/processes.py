"""Processes: none ends because of a bug, and each request of theirs has an end."""

from typing import TYPE_CHECKING, Final

from tests.simulation import insight
from tests.simulation.invariants.invariant import Invariant
from tests.simulation.loop import Process, State

if TYPE_CHECKING:
    from tests.simulation.machines import Machine
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

_LONGEST_S: Final = 61.0
"""The longest deadline of a request: a page of a list (`kube.reflector`)."""
_LONGEST_WATCH_S: Final = 70.0
"""The server ends a watch after 35 s at most; without that the client does, 5 s later, or after 30 s to open it."""

_ENDS_S: Final = 30.0
"""Binds and evictions may take 10 s to complete, what waits is written within 2 s, and the lease is released."""

_USAGE: Final = 2
"""The exit code of a program whose flags or configuration cannot be used."""


class NoFailure(Invariant):
    """Nothing that happens outside of a process may end it with an exception, and no exception is lost."""

    name = "no process fails"

    def now(self) -> None:
        """Look at processes that have failed, and at exceptions that nobody has taken."""
        for machine in self.world.machines.values():
            for failure in machine.failures:
                self.violated(f"{machine.name} failed: {failure!r} ({failure.__cause__!r})")
            for context in machine.process.errors:
                self.violated(f"{machine.name}: {context.get('message')}: {context.get('exception')!r}")


class ProgramsEndForAReason(Invariant):
    """A program ends only because it was asked to or because its lease was lost, and soon after it was asked.

    Time in which it was stopped does not count. Rests on exit codes, and on what the program says about its lease.
    """

    name = "programs end for a reason"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._seen: dict[str, int] = {}
        self._asked: dict[object, float] = {}  # program -> for how long it has been running since it was asked to end

    def now(self) -> None:
        """Look at programs that have ended, and at those that should have."""
        for machine in self.world.machines.values():
            for program, code in machine.ends[self._seen.get(machine.name, 0) :]:
                if code == _USAGE and "configuration" in self.world.struck:
                    continue  # it was started while its configuration could not be read
                if code and not insight.why_lost(program):
                    self.violated(f"{machine.name} has ended with exit code {code} and had not lost its lease")
                elif not code and program not in self._asked and not _asked_to_end(machine):
                    self.violated(f"{machine.name} has ended, and nobody had asked it to")
            self._seen[machine.name] = len(machine.ends)
            if machine.alive and machine.process.state is State.RUNS and _asked_to_end(machine):
                seconds = self._asked[machine.running] = self._asked.get(machine.running, -1.0) + 1.0
                if seconds > _ENDS_S:
                    self.violated(f"{machine.name} was asked to end {seconds:.0f} s ago and still runs")


def _asked_to_end(machine: "Machine") -> bool:
    shutdown = getattr(machine, "shutdown", None)
    return shutdown is not None and shutdown.graceful.is_set()


class RequestsEnd(Invariant):
    """No request is open for longer than its deadline.

    A server has it, and the client's end of its connection is still open: the client waits. Time in which the client
    was stopped does not count. The deadlines differ; looked at is the longest one, and that of watches.
    """

    name = "requests end"

    def __init__(self, world: "World") -> None:
        super().__init__(world)
        self._stopped: dict[Process, float] = {}

    def now(self) -> None:
        """Look at the requests that are not answered."""
        at = self.world.loop.time()
        for machine in self.world.machines.values():
            if machine.process.state is not State.RUNS:
                self._stopped[machine.process] = at
        for asked in self.world.servers.open:
            longest = _LONGEST_WATCH_S if asked.verb == "watch" else _LONGEST_S
            if at - asked.begun_at > longest and self._waits(asked, at - longest):
                self.violated(
                    f"{asked.client.name} waits for {asked.method} {asked.path} for {at - asked.begun_at:.0f} s"
                )

    def _waits(self, asked: "Asked", since: float) -> bool:
        end = asked.connection
        running = asked.client.state is State.RUNS and self._stopped.get(asked.client, -1.0) < since
        return running and end is not None and not end.is_closing()
