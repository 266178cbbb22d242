"""What an invariant is."""

from typing import TYPE_CHECKING, ClassVar

from volcano_py.apiserver.store import Event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.simulation.insight import Shown
    from tests.simulation.loop import Process
    from tests.simulation.servers import Asked
    from tests.simulation.world import World
    from volcano_py.model.decisions import Bind, Decision


class Invariant:
    """Something that must hold; one instance per simulation."""

    name: ClassVar[str] = ""

    def __init__(self, world: "World") -> None:
        self.world = world

    def changed(self, resource: str, event: Event, asked: "Asked | None") -> None:
        """Look at a change of the true state; ``asked`` is the request that made it, None for the cluster itself."""

    def answered(self, asked: "Asked", status: int) -> None:
        """Look at a request that was answered, or refused; watches that were opened are left out."""

    def cycle(self, process: "Process", shown: "Shown") -> None:
        """Look at what a scheduler knows at the moment at which it begins a cycle."""

    def decided(self, process: "Process", shown: "Shown", batch: "Sequence[Decision]") -> None:
        """Look at what that cycle has decided; it is carried out later, if at all."""

    def assumed(self, process: "Process", shown: "Shown", binds: "Sequence[Bind]") -> None:
        """Look at binds that were accepted for sending, and at what is known by then."""

    def now(self) -> None:
        """Look at the present state; called once a virtual second."""

    def at_rest(self) -> None:
        """Look at the state at the end, when all faults are over and nothing is written any more."""

    def violated(self, text: str) -> None:
        """Report that it does not hold."""
        self.world.violate(self.name, text)
