"""Configurations that change and break, cycles that are slow, plugins that raise, credentials that expire.

| fault | what it does | targets |
|---|---|---|
| configuration | replaces the configuration of schedulers, or breaks it, for a while | configurations |
| slow cycles | each part of a cycle takes seconds | schedulers |
| raising plugin | adds a plugin that raises where it is asked | methods |
| expired credentials | the token of a process is refused with 401; later there is a new one in its file | ours |
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.simulation.faults.kinds import Kind, Refusal, in_force
from tests.simulation.plan import Strike
from volcano_py.apiserver.faults import Fault

if TYPE_CHECKING:
    from tests.simulation.servers import Asked
    from tests.simulation.world import World

_BROKEN: Final = 'actions: "allocate"\ntiers:\n- plugins:\n  - name: ['


def _conf(world: "World", strike: Strike) -> Callable[[], None]:
    before = world.plan.conf
    if strike.target == "broken":
        world.conf.put(before, _BROKEN)
    else:
        world.conf.put(strike.target)
    world.strike(strike.kind)
    return lambda: world.conf.put(before)


def _slow(world: "World", strike: Strike) -> Callable[[], None]:
    for machine in world.schedulers():
        if strike.target in ("both", machine.name):
            world.slow_cycles[machine.name] = strike.amount
    world.strike(strike.kind)
    return world.slow_cycles.clear


def _raising(world: "World", strike: Strike) -> Callable[[], None]:
    world.raising.where = strike.target
    world.raising.raised = lambda: world.strike(strike.kind)

    def end() -> None:
        world.raising.where = ""

    return end


class _Expired:
    """Refuses a token that is no longer valid, until all faults end."""

    resource = "*"

    def __init__(self, kind: str, client: str, header: str) -> None:
        self.kind, self.client = kind, client
        self._header = header

    def judge(self, asked: "Asked", _: str, __: str) -> Fault | None:
        """Refuse requests with this token."""
        if asked.authorization != self._header:
            return None
        return Refusal("reply", code=401, message="Unauthorized")


def _expired(world: "World", strike: Strike) -> Callable[[], None]:
    tokens = world.tokens
    in_force(world, _Expired(strike.kind, strike.target, tokens.header(strike.target)))

    def renew() -> None:
        tokens.written[strike.target] = tokens.written.get(strike.target, 1) + 1

    return renew


KINDS: Final = (
    Kind(
        "configuration",
        _conf,
        ("broken", "built-in", "helm-default+preempt", "helm-default+preempt+capacity", "gang"),
        (1.0, 20.0),
        weight=3,
    ),
    Kind("slow cycles", _slow, ("both", "scheduler-0", "scheduler-1"), (3.0, 25.0), (1.0, 10.0), 3),
    Kind("raising plugin", _raising, ("open", "predicate", "score", "order"), (2.0, 20.0)),
    Kind("expired credentials", _expired, ("scheduler-0", "scheduler-1", "controllers-0"), (0.5, 20.0), weight=3),
)
