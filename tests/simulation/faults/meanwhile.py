"""What happens between a decision and its binds: the cluster changes just where something was decided.

A decision takes up to a quarter of a second. Faults at random times seldom meet it, so these wait for one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.simulation import objects
from tests.simulation.draws import Draws
from tests.simulation.faults.kinds import Kind, Rule
from tests.simulation.plan import Strike
from volcano_py.apiserver.deletion import DeleteOptions
from volcano_py.apiserver.faults import Fault
from volcano_py.apiserver.kinds.generic import WriteContext
from volcano_py.apiserver.status import StatusError
from volcano_py.model.decisions import Bind, Decision

if TYPE_CHECKING:
    from tests.simulation.loop import Process
    from tests.simulation.machines import Machine
    from tests.simulation.world import World

_ENDS_S: Final = 8.0
"""After which what was changed is changed back."""
_REFUSED_S: Final = 3.0
"""How long binds are refused or lost, where that belongs to the fault."""
_PAUSED_S: Final = (14.0, 24.0)
_BINDING: Final = "pods/binding"
_AGAIN_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Moment:
    """A decision, and the fault that waited for it."""

    world: "World"
    strike: Strike
    process: "Process"
    bind: Bind
    draws: Draws

    @property
    def machine(self) -> "Machine":
        """The machine that decided."""
        return next(machine for machine in self.world.schedulers() if machine.process is self.process)

    def rule(self, make: Callable[[], Fault], *, verb: str, resource: str, lasts_s: float = _REFUSED_S) -> None:
        """Let requests go wrong for a while."""
        rule = Rule(self.world, self.strike, lambda *_: make(), verb=verb, resource=resource)
        self.world.rules.append(rule)
        self.world.later(lasts_s, lambda: rule in self.world.rules and self.world.rules.remove(rule))


Act = Callable[[_Moment], Callable[[], None] | None]


def _patch(world: "World", resource: str, namespace: str | None, name: str, **spec: Any) -> None:
    def change(current: dict[str, Any]) -> dict[str, Any]:
        return {**current, "spec": {**current.get("spec", {}), **spec}}

    try:
        kind = world.servers.registry.resources.named(resource)
    except LookupError:  # its definition is removed for a while
        world.later(_AGAIN_S, lambda: _patch(world, resource, namespace, name, **spec))
        return
    context = WriteContext(world.servers.registry, version=kind.storage.name)
    try:
        world.servers.registry.patch(kind, namespace, name, change, context)
    except StatusError as error:
        if error.code not in (404, 409):
            raise


def delete(world: "World", resource: str, name: str, namespace: str = objects.NAMESPACE) -> None:
    """Delete an object at once, if it is there."""
    if world.servers.get(resource, name, namespace) is not None:
        kind = world.servers.registry.resources.named(resource)
        world.servers.registry.delete(kind, namespace, name, DeleteOptions(grace_seconds=0))


def _cordon(now: _Moment) -> Callable[[], None]:
    _patch(now.world, objects.NODES, None, now.bind.node, unschedulable=True)
    return lambda: _patch(now.world, objects.NODES, None, now.bind.node, unschedulable=False)


def _raise_minimum(now: _Moment) -> Callable[[], None] | None:
    world, job = now.world, now.bind.job
    group = world.servers.get(objects.GROUPS, job.name, job.namespace)
    before = None if group is None else objects.minimum(group)
    if before is None:
        return None
    _patch(world, objects.GROUPS, job.namespace, job.name, minMember=before + 10)
    return lambda: _patch(world, objects.GROUPS, job.namespace, job.name, minMember=before)


def _take_room(now: _Moment) -> Callable[[], None] | None:
    """Let another scheduler fill the node."""
    world, node = now.world, now.world.servers.get(objects.NODES, now.bind.node)
    if node is None:
        return None
    name, cpu = f"meanwhile-{now.strike.number}", str(node["status"]["allocatable"]["cpu"])
    world.servers.create(objects.pod(name, cpu, schedulerName="default-scheduler", nodeName=now.bind.node))
    return lambda: delete(world, objects.PODS, name)


def _remove_pod(now: _Moment) -> None:
    delete(now.world, objects.PODS, now.bind.task.name, now.bind.task.namespace)


def _refuse_and_remove_pod(now: _Moment) -> None:
    """Delete the pod while its bind waits for another attempt."""
    now.rule(lambda: Fault("reply", code=503), verb="create", resource=_BINDING)
    now.world.later(now.draws.between(0.3, _REFUSED_S), _remove_pod, now)


def _refuse_and_remove_node(now: _Moment) -> Callable[[], None] | None:
    """Delete the node while its binds wait for another attempt."""
    world, name = now.world, now.bind.node
    node = world.servers.get(objects.NODES, name)
    if node is None:
        return None
    now.rule(lambda: Fault("reply", code=503), verb="create", resource=_BINDING)
    now.world.later(now.draws.between(0.3, 1.0), _delete_node, world, name)

    def end() -> None:
        _delete_node(world, name)
        world.servers.create(objects.node(name, int(node["status"]["allocatable"]["cpu"])))

    return end


def _delete_node(world: "World", name: str) -> None:
    if world.servers.get(objects.NODES, name) is not None:
        kind = world.servers.registry.resources.named(objects.NODES)
        world.servers.registry.delete(kind, None, name, DeleteOptions())
    for pod in world.servers.objects(objects.PODS):
        if pod["spec"].get("nodeName") == name:
            delete(world, objects.PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])


def _lose_answers_and_lag(now: _Moment) -> Callable[[], None]:
    """Lose the answers to binds that take effect, while a server shows them late."""
    now.rule(lambda: Fault("drop_after"), verb="create", resource=_BINDING)
    lagging = now.world.servers.lagging["apiserver-b"]
    lagging.lag_s = 2 * _ENDS_S

    def end() -> None:
        lagging.lag_s = 0.0

    return end


def _delay_and_replace(now: _Moment) -> None:
    """Delay the bind, and replace its pod by another one of its name before it takes effect."""
    world, name, space = now.world, now.bind.task.name, now.bind.task.namespace
    pod = world.servers.get(objects.PODS, name, space)
    if pod is None or pod["metadata"].get("ownerReferences"):
        return
    now.rule(lambda: Fault("delay", delay_s=2.0), verb="create", resource=_BINDING)

    def replace() -> None:
        if world.servers.get(objects.PODS, name, space) is None:
            return
        delete(world, objects.PODS, name, space)
        kept = ("name", "namespace", "annotations", "labels")
        meta = {key: pod["metadata"][key] for key in kept if key in pod["metadata"]}
        spec = {key: value for key, value in pod["spec"].items() if key not in ("nodeName", "priority", "tolerations")}
        world.servers.create(objects.pod_of(meta, spec))

    world.later(now.draws.between(0.3, 1.5), replace)


def _pause_the_scheduler(now: _Moment) -> None:
    """Stop the scheduler that decided, for about as long as its lease lasts, before it has sent anything."""
    machine = now.machine
    machine.pause()

    def resume() -> None:
        now.world.last_fault_at = now.world.loop.time()
        machine.resume()

    now.world.later(now.draws.between(*_PAUSED_S), resume)


def _zone_fails(now: _Moment) -> Callable[[], None]:
    """Lose the machine of the scheduler that decided, just after its binds, and silence the watches of the other."""
    world, machine = now.world, now.machine
    for other in world.schedulers():
        if other is not machine:
            for end in world.network.ends(other.process):
                end.silent = True
    world.later(now.draws.between(0.1, 0.6), lambda: machine.kill(silently=True))

    def restart() -> None:
        if not machine.alive:
            machine.start()

    return restart


_ACTS: Final[dict[str, Act]] = {
    "node cordoned": _cordon,
    "minimum raised": _raise_minimum,
    "room taken": _take_room,
    "pod gone": _remove_pod,
    "binds refused, pod gone": _refuse_and_remove_pod,
    "binds refused, node gone": _refuse_and_remove_node,
    "answers lost, watch late": _lose_answers_and_lag,
    "bind late, pod replaced": _delay_and_replace,
    "scheduler paused": _pause_the_scheduler,
    "zone fails": _zone_fails,
}


def _wait_for_a_decision(world: "World", strike: Strike) -> Callable[[], None]:
    """Strike at the first bind that is decided while this is in force."""
    draws = Draws(world.seed, f"{strike.kind} {strike.number}")

    def do(process: "Process", bind: Bind) -> None:
        if all(machine.process is not process for machine in world.schedulers()):
            return
        world.strike(strike.kind)
        world.history.note("meanwhile", strike.target, str(bind.task), bind.node)
        end = _ACTS[strike.target](_Moment(world, strike, process, bind, draws))
        if end is not None:
            world.later(_ENDS_S, end)

    def decided(process: "Process", batch: Sequence[Decision]) -> None:
        binds = [decision for decision in batch if isinstance(decision, Bind)]
        if binds:
            stop()
            world.later(0.0, do, process, draws.one_of(binds))

    def stop() -> None:
        if decided in world.upon_decisions:
            world.upon_decisions.remove(decided)

    world.upon_decisions.append(decided)
    return stop


KINDS: Final = (Kind("during a decision", _wait_for_a_decision, tuple(_ACTS), (5.0, 30.0), weight=8),)
