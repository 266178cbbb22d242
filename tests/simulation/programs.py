"""The programs of the system, as they run in a simulation: only time, random numbers and the network are simulated.

Everything that depends on how the programs are built stands in this module.
"""

import asyncio
import copy
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from tests.simulation.configurations import ConfSource
from tests.simulation.draws import generator
from tests.simulation.insight import Observer, observe_assumptions, observed
from tests.simulation.machines import Machine
from tests.simulation.raising import Raising as Raising
from tests.simulation.servers import DEFINITIONS, URL, Servers
from volcano_py.admission.manager import WebhookManager
from volcano_py.admission.options import DEFAULT_NAMESPACE, Files, WebhookOptions
from volcano_py.admission.paths import WEBHOOKS as PATHS
from volcano_py.admission.rules import RULES
from volcano_py.admission.server import ServerOptions
from volcano_py.apiserver import metadata
from volcano_py.apiserver.objects import object_key
from volcano_py.apiserver.registry import Registry
from volcano_py.apiserver.resources import Resource
from volcano_py.cache import feeding
from volcano_py.cache.cluster import ClusterCache
from volcano_py.cache.watched_kinds import WATCHED_KINDS
from volcano_py.conf.loader import parse_conf
from volcano_py.conf.schema import ConfError
from volcano_py.controllers.job import carrying_out
from volcano_py.controllers.job.plugins.contract import KeyPair
from volcano_py.controllers.manager import ControllerManager
from volcano_py.controllers.options import ManagerOptions
from volcano_py.daemon.configuration import Configuration
from volcano_py.daemon.daemon import SchedulerDaemon
from volcano_py.daemon.options import DaemonOptions
from volcano_py.effects import nominations, pod_conditions, podgroup_status, queue_gates, queue_status
from volcano_py.effects.evictor import EvictorOptions
from volcano_py.effects.preparer import PreparerOptions
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.lease import LeaseOptions
from volcano_py.kube.workqueue import WorkQueueOptions
from volcano_py.local.manifests import definitions
from volcano_py.model.decisions import Decision
from volcano_py.runtime.signals import Shutdown
from volcano_py.scheduler import Policy, resolve, run_cycle
from volcano_py.writing import events

_NEVER_S: Final = 1e6
SCHEDULERS: Final = ("scheduler-0", "scheduler-1")
CONTROLLERS: Final = ("controllers-0",)
WEBHOOKS: Final = "webhooks-0"
WEBHOOKS_HOST: Final = "10.0.4.0"
_WEBHOOKS_URL: Final = f"https://{WEBHOOKS_HOST}:8443"
_CERTIFICATE: Final = Path(__file__).parent / "certificate"
"""Valid from 2026 for a hundred years, for this simulation alone: a new pair in each run would be random and slow."""
_FILES: Final = Files(*(_CERTIFICATE / name for name in ("tls.crt", "tls.key", "ca.crt")))
_CONFIGURATIONS: Final = Path(__file__).parents[2] / "manifests" / "webhooks"


@lru_cache(maxsize=1)
def _definitions() -> tuple[dict[str, Any], ...]:
    return tuple(definitions())


_established: Final[dict[str, dict[str, Any]]] = {}
"""The definitions as a server of this process has established them; their schemas never change."""


def serve_definitions(servers: Servers) -> None:
    """Create those CustomResourceDefinitions that do not exist.

    Each simulation gets them without validation and with the schemas of the one before: that is a tenth of its time.
    """
    registry = servers.registry
    for definition in _definitions():
        name = definition["metadata"]["name"]
        if servers.get(DEFINITIONS, name) is None:
            resource = registry.resources.of_kind(definition["apiVersion"], definition["kind"])
            registry.collection(resource).put(object_key(None, name), _definition(registry, resource, definition))


def _definition(registry: Registry, resource: Resource, definition: dict[str, Any]) -> dict[str, Any]:
    """Return a definition that is not in a store yet: an established one again, with a uid and times of its own."""
    known = _established.get(definition["metadata"]["name"])
    if known is None:
        spec = definition["spec"]
        own = {**spec, "names": dict(spec["names"]), "versions": [dict(version) for version in spec["versions"]]}
        draft = {**definition, "metadata": dict(definition["metadata"]), "spec": own}
        known = _established[definition["metadata"]["name"]] = registry.draft_create(resource, None, draft).obj
        return _again(known, known["metadata"])
    return _again(known, metadata.for_create(known["metadata"], resource.strategy.has_generation))


def _again(known: dict[str, Any], meta: dict[str, Any]) -> dict[str, Any]:
    at = meta["creationTimestamp"]
    status = known["status"]
    conditions = [{**condition, "lastTransitionTime": at} for condition in status["conditions"]]
    return {**known, "metadata": dict(meta), "status": {**status, "conditions": conditions}}


@lru_cache(maxsize=1)
def webhook_configurations() -> tuple[dict[str, Any], ...]:
    """Return the webhook configurations of the manifests, without conditions: the embedded server evaluates no CEL."""
    files = sorted(_CONFIGURATIONS.rglob("*.yaml"))
    documents = [document for file in files for document in yaml.safe_load_all(file.read_text())]
    found = [document for document in documents if document["kind"].endswith("WebhookConfiguration")]
    for webhook in (webhook for document in found for webhook in document["webhooks"]):
        webhook.pop("matchConditions", None)
    return tuple(found)


def configure_webhooks(servers: Servers) -> None:
    """Create the webhook configurations; the webhook manager writes its address into them."""
    for configuration in webhook_configurations():
        servers.create(copy.deepcopy(configuration))


class Tokens:
    """The files with tokens of ServiceAccounts: whoever renews them writes a new one before the old one expires."""

    def __init__(self) -> None:
        self.written: dict[str, int] = {}
        """The token in the file of each machine that had more than one so far."""

    def header(self, machine: str) -> str:
        """Return what a process sends that reads its file now."""
        return f"Bearer {machine}.{self.written.get(machine, 1)}"

    def credentials(self, machine: Machine, rng: random.Random) -> Credentials:
        """Return the credentials of a process that starts now."""

        async def read(_: bool) -> str:
            while machine.token_source_hangs:  # noqa: ASYNC110 - it is a number
                await asyncio.sleep(0.5)
            return self.header(machine.name)

        header = self.header(machine.name)
        return Credentials(URL, authorization=header, refresh=read, clock=machine.clock, rng=rng)


_NARROW_NAMES: Final = 4  # that a work queue takes


def _narrow(works: int) -> Mapping[str, Any]:
    """Return write queues that are soon full, in proportion to the work of a schedule.

    New numbers in a reason that do not fit wait for the next minute. So in even narrower queues, the system would come
    to rest late. Binds are left out: a full queue of binds holds up the thread of the cycle.
    """
    return {
        "group_statuses": replace(podgroup_status.DEFAULT_OPTIONS, capacity=works // 2),
        "queue_statuses": replace(queue_status.DEFAULT_OPTIONS, capacity=1),
        "pod_conditions": replace(pod_conditions.DEFAULT_OPTIONS, capacity=works),
        "nominations": replace(nominations.DEFAULT_OPTIONS, capacity=2),
        "queue_gates": replace(queue_gates.DEFAULT_OPTIONS, capacity=2),
        "events": replace(events.DEFAULT_OPTIONS, capacity=works),
        "preparer": PreparerOptions(capacity=2),
        "evictor": EvictorOptions(capacity=40),  # no plan has more victims; a larger plan would never be carried out
    }


def scheduler(
    seed: int,
    conf: ConfSource,
    tokens: Tokens,
    raising: Raising,
    cycle: Callable[..., Any] = run_cycle,
    observer: Observer | None = None,
    *,
    narrow: int = 0,
) -> Callable[[Machine], Any]:
    """Return the program of a scheduler that stands by or leads; ``observer`` is told what it decides.

    ``narrow`` is the number of pieces of work for which its queues are too narrow, 0 for its own queues.
    """

    def raised(snapshot: Any, policy: Policy, *rest: Any) -> Any:
        return cycle(snapshot, raising.within(policy), *rest)

    async def run(machine: Machine) -> int:
        options = DaemonOptions(metrics_address=None, health_address=None, lease=LeaseOptions(), seed=seed % 1000)
        if narrow:
            options = replace(options, **_narrow(narrow))
        file: Any = conf.file()
        rng = generator(seed, f"{machine.name} {machine.starts}")
        try:
            configuration = Configuration(file.load(), file)
        except ConfError:
            return 2  # as vc-scheduler does; a kubelet starts it again
        daemon = SchedulerDaemon(
            tokens.credentials(machine, rng),
            configuration.policy,
            options,
            clock=machine.clock,
            rng=rng,
            configuration=configuration,
            cycle=lambda *given: decide(*given),
        )
        decide = raised if observer is None else observed(daemon, raised, observer)
        if observer is not None:
            observe_assumptions(daemon, observer)
        machine.running, machine.shutdown = daemon, Shutdown()
        return await daemon.run(machine.shutdown)

    return run


class _WithoutRefills(ManagerOptions):
    """Settings in which work queues get no refill: it would hide that a name was lost."""

    __slots__ = ()

    def work_queue(self, workers: int) -> WorkQueueOptions:
        """Return options of work queues whose first refill comes after the end of every simulation."""
        return replace(super().work_queue(workers), refill_every_s=_NEVER_S)


class _Narrow(_WithoutRefills):
    """Settings in which work queues are soon full; they are refilled when names did not fit."""

    __slots__ = ()

    def work_queue(self, workers: int) -> WorkQueueOptions:
        """Return options of work queues that take a few names."""
        return replace(super().work_queue(workers), capacity=_NARROW_NAMES)


def controllers(seed: int, tokens: Tokens, *, narrow: bool = False) -> Callable[[Machine], Any]:
    """Return the program of a controller manager."""

    async def run(machine: Machine) -> int:
        kind = _Narrow if narrow else _WithoutRefills if seed % 2 else ManagerOptions
        options = kind(metrics_address=None, health_address=None, lease=LeaseOptions(name="vc-controller-manager"))
        rng = generator(seed, f"{machine.name} {machine.starts}")
        manager = ControllerManager(tokens.credentials(machine, rng), options, clock=machine.clock, rng=rng)
        machine.running, machine.shutdown = manager, Shutdown()
        return await manager.run(machine.shutdown)

    return run


_KEYS: Final = KeyPair("a private key", "a public key")


@contextmanager
def without_generating_keys() -> Iterator[None]:
    """Give jobs with plugin ssh a pair of keys that is always the same, and costs no time."""
    generate, carrying_out.generate_key_pair = carrying_out.generate_key_pair, lambda: _KEYS
    try:
        yield
    finally:
        carrying_out.generate_key_pair = generate


def webhooks(seed: int, tokens: Tokens) -> Callable[[Machine], Any]:
    """Return the program of the only webhook manager, which therefore needs no lease."""

    async def run(machine: Machine) -> int:
        options = WebhookOptions(
            paths=tuple(PATHS),
            files=_FILES,
            namespace=DEFAULT_NAMESPACE,
            url=_WEBHOOKS_URL,
            server=ServerOptions(host=machine.host, port=8443),
            graceful_s=3.0,
            metrics_address=None,
            health_address=None,
        )
        rng = generator(seed, f"{machine.name} {machine.starts}")
        manager = WebhookManager(tokens.credentials(machine, rng), options, RULES, clock=machine.clock, rng=rng)
        machine.running, machine.shutdown = manager, Shutdown()
        return await manager.run(machine.shutdown)

    return run


@lru_cache(maxsize=32)
def policy_of(text: str) -> Policy:
    """Return the policy of a configuration."""
    return resolve(parse_conf(text, "simulated.conf"))


def rebuilt(servers: Servers) -> ClusterCache:
    """Return a cache that is filled from the true state, as a scheduler that starts now would fill it."""
    cache = ClusterCache()
    for kind in WATCHED_KINDS:
        if kind.sharded_only:
            continue
        for obj in servers.objects(kind.resource.label):
            feeding.added(cache, msgspec.convert(obj, kind.type, strict=False))
    return cache


def of_time(daemon: SchedulerDaemon) -> Memory:
    """Return what only time ends of a scheduler's memory: cool-downs, and plans of evictions under way."""
    memory = daemon.cycles._runner.memory
    return Memory(seen=0, cooldowns=memory.cooldowns, plans=memory.plans)


def seed_of(daemon: SchedulerDaemon) -> int:
    """Return by what number a scheduler decides between equal nodes and pods."""
    return daemon.cycles._runner._seed


def fresh_cycle(
    cache: ClusterCache, text: str, now: datetime, memory: Memory | None = None, seed: int = 0
) -> list[Decision]:
    """Return what a full cycle over a cache decides."""
    found: list[Decision] = []
    clock = CycleClock(now.timestamp())
    run_cycle(cache.snapshot(), policy_of(text), clock, seed, memory or Memory(seen=0), found.extend)
    return found
