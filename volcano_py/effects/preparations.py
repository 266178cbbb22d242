"""The binds that are being prepared, and the gangs to which they belong."""

from dataclasses import dataclass

from volcano_py.effects.promises import claim_of
from volcano_py.effects.storage import ClaimState
from volcano_py.model.decisions import Bind, BindClaim, PrepareStep
from volcano_py.model.objects import JobKey


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a gang is not sent."""

    bind: Bind
    """The one because of which it is not sent."""
    why: str
    withdrawn: bool
    """It must not be sent any more, because the cluster has changed; else it could not be prepared."""


class Order:
    """One bind on its way to the binder."""

    __slots__ = (
        "announced",
        "bind",
        "followed",
        "gang",
        "in_turn",
        "prepared",
        "to_undo",
        "trusts_watch",
        "versions",
        "waits",
        "waits_since",
    )

    def __init__(self, bind: Bind, gang: "Gang") -> None:
        self.bind = bind
        self.gang = gang
        self.versions: list[str] = []  # of the objects that carry the promises, one for each step that is carried out
        self.trusts_watch = True  # no step has failed yet
        self.in_turn = False  # a worker carries out its steps
        self.waits = False  # all steps are carried out
        self.waits_since = 0.0
        self.announced = False  # its pod's users know what it waits for
        self.followed: set[str] = set()  # volumes that were made for its claims
        self.prepared = not bind.prepare
        self.to_undo: list[PrepareStep] = []

    @property
    def current(self) -> PrepareStep | None:
        """The step that is carried out now, None if there are no more."""
        steps, done = self.bind.prepare, len(self.versions)
        return steps[done] if done < len(steps) else None

    def names(self) -> set[str]:
        """Return the claims and volumes whose changes concern it."""
        steps = self.bind.prepare
        volumes = {step.volume for step in steps if isinstance(step, BindClaim)}
        return {claim_of(step) for step in steps} | volumes | self.followed

    def follow(self, claim: ClaimState | None, waiting: dict[str, dict["Order", None]]) -> None:
        """Let changes of the volume of a claim concern it, too: the watch may show the volume after the claim."""
        if claim is not None and claim.volume:
            self.followed.add(claim.volume)
            waiting.setdefault(claim.volume, {})[self] = None


class Gang:
    """Binds of one job that were decided together."""

    __slots__ = ("aside", "begun_at", "binds", "failure", "job", "not_undone", "orders", "unprepared")

    def __init__(self, job: JobKey, binds: tuple[Bind, ...], begun_at: float) -> None:
        self.job = job
        self.binds = binds
        self.begun_at = begun_at
        self.orders = [Order(bind, self) for bind in binds]
        self.unprepared = sum(not order.prepared for order in self.orders)
        self.not_undone = len(self.orders)
        self.aside = False  # it does not count as under way
        self.failure: Failure | None = None
