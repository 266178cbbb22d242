"""At rest nothing is under way."""

from tests.simulation import insight
from tests.simulation.invariants.invariant import Invariant


class NothingUnderWay(Invariant):
    """At rest no scheduler believes that binds or evictions are under way: this would slow down its cycles for ever."""

    name = "nothing is under way"

    def at_rest(self) -> None:
        """Ask the writers."""
        for machine in self.world.schedulers():
            daemon = insight.daemon_of(machine)
            if daemon is not None and insight.works(machine):
                for what, count in insight.under_way(daemon).items():
                    if count:
                        self.violated(f"{machine.name} believes that {count} {what} are under way")
