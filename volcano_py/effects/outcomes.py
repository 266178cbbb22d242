"""What can become of binds, and the interface by which the binder reports it."""

from dataclasses import dataclass
from typing import Protocol

from volcano_py.model.decisions import Bind
from volcano_py.model.objects import JobKey


@dataclass(frozen=True, slots=True)
class GangOutcome:
    """What became of the binds of one gang that were decided together."""

    job: JobKey
    binds: int
    failed: tuple[tuple[Bind, str], ...]  # each with its reason
    unsent: int = 0  # of all binds, how many were not sent because one could not be prepared


class BindOutcomes(Protocol):
    """Learns what became of binds, on the event loop."""

    def preparing(self, bind: Bind, missing: str) -> None:
        """The preparation of a bind takes long; ``missing`` says what it waits for."""
        ...

    def prepared(self, bind: Bind, seconds: float) -> None:
        """A bind that had to be prepared may be sent now, these seconds after it was decided."""
        ...

    def sending(self, bind: Bind) -> None:
        """A request is about to go out, the first or another."""
        ...

    def bound(self, bind: Bind) -> None:
        """The API server has the bind."""
        ...

    def bind_failed(self, bind: Bind, why: str) -> None:
        """The bind did not happen and will not."""
        ...

    def bind_withdrawn(self, bind: Bind, why: str) -> None:
        """The bind was not sent, or not again, because its pod or its node is gone."""
        ...

    def bind_unknown(self, bind: Bind) -> None:
        """It is not known whether the bind happened; its room must stay taken until the pod can be read."""
        ...

    def gang_failed(self, outcome: GangOutcome) -> None:
        """All binds of a gang have ended, and some failed."""
        ...
