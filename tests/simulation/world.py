"""One simulation: a cluster, the system, its work and its faults, from the start to rest."""

import asyncio
import gc
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Final

from tests.simulation import faults, objects, programs
from tests.simulation.clocks import MachineClock, SimulatedOrigin, connections_age_by
from tests.simulation.configurations import ConfSource
from tests.simulation.draws import Draws, generator
from tests.simulation.history import History, Line
from tests.simulation.insight import Shown
from tests.simulation.invariants import INVARIANTS, Invariant
from tests.simulation.invariants.rest import Rest
from tests.simulation.logs import remembered
from tests.simulation.loop import OUTSIDE, PROCESS, Endless, HarnessError, Process, SimulationLoop
from tests.simulation.machines import Machine
from tests.simulation.narrator import Narrator
from tests.simulation.network import Network
from tests.simulation.plan import Order, Plan
from tests.simulation.servers import ASKED, BALANCER, Asked, Servers
from tests.simulation.truth import Truth
from tests.simulation.volumes import Provisioner
from tests.simulation.work import Worker
from volcano_py.apiserver.faults import Fault
from volcano_py.apiserver.kubelet import InProcessPort, Kubelet
from volcano_py.apiserver.kubelet.stages import load_stages
from volcano_py.apiserver.origin import ORIGIN
from volcano_py.apiserver.store import Collection, Event
from volcano_py.kube.own_faults import OwnFaults
from volcano_py.model.decisions import Bind, Decision

RECOVERY_S: Final = 120.0
"""Within this virtual time after the last fault, the system must have recovered."""
SETTLES_S: Final = 75.0
"""Within this time after the last fault, every request that was under way has ended, and every watch is open again."""
_CYCLE_S: Final = (0.005, 0.25)
"""How long a part of a cycle lasts."""
_THREAD_S: Final = (0.0005, 0.005)
_LAST_ORDERS: Final = 1000  # the number of the first order that does not belong to the plan
_NEXT_ORDER_S: Final = 5.0
_STAGES: Final = [stage for stage in load_stages() if stage.name != "node-heartbeat"]


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that did not hold."""

    invariant: str
    text: str
    at: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a plan."""

    plan: Plan
    digest: str
    violations: tuple[Violation, ...]
    lines: tuple[Line, ...]
    struck: tuple[str, ...]
    """The kinds of faults that took effect."""
    bound: int
    """How many binds were successful."""
    virtual_s: float
    counts: tuple[tuple[str, int], ...] = ()
    """How many binds, evictions, restarts of jobs and changes of leaders there were."""


class Violated(Exception):
    """Ends a simulation at its first violation."""


class _OwnBugs:
    """Keeps what a fault or an invariant raises: a server would make an answer of it."""

    def __init__(self, loop: SimulationLoop) -> None:
        self._loop = loop

    def __enter__(self) -> None:
        """Begin to call them."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception):
            self._loop.blame(error)


class World:
    """Everything that a simulation consists of; faults change it, invariants look at it."""

    def __init__(self, plan: Plan, loop: SimulationLoop, clock: MachineClock, slow_cycles: dict[str, float]) -> None:
        """Take the clock of the machines of the API servers, and by how much cycles of each machine are slower."""
        self.plan, self.loop = plan, loop
        self.seed = plan.seed
        self._own_bugs = _OwnBugs(loop)
        self.outside = PROCESS.get()
        self._context = copy_context()
        self.cluster = Process("cluster", "10.0.1.9")
        """The controllers of Kubernetes and the kubelets."""
        self.history = History(loop.time)
        self.network = Network(loop, plan.seed)
        loop.network = self.network
        self.servers = Servers(loop, plan.seed, self._judge, self._answered)
        self.conf = ConfSource(plan.conf)
        self.tokens, self.raising = programs.Tokens(), programs.Raising()
        self.origin_clock, self.slow_cycles = clock, slow_cycles
        self.rules: list[faults.Judging] = []
        """Faults of requests that are in force."""
        self.upon_decisions: list[Callable[[Process, Sequence[Decision]], None]] = []
        """Faults that wait for a decision."""
        self.machines: dict[str, Machine] = {}
        self.violations: list[Violation] = []
        self.struck: dict[str, int] = {}
        self.last_fault_at = 0.0
        """When something happened last that the system must react to: a fault, its end, or the end of a pod."""
        self.truth = Truth()
        self.invariants: list[Invariant] = [each(self) for each in INVARIANTS.values()]
        self._upon_changes = self._that_look_at("changed")
        self._upon_answers = self._that_look_at("answered")
        self._upon_seconds = self._that_look_at("now")
        self.worker = Worker(self)
        self.provisioner = Provisioner(self)
        self.found_at_rest: list[tuple[str, str]] = []
        """What does not hold at rest, as far as was looked."""
        self._at_rest = False
        self._lasting: dict[int, tuple[Any, Any, asyncio.TimerHandle]] = {}
        self.quiet = False
        """Whether all faults are over."""
        self._build()
        self.servers.store.listeners.append(self._changed)

    # Parts

    def _build(self) -> None:
        servers = ("apiserver-a", "apiserver-b")
        hosts = ("10.0.1.1", "10.0.1.2")
        self.network.balancers[BALANCER] = hosts
        for name, host in zip(servers, hosts, strict=True):
            self._add(name, host, lambda machine: self.servers.serve(machine, machine.name.endswith("b")))
        for index, name in enumerate(programs.SCHEDULERS):
            program = programs.scheduler(
                self.seed,
                self.conf,
                self.tokens,
                self.raising,
                observer=self,
                narrow=self.plan.size.works if self.plan.narrow else 0,
            )
            self._add(name, f"10.0.2.{index}", program)
        for index, name in enumerate(programs.CONTROLLERS):
            self._add(name, f"10.0.3.{index}", programs.controllers(self.seed, self.tokens, narrow=self.plan.narrow))
        if self.plan.webhooks:
            self._add(programs.WEBHOOKS, programs.WEBHOOKS_HOST, programs.webhooks(self.seed, self.tokens))

    def _add(self, name: str, host: str, program: Any) -> None:
        self.machines[name] = Machine(self.loop, self.network, name, host, program, self.history.note)

    def _that_look_at(self, what: str) -> list[Any]:
        """Return the methods of that name of all invariants that have one of their own; the others do nothing."""
        idle = getattr(Invariant, what)
        return [getattr(each, what) for each in self.invariants if getattr(type(each), what) is not idle]

    def schedulers(self) -> list[Machine]:
        """Return the machines of schedulers."""
        return [self.machines[name] for name in programs.SCHEDULERS]

    # What happens at the API server

    def _judge(self, asked: Asked, namespace: str, name: str) -> Fault | None:
        if not self.rules:
            return None
        with self._own_bugs:
            return self._judged(asked, namespace, name)

    def _judged(self, asked: Asked, namespace: str, name: str) -> Fault | None:
        for rule in self.rules:
            fault = rule.judge(asked, namespace, name)
            if fault is not None:
                self.strike(rule.kind)
                self.history.note("fault", rule.kind, fault.action, asked.client.name, asked.verb, asked.resource, name)
                return fault
        return None

    def _answered(self, asked: Asked, status: int) -> None:
        if asked.verb != "watch" or status >= 400:
            with self._own_bugs:
                for answered in self._upon_answers:
                    answered(asked, status)

    def _changed(self, collection: Collection, event: Event) -> None:
        asked = ASKED.get()
        who = "cluster" if asked is None else asked.client.name
        self.history.note("write", who, event.type, collection.name, event.stored.key, str(event.rv))
        if asked is None and collection.name == objects.PODS and _has_ended(event.stored.obj):
            self.last_fault_at = self.loop.time()  # others may be placed now
        with self._own_bugs:
            self.truth.changed(collection.name, event, asked, self.loop.time())
            for changed in self._upon_changes:
                changed(collection.name, event, asked)

    def narrate(self) -> None:
        """Remark in words what changes from now on."""
        narrator = Narrator(self.history)

        def changed(collection: Collection, event: Event) -> None:
            with self._own_bugs:
                narrator.changed(collection, event)

        self.servers.store.listeners.insert(0, changed)  # before an invariant speaks of it

    # What schedulers decide

    def cycle(self, process: Process, shown: Shown) -> None:
        """A cycle begins."""
        with self._own_bugs:
            for invariant in self.invariants:
                invariant.cycle(process, shown)

    def decided(self, process: Process, shown: Shown, batch: Sequence[Decision]) -> None:
        """That cycle has decided something."""
        with self._own_bugs:
            for invariant in self.invariants:
                invariant.decided(process, shown, batch)
            for hear in tuple(self.upon_decisions):
                hear(process, batch)

    def assumed(self, process: Process, shown: Shown, binds: Sequence[Bind]) -> None:
        """Some of it was accepted for sending."""
        with self._own_bugs:
            for invariant in self.invariants:
                invariant.assumed(process, shown, binds)

    def later(self, seconds: float, do: Callable[..., object], *args: object) -> None:
        """Do something after a while, whoever is paused or killed until then."""
        self.loop.call_later(seconds, do, *args, context=self._context)

    def strike(self, kind: str) -> None:
        """Count a fault that takes effect."""
        self.struck[kind] = self.struck.get(kind, 0) + 1
        self.last_fault_at = self.loop.time()

    def violate(self, invariant: str, text: str) -> None:
        """Note that an invariant does not hold."""
        if self._at_rest:
            self.found_at_rest.append((invariant, text))
            return
        self.history.note("violation", f"{invariant}: {text}")
        self.violations.append(Violation(invariant, text, self.loop.time()))

    # Life

    async def run(self) -> None:
        """Play the plan."""
        self._start_cluster()
        for machine in self.machines.values():
            machine.start()
        steps = [(work.at, 0, work.number, self.worker.submit, work) for work in self.plan.work]
        steps += [(strike.at, 1, strike.number, self._begin, strike) for strike in self.plan.strikes]
        steps += [(order.at, 2, order.number, self.worker.order, order) for order in self.plan.orders]
        for at, _, _, do, what in sorted(steps, key=lambda step: step[:3]):
            await self._until(at)
            do(what)  # type: ignore[arg-type]
        await self._until(self.plan.size.length_s)
        self._heal()
        if self.plan.webhooks:  # they refuse the new PodGroup of a job that restarts in a closed queue
            await self._open_queues()
        await self._come_to_rest()

    def _start_cluster(self) -> None:
        servers = self.servers
        with self.cluster.entered():
            for reconciler in servers.core._reconcilers:
                reconciler.start()
            programs.serve_definitions(servers)
            self.kubelet = Kubelet(InProcessPort(servers.registry), _STAGES, {"pod-run": 0.7})
            self.kubelet.start()
        servers.create(objects.namespace(objects.SYSTEM))
        for space in sorted({work.space for work in self.plan.work} - {objects.NAMESPACE}):
            servers.create(objects.namespace(space))
        for index, cpu in enumerate(self.plan.nodes):
            servers.create(objects.node(f"node-{index}", cpu))
        self.worker.put_queues()
        servers.create(objects.priority_class("low", 10))
        servers.create(objects.priority_class("high", 1000))
        if self.plan.webhooks:
            programs.configure_webhooks(servers)

    async def _until(self, at: float) -> None:
        """Wait, and end early if something is wrong already."""
        while self.loop.time() < at:
            await asyncio.sleep(min(1.0, at - self.loop.time()))
            self._check()

    def _check(self) -> None:
        self.raise_own_bugs()
        for now in self._upon_seconds:
            now()
        if self.violations:
            raise Violated

    def raise_own_bugs(self) -> None:
        """Raise what a part of the simulation itself has raised where nobody heard it."""
        for process in (self.outside, self.cluster, self.worker.process):
            for context in process.errors:
                self.loop.blame(context.get("exception") or RuntimeError(str(context.get("message"))))
        if self.loop.broken is not None:
            name = f"seed {self.seed} ({self.plan.size.name}) at {self.loop.time():.3f} s"
            raise HarnessError(f"{name}: {self.loop.broken!r}") from self.loop.broken

    def _begin(self, strike: Any) -> None:
        kind = faults.FAULTS[strike.kind]
        self.history.note("strike", str(strike))
        self.last_fault_at = self.loop.time()
        end = kind.begin(self, strike)
        if end is not None:
            timer = self.loop.call_later(strike.lasts_s, self._end, strike, end)
            self._lasting[strike.number] = (strike, end, timer)

    def _end(self, strike: Any, end: Any) -> None:
        del self._lasting[strike.number]
        self.history.note("over", strike.kind, strike.target)
        self.last_fault_at = self.loop.time()
        end()

    def _heal(self) -> None:
        """End every fault; start what is down."""
        for strike, end, timer in list(self._lasting.values()):
            timer.cancel()
            self._end(strike, end)
        self.rules.clear()
        self.quiet = True
        for machine in self.machines.values():
            machine.resume()
            if not machine.alive:
                machine.start()
        self.last_fault_at = self.loop.time()
        self.history.note("calm", "all faults are over")

    async def _open_queues(self) -> None:
        """Let users open what they have closed: a parent, and its children a while later."""
        parents = {queue.name: queue.parent for queue in self.plan.queues}
        closed = {order.queue for order in self.plan.orders}
        for number, queue in enumerate(sorted(closed, key=lambda name: (bool(parents.get(name)), name)), _LAST_ORDERS):
            self.worker.order(Order(number, self.loop.time(), "OpenQueue", queue))
            await self._until(self.loop.time() + _NEXT_ORDER_S)

    async def _come_to_rest(self) -> None:
        """Wait until nothing is written any more, then ask all invariants."""
        rest = next(each for each in self.invariants if isinstance(each, Rest))
        while (
            self.loop.time() - rest.last_write_at < self.plan.size.rest_s
            or self.loop.time() - self.last_fault_at < SETTLES_S
        ):
            await self._until(self.loop.time() + 1.0)
            if rest.last_write_at > rest.limit(self.last_fault_at + RECOVERY_S):
                self.violate("rest", f"{RECOVERY_S:.0f} s after the last fault something is still written: {rest.last}")
                raise Violated
        self._judge_rest()
        if self.found_at_rest and self.loop.time() < self.last_fault_at + RECOVERY_S:
            await self._until(self.last_fault_at + RECOVERY_S)  # a pause between two attempts may be that long
            self._judge_rest()
        for invariant, text in self.found_at_rest:
            self.history.note("violation", f"{invariant}: {text}")
            self.violations.append(Violation(invariant, text, self.loop.time()))
        if self.violations:
            raise Violated

    def _judge_rest(self) -> None:
        self.found_at_rest.clear()
        self._at_rest = True
        try:
            for invariant in self.invariants:
                invariant.at_rest()
        finally:
            self._at_rest = False


def _has_ended(pod: Mapping[str, Any]) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")


def simulate(plan: Plan, *, told: bool = False) -> Outcome:
    """Run a plan in a loop of its own; leaves nothing behind.

    If it shall be ``told``, the lines also have what programs log, and in words what changes in the cluster; the digest
    is the same. An exception of a fault or of an invariant is raised as :class:`HarnessError`.
    """
    with _undisturbed(), _faults_are_seen(), programs.without_generating_keys():
        try:
            return copy_context().run(_play, plan, told)
        except HarnessError as error:
            text, cause = str(error), "".join(traceback.format_exception(error.__cause__))
    problem = HarnessError(text)  # another one, because the first one's traceback holds the whole world
    problem.add_note(cause)
    raise problem


def _play(plan: Plan, told: bool) -> Outcome:
    slow_cycles: dict[str, float] = {}
    loop = _loop(plan.seed, slow_cycles)
    try:
        with connections_age_by(loop):
            return _played(plan, loop, slow_cycles, told)
    finally:
        with _unheard():
            loop.abandon()


def _played(plan: Plan, loop: SimulationLoop, slow_cycles: dict[str, float], told: bool) -> Outcome:
    """Run a plan until it ends or violates an invariant."""
    clock = MachineClock(loop)
    ORIGIN.set(SimulatedOrigin(clock, generator(plan.seed, "objects")))
    PROCESS.set(Process("outside", OUTSIDE.host))  # of its own, so that nothing outlives the simulation
    world = World(plan, loop, clock, slow_cycles)
    if told:
        world.narrate()
    try:
        with remembered(world.history) if told else nullcontext():
            loop.run_until_complete(loop.create_task(world.run()))
    except Violated:
        world.raise_own_bugs()  # the history has the violation
    except Endless as problem:
        world.violate("endless", str(problem))
        world.raise_own_bugs()
    except HarnessError:
        raise
    except Exception as error:  # noqa: BLE001 - raised with the seed
        loop.blame(error)
        world.raise_own_bugs()
    return Outcome(
        plan,
        world.history.digest,
        tuple(world.violations),
        tuple(world.history.lines),
        tuple(sorted(world.struck)),
        world.worker.bound(),
        loop.time(),
        tuple(sorted(world.worker.counts.items())),
    )


def _loop(seed: int, slow_cycles: dict[str, float]) -> SimulationLoop:
    delays: dict[tuple[str, bool], Draws] = {}

    def delay(process: Process, cycle: bool) -> float:
        draws = delays.get((process.name, cycle))
        if draws is None:
            draws = delays[process.name, cycle] = Draws(seed, f"{process.name} thread {cycle}")
        slower = slow_cycles.get(process.name, 0.0) if cycle else 0.0
        return slower + draws.between(*(_CYCLE_S if cycle else _THREAD_S))

    return SimulationLoop(delay)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Collect no garbage while a simulation runs, and all of it afterwards."""
    enabled = gc.isenabled()  # if not, this process does nothing but simulate, and need not thaw what was there before
    gc.freeze()  # so that what was there before need not be looked at
    gc.disable()
    try:
        yield
    finally:
        with _unheard():
            gc.collect()
        if enabled:
            gc.enable()
            gc.unfreeze()


@contextmanager
def _faults_are_seen() -> Iterator[None]:
    """Let an exception that nobody expected end its program: a violation, although programs survive it otherwise."""
    survived, OwnFaults.survived = OwnFaults.survived, False
    try:
        yield
    finally:
        OwnFaults.survived = survived


@contextmanager
def _unheard() -> Iterator[None]:
    """Print nothing of what programs say when they are torn down."""
    hook = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.unraisablehook = hook
