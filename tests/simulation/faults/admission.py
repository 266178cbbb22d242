"""What may happen to our webhooks; only where they run.

| fault | what it does | targets |
|---|---|---|
| webhooks killed, webhooks paused, webhooks end in order | nobody answers reviews for a while | webhooks |
| webhooks slow | adds seconds to every question and answer, up to the patience of API servers | webhooks |
| webhooks half-open | open connections from and to the webhooks go silent | webhooks |
| webhooks cut off | an API server, or both, cannot reach the webhooks, nor the other way round | API servers |
| webhook configurations applied again | they name a Service and no issuer, until the leader corrects them | |
"""

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.simulation import programs
from tests.simulation.faults import machines, network
from tests.simulation.faults.kinds import Begin, Kind
from tests.simulation.plan import Strike

if TYPE_CHECKING:
    from tests.simulation.world import World

_TARGET: Final = (programs.WEBHOOKS,)


def _cut_off(world: "World", strike: Strike) -> Callable[[], None]:
    cut = [server for server in network.SERVERS if strike.target in (server, "both")]
    for server in cut:
        world.network.partition(programs.WEBHOOKS, server)
    world.strike(strike.kind)

    def end() -> None:
        for server in cut:
            world.network.heal(programs.WEBHOOKS, server)

    return end


def _applied_again(world: "World", strike: Strike) -> None:
    registry = world.servers.registry
    for wanted in programs.webhook_configurations():
        kind = registry.resources.of_kind(wanted["apiVersion"], wanted["kind"])
        assert kind is not None
        hooks = copy.deepcopy(wanted["webhooks"])
        registry.patch(kind, None, wanted["metadata"]["name"], lambda now, hooks=hooks: {**now, "webhooks": hooks})  # type: ignore[misc]
    world.strike(strike.kind)


def _kind(name: str, begin: Begin, targets: tuple[str, ...], weight: int, **drawn: tuple[float, float]) -> Kind:
    return Kind(name, begin, targets, weight=weight, webhooks=True, **drawn)


KINDS: Final = (
    _kind("webhooks killed", machines.kill, _TARGET, 5, lasts_s=(0.5, 15.0), amount=(0.0, 0.8)),
    _kind("webhooks end in order", machines.terminate, _TARGET, 3),
    _kind("webhooks paused", machines.pause, _TARGET, 5, lasts_s=(1.0, 25.0)),
    _kind("webhooks slow", network.slow_down, _TARGET, 4, lasts_s=(2.0, 20.0), amount=(0.2, 8.0)),
    _kind("webhooks half-open", network.silence, _TARGET, 3, amount=(0.3, 1.0)),
    _kind("webhooks cut off", _cut_off, (*network.SERVERS, "both"), 5, lasts_s=(2.0, 30.0)),
    _kind("webhook configurations applied again", _applied_again, ("",), 3),
)
