"""What a kind of fault is, and faults of requests as rules."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol

from tests.simulation.draws import Draws
from tests.simulation.plan import Strike
from volcano_py.apiserver.faults import Fault
from volcano_py.apiserver.status import StatusError

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

Begin = Callable[["World", Strike], Callable[[], None] | None]
"""Begins a fault; returns what ends it, None if it ends by itself."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of fault, and what is drawn for it."""

    name: str
    begin: Begin
    targets: tuple[str, ...] = ("",)
    lasts_s: tuple[float, float] = (0.0, 0.0)
    amount: tuple[float, float] = (0.0, 0.0)
    weight: int = 2
    """How often it is chosen, compared with others."""
    webhooks: bool = False
    """Whether it concerns webhooks, and makes sense only where they run."""

    def strike(self, number: int, at: float, draws: Draws) -> Strike:
        """Draw a fault of this kind."""
        return Strike(
            number,
            at,
            self.name,
            target=draws.one_of(self.targets),
            lasts_s=round(draws.between(*self.lasts_s), 3),
            amount=round(draws.between(*self.amount), 4),
        )


class Judging(Protocol):
    """Something that goes wrong with requests while it is in force."""

    @property
    def kind(self) -> str:
        """The kind of the fault."""

    resource: str
    """The resources that it may concern, as a shell pattern."""
    client: str
    """The machines that it may concern, as a shell pattern."""

    def judge(self, asked: "Asked", namespace: str, name: str) -> Fault | None:
        """Return what goes wrong with this request."""


Make = Callable[["World", Strike, "Asked"], Fault | None]
"""Makes what goes wrong with one request; None if it cannot happen to this one."""


@dataclass(slots=True)
class Rule:
    """A fault of requests that match; each request has its own draw."""

    world: "World"
    strike: Strike
    make: Make
    verb: str = "*"
    resource: str = "*"
    client: str = "*"
    times: int | None = None
    """How often it happens at most."""
    chosen: bool = False
    """Whether one draw decides about an object, for all requests that concern it."""
    _draws: dict[str, Draws] = field(default_factory=dict)
    _chosen: dict[str, bool] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The kind of the fault."""
        return self.strike.kind

    def judge(self, asked: "Asked", namespace: str, name: str) -> Fault | None:
        """Return what goes wrong with this request."""
        if self.times == 0 or not (
            fnmatchcase(asked.verb, self.verb)
            and fnmatchcase(asked.resource, self.resource)
            and fnmatchcase(asked.client.name, self.client)
        ):
            return None
        if not self._happens(asked, f"{namespace}/{name}"):
            return None
        fault = self.make(self.world, self.strike, asked)
        if fault is not None and self.times is not None:
            self.times -= 1
        return fault

    def _happens(self, asked: "Asked", key: str) -> bool:
        if self.chosen and key in self._chosen:
            return self._chosen[key]
        stream = f"{self.strike.kind} {self.strike.number} {asked.client.name} {asked.verb} {asked.resource} {key}"
        draws = self._draws.get(stream)
        if draws is None:
            draws = self._draws[stream] = Draws(self.world.seed, stream)
        happens = draws.happens(self.strike.amount or 1.0)
        if self.chosen:
            self._chosen[key] = happens
        return happens


def ruled(make: Make, **where: Any) -> Begin:
    """Return a fault of requests: a rule that is in force for a while; the target names verb and resource."""

    def begin(world: "World", strike: Strike) -> Callable[[], None]:
        rule = Rule(world, strike, make, **where)
        if " " in strike.target:
            rule.verb, _, rule.resource = strike.target.partition(" ")
        return in_force(world, rule)

    return begin


def in_force(world: "World", rule: Judging) -> Callable[[], None]:
    """Put a rule in force; return what ends it."""
    world.rules.append(rule)

    def end() -> None:
        if rule in world.rules:
            world.rules.remove(rule)

    return end


def replied(code: int, message: str = "injected fault", retry_after_s: int | None = None) -> Make:
    """Return a fault: a refusal in place of the effect."""
    return lambda *_: Refusal("reply", code=code, message=message, retry_after_s=retry_after_s)


class Refusal(Fault):
    """A refusal with a Retry-After only where one is given."""

    def error(self) -> StatusError:
        """Return what the server answers."""
        found = super().error()
        found.retry_after_s = self.retry_after_s
        return found
