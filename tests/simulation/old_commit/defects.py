"""The eleven defects that the simulation can reach, and how each of them shows."""

from typing import Any, Final, NamedTuple


class Defect(NamedTuple):
    """One defect of `shared/faults`."""

    number: str
    """As its mend is named."""
    what: str
    invariants: tuple[str, ...]
    """What it violates."""
    texts: tuple[str, ...] = ("",)
    """What the text of the violation contains, one of them."""

    def fits(self, invariant: str, text: str) -> bool:
        """Say whether a violation looks like this defect."""
        return invariant in self.invariants and any(part in text for part in self.texts)

    def may_be(self, found: dict[str, Any]) -> bool:
        """Say whether one of the violations of a seed looks like this defect; its mend proves it."""
        return any(self.fits(invariant, text) for invariant, text in found.get("all", ()))


_STALE: Final = (
    "leaders know all binds",
    "nothing left to decide",
    "cache is true",
    "no node above its allocatable",
    "rest",
)
_PHANTOM: Final = ("the cache is what was shown", "cache is true")

DEFECTS: Final = (
    Defect("01", "a deleted pod comes back for ever", _PHANTOM, ("has pod", "pods: ")),
    Defect("02", "a new leader believes half-open watches", _STALE),
    Defect(
        "03",
        "refused binds are repeated without back-off",
        ("refusals are heeded", "Retry-After is honoured"),
        ("/pods/",),
    ),
    Defect("04", "binds are sent to a node that is gone", ("binds go to known nodes", "binds go to open nodes")),
    Defect("05", "one stray 404 empties the cache", ("nothing is forgotten",)),
    Defect("06", "the refresh of a token is outside of deadlines", ("the lease is kept",)),
    Defect(
        "07",
        "statuses ignore back-off",
        ("refusals are heeded", "Retry-After is honoured"),
        ("/podgroups/", "/queues/"),
    ),
    Defect("08", "an event ends the process", ("no process fails",), ("KeyError",)),
    Defect("12", "writes go out after the lease is lost", ("one leader",)),
    Defect("13", "PodScheduled=False on a bound pod", ("a bound pod is scheduled",)),
    Defect(
        "15", "one pod that cannot be read keeps the others from being asked about", ("what is overdue is asked about",)
    ),
)
