"""The programs of commit 6cdffff, as they run in a simulation; takes the place of `tests/simulation/programs.py` there.

That commit has no jobs and no webhooks, and names many of its parts differently.
"""

import asyncio
import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import msgspec
from volcano_py.framework.clock import CycleClock
from volcano_py.framework.memory import Memory

from tests.simulation import objects
from tests.simulation.configurations import ConfSource
from tests.simulation.draws import generator
from tests.simulation.insight import Observer, observed
from tests.simulation.machines import Machine
from tests.simulation.servers import DEFINITIONS, URL, Servers
from volcano_py.api import types as api
from volcano_py.api import workloads
from volcano_py.cache import feeding
from volcano_py.cache.cluster import ClusterCache
from volcano_py.conf.loader import parse_conf
from volcano_py.controllers.manager import ControllerManager
from volcano_py.controllers.options import ManagerOptions
from volcano_py.daemon.configuration import Configuration
from volcano_py.daemon.daemon import SchedulerDaemon
from volcano_py.daemon.options import DaemonOptions
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.lease import LeaseOptions
from volcano_py.local.manifests import definitions
from volcano_py.model.decisions import Decision
from volcano_py.runtime.signals import Shutdown
from volcano_py.scheduler import Policy, resolve, run_cycle

SCHEDULERS: Final = ("scheduler-0", "scheduler-1")
CONTROLLERS: Final = ("controllers-0",)
WEBHOOKS: Final = "webhooks-0"
WEBHOOKS_HOST: Final = "10.0.4.0"
_WATCHED: Final = (
    ("priorityclasses.scheduling.k8s.io", api.PriorityClass),
    (objects.QUEUES, api.Queue),
    (objects.GROUPS, api.PodGroup),
    ("namespaces", api.Namespace),
    ("resourcequotas", api.ResourceQuota),
    ("poddisruptionbudgets.policy", api.PodDisruptionBudget),
    ("services", workloads.Service),
    ("replicationcontrollers", workloads.ReplicationController),
    ("replicasets.apps", workloads.ReplicaSet),
    ("statefulsets.apps", workloads.StatefulSet),
    (objects.NODES, api.Node),
    (objects.PODS, api.Pod),
)


@lru_cache(maxsize=1)
def _definitions() -> tuple[dict[str, Any], ...]:
    return tuple(definitions())


def serve_definitions(servers: Servers) -> None:
    """Create those CustomResourceDefinitions that do not exist."""
    for definition in _definitions():
        if servers.get(DEFINITIONS, definition["metadata"]["name"]) is None:
            servers.create(copy.deepcopy(definition))


class _Ledger:
    """A ledger where invariants look for it today: `cache.binds.ledger`, `cache.evictions.ledger`."""

    def __init__(self, ledger: Any) -> None:
        self.ledger = ledger


class _NoBackoff:
    """That commit tries what was refused again at once."""

    _job_of: Final[dict[str, Any]] = {}


class _Cache:
    """A cache of that commit with the names of today."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self.binds = _Ledger(cache.ledger)
        self.evictions = _Ledger(cache.evictions)
        self._bind_backoff = _NoBackoff()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)


class _Context:
    def __init__(self, program: Any) -> None:
        self.clock, self.leadership = program._clock, program._leadership


class _Watches:
    def __init__(self, reflectors: dict[Any, Any]) -> None:
        self._reflectors = reflectors


class _Writers:
    def __init__(self, daemon: SchedulerDaemon) -> None:
        self._daemon = daemon

    def under_way(self) -> dict[str, int]:
        daemon = self._daemon
        return {"bind": daemon.binder.queued + daemon.binder.in_flight, "eviction": daemon.evictor.backlog}


class _Kind:
    def __init__(self, label: str) -> None:
        self.label = label


class _Daemon:
    """A daemon of that commit with the names of today."""

    __class__: Any = SchedulerDaemon  # for `isinstance`

    def __init__(self, daemon: SchedulerDaemon) -> None:
        self._daemon = daemon
        self.cache = _Cache(daemon.cache)
        self._context, self._writers = _Context(daemon), _Writers(daemon)
        reflectors = daemon._intake.informers._reflectors
        self._watches = _Watches({_Kind(label): reflector for label, reflector in reflectors.items()})

    def __getattr__(self, name: str) -> Any:
        return getattr(self._daemon, name)


class _Manager:
    """A controller manager of that commit with the names of today."""

    def __init__(self, manager: ControllerManager) -> None:
        self._manager = manager
        self._context = _Context(manager)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)


class Tokens:
    """The files with tokens of ServiceAccounts."""

    def __init__(self) -> None:
        self.written: dict[str, int] = {}

    def header(self, machine: str) -> str:
        """Return what a process sends that reads its file now."""
        return f"Bearer {machine}.{self.written.get(machine, 1)}"

    def credentials(self, machine: Machine) -> Credentials:
        """Return the credentials of a process that starts now."""

        async def read(*_: object) -> str:
            while machine.token_source_hangs:  # noqa: ASYNC110 - it is a number
                await asyncio.sleep(0.5)
            return self.header(machine.name)

        return Credentials(URL, authorization=self.header(machine.name), refresh=read, clock=machine.clock)


def without_generating_keys() -> AbstractContextManager[None]:
    """Do nothing: there are no jobs."""
    return nullcontext()


class Raising:
    """Plugins of others are not simulated here."""

    where = ""


def configure_webhooks(_: Servers) -> None:
    """Do nothing: there are no webhooks."""


def webhook_configurations() -> tuple[dict[str, Any], ...]:
    """Return none."""
    return ()


def webhooks(*_: object) -> Any:
    """Raise: there are no webhooks."""
    raise NotImplementedError


def scheduler(
    seed: int,
    conf: ConfSource,
    tokens: Tokens,
    _: Raising,
    cycle: Callable[..., Any] = run_cycle,
    observer: Observer | None = None,
    *,
    narrow: int = 0,
) -> Callable[[Machine], Any]:
    """Return the program of a scheduler that stands by or leads; ``observer`` is told what it decides."""

    async def run(machine: Machine) -> int:
        options = DaemonOptions(metrics_address=None, health_address=None, lease=LeaseOptions(), seed=seed % 1000)
        file: Any = conf.file()
        daemon = SchedulerDaemon(
            tokens.credentials(machine),
            (configuration := Configuration(file.load(), file)).policy,
            options,
            clock=machine.clock,
            rng=generator(seed, f"{machine.name} {machine.starts}"),
            configuration=configuration,
            cycle=lambda *given: decide(*given),
        )
        shown: Any = _Daemon(daemon)
        decide = cycle if observer is None else observed(shown, cycle, observer)
        machine.running, machine.shutdown = shown, Shutdown()
        return await daemon.run(machine.shutdown)

    return run


def controllers(seed: int, tokens: Tokens, *, narrow: bool = False) -> Callable[[Machine], Any]:
    """Return the program of a controller manager."""

    async def run(machine: Machine) -> int:
        options = ManagerOptions(
            metrics_address=None, health_address=None, lease=LeaseOptions(name="vc-controller-manager")
        )
        manager = ControllerManager(
            tokens.credentials(machine),
            options,
            clock=machine.clock,
            rng=generator(seed, f"{machine.name} {machine.starts}"),
        )
        machine.running, machine.shutdown = _Manager(manager), Shutdown()
        return await manager.run(machine.shutdown)

    return run


@lru_cache(maxsize=32)
def policy_of(text: str) -> Policy:
    """Return the policy of a configuration."""
    return resolve(parse_conf(text, "simulated.conf"))


def rebuilt(servers: Servers) -> ClusterCache:
    """Return a cache that is filled from the true state, as a scheduler that starts now would fill it."""
    cache = ClusterCache()
    for resource, kind in _WATCHED:
        for obj in servers.objects(resource):
            feeding.added(cache, msgspec.convert(obj, kind, strict=False))
    return cache


def of_time(_: SchedulerDaemon) -> Memory:
    """Return a fresh memory: plans of this commit's simulation evict too seldom for its cool-downs to matter."""
    return Memory()


def seed_of(_: SchedulerDaemon) -> int:
    """Return by what number such a cycle decides between equal nodes and pods."""
    return 0


def fresh_cycle(
    cache: ClusterCache, text: str, now: datetime, memory: Memory | None = None, seed: int = 0
) -> list[Decision]:
    """Return what a full cycle over a cache decides."""
    found: list[Decision] = []
    clock = CycleClock(now.timestamp())
    run_cycle(cache.snapshot(), policy_of(text), clock, seed, memory or Memory(), found.extend)
    return found
