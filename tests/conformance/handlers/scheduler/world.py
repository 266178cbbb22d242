"""Build a cache, a policy and a session from a row's objects and configuration, without defaulting or admission."""

import math
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from tests.conformance.handlers.scheduler.fake import Fake
from tests.conformance.operations import NotSupportedError
from tests.conformance.row_files import NOW, Case
from volcano_py.api.core import Namespace, Node, Pod, ResourceQuota
from volcano_py.api.keys import QUEUE_ADMISSION
from volcano_py.api.meta import ObjectMeta
from volcano_py.api.policy import PodDisruptionBudget
from volcano_py.api.scheduling import PodGroup, PriorityClass, Queue
from volcano_py.api.shard import NodeShard
from volcano_py.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from volcano_py.api.topology import NODE_MEMBER, ExactMatch, HyperNode, HyperNodeMember, HyperNodeSpec, MemberSelector
from volcano_py.cache.cluster import ClusterCache
from volcano_py.conf.schema import FLAGS, ActionConf, PluginConf, SchedulerConf, Where
from volcano_py.framework.session import Session
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.model.decisions import Decision
from volcano_py.model.loads import NodeLoad
from volcano_py.plugins import PLUGINS
from volcano_py.runtime.clock import FakeClock
from volcano_py.scheduler import Policy, resolve
from volcano_py.snapshot.columns import Snapshot
from volcano_py.testing import added

OBJECTS: Final[Mapping[str, type[Any]]] = {
    "namespaces": Namespace,
    "priorityClasses": PriorityClass,
    "queues": Queue,
    "resourceQuotas": ResourceQuota,
    "podDisruptionBudgets": PodDisruptionBudget,
    "pdbs": PodDisruptionBudget,  # the abbreviation for persistent volumes
    "podGroups": PodGroup,
    "nodes": Node,
    "storageClasses": StorageClass,
    "pvs": PersistentVolume,
    "pvcs": PersistentVolumeClaim,
    "pods": Pod,
}
"""Objects for the cache, in the order in which it receives them."""

TO_COME: Final = {
    "resourceClaims": "resource claims",
    "resourceSlices": "resource claims",
    "deviceClasses": "resource claims",
}
"""Input that the scheduler does not read yet; the result of such a row would be wrong."""

TOPOLOGY: Final = frozenset({"hyperNodes", "hyperNodesSetByTier", "realNodesSet"})
INPUTS: Final = frozenset({*OBJECTS, *TO_COME, *TOPOLOGY, "clock", "ignoreProvisioners", "nodeUsage", "sharding"})
CLOCK: Final = CycleClock(now=NOW.timestamp())
_SCHEDULER: Final = frozenset({"tiers", "configurations", "effectivePlugins", "featureGates"})
_GATES: Final = {  # fixed as in Kubernetes 1.36 and Volcano; rows with claims are refused separately
    "DynamicResourceAllocation": (True, False),
    "InPlacePodVerticalScaling": (True,),
    "PodLevelResources": (True,),
    "PodSchedulingReadiness": (True,),
    QUEUE_ADMISSION: (True, False),
}
_LEFT_OUT: Final = "not exist here yet"  # how plugins warn about a known argument without effect
_HERE: Final = Where("row", 1)


def load(case: Case) -> Snapshot:
    """Return the columns of a row's objects."""
    for key, what in TO_COME.items():
        if key in case.input:
            raise NotSupportedError(f"input {key}: the scheduler does not know {what} yet")
    # Objects that name no scheduler belong to this one.
    gates = (case.scheduler or {}).get("featureGates", {})
    admission = gates.get(QUEUE_ADMISSION, False)
    cache = ClusterCache(
        scheduler_names=("", "volcano"),
        queue_admission=admission,
        clock=FakeClock(NOW),
        ignored_provisioners=case.input.get("ignoreProvisioners", ()),
    )
    for key, kind in OBJECTS.items():
        added(cache, *(msgspec.convert(with_uid(written), kind) for written in case.input.get(key, ())))
    added(cache, *_hyper_nodes(case.input))
    _divide(cache, case.input.get("sharding") or {})
    assert not cache.unreadable()
    now = clock_of(case).now
    cache.measured({name: _load_of(written, now) for name, written in case.input.get("nodeUsage", {}).items()}, 30.0)
    snapshot = cache.snapshot()
    for shape in snapshot.shapes:
        if shape is not None and shape.unsupported:
            raise NotSupportedError(f"a pod has {', '.join(shape.unsupported)}: never placed yet")
    return snapshot


def _hyper_nodes(written: Mapping[str, Any]) -> list[HyperNode]:
    """Return the HyperNodes of a row; without objects, those that have the listed tiers and nodes."""
    if "hyperNodes" in written:
        given = written["hyperNodes"]
        objects = given.values() if isinstance(given, Mapping) else given
        return [msgspec.convert(with_uid(one), HyperNode) for one in objects]
    nodes = written.get("realNodesSet", {})
    return [
        HyperNode(
            metadata=ObjectMeta(name=name, uid=f"/{name}"),
            spec=HyperNodeSpec(tier=int(tier), members=[_one_node(node) for node in nodes.get(name, ())]),
        )
        for tier, names in written.get("hyperNodesSetByTier", {}).items()
        for name in names
    ]


def _one_node(name: str) -> HyperNodeMember:
    return HyperNodeMember(type=NODE_MEMBER, selector=MemberSelector(exact_match=ExactMatch(name=name)))


def _divide(cache: ClusterCache, sharding: Mapping[str, Any]) -> None:
    """Give this scheduler a shard, if the row's mode divides nodes."""
    if sharding.get("mode", "none") not in ("hard", "soft"):
        return
    meta = {"metadata": {"name": sharding["name"]}}
    cache.use_shard(sharding["name"], strict=sharding["mode"] == "hard")
    added(cache, msgspec.convert({**with_uid(meta), "spec": {"nodesDesired": sharding.get("nodes") or []}}, NodeShard))


def clock_of(case: Case) -> CycleClock:
    """Return the frozen time of a row: a time of day from the row, else the runner's."""
    if "clock" not in case.input:
        return CLOCK
    hour, minute, *second = (int(part) for part in case.input["clock"].split(":"))
    return CycleClock(now=NOW.replace(hour=hour, minute=minute, second=sum(second)).timestamp())


def _load_of(written: Mapping[str, Any], now: float) -> NodeLoad:
    """Return the load of a node: of its averages by period, only that of ten minutes is used."""
    cpu, memory = (
        average.get("10m", 0.0) if isinstance(average, Mapping) else average
        for average in (written.get("cpuAverage", 0.0), written.get("memoryAverage", 0.0))
    )
    age = written.get("ageSeconds", 0.0)
    return NodeLoad(cpu, memory, -math.inf if age == "never" else now - age)


def policy_of(case: Case) -> Policy:
    """Return the policy of a row: an absent flag is off, and only effective plugins are included."""
    scheduler = case.scheduler or {}
    unknown = scheduler.keys() - _SCHEDULER
    assert not unknown, f"scheduler has keys that are not in the format: {sorted(unknown)}"
    for gate, on in scheduler.get("featureGates", {}).items():
        if on not in _GATES.get(gate, ()):
            raise NotSupportedError(f"feature gate {gate} cannot be set to {on}")
    effective = set(scheduler["effectivePlugins"])
    tiers = (
        tuple(_plugin(entry) for entry in tier["plugins"] if entry["name"] in effective) for tier in scheduler["tiers"]
    )
    actions = tuple(
        ActionConf(entry["name"], _HERE, entry.get("arguments", {})) for entry in scheduler.get("configurations", ())
    )
    conf = SchedulerConf("row", case.actions, _HERE, tuple(tiers), actions)
    policy = resolve(conf, PLUGINS | {Fake.name: Fake.of(case)})
    if policy.missing:
        raise NotSupportedError(f"waits for {', '.join(policy.missing)}")
    for warning in policy.warnings:
        if _LEFT_OUT in warning:
            raise NotSupportedError(warning)
    return policy


def open_session(case: Case, emit: Callable[[tuple[Decision, ...]], None] = lambda batch: None) -> Session:
    """Open the session of a row and run nothing."""
    policy = policy_of(case)
    return Session(
        snapshot=load(case),
        tiers=policy.instantiate(),
        actions=frozenset(policy.action_names),
        clock=clock_of(case),
        seed=0,
        memory=Memory(),
        emit=emit,
        static_filters=policy.static_filters,
    )


def _plugin(entry: Mapping[str, Any]) -> PluginConf:
    flags = {key: value for key, value in entry.items() if key not in ("name", "arguments")}
    unknown = flags.keys() - FLAGS
    assert not unknown, f"plugin {entry['name']} has unknown flags: {sorted(unknown)}"
    arguments = entry.get("arguments", {})
    plugin = PLUGINS.get(entry["name"])
    for key, value in arguments.items():
        known = plugin is None or any(fnmatchcase(key, pattern) for pattern in plugin.arguments)
        if not known and value:  # 0 and false switch off a missing feature
            raise NotSupportedError(f"plugin {entry['name']} does not know the argument {key} yet")
    return PluginConf(entry["name"], _HERE, {**dict.fromkeys(FLAGS, False), **flags}, arguments)


def with_uid(written: dict[str, Any]) -> dict[str, Any]:
    """Give an object without a uid a unique one: the cache takes equal uids for one object."""
    meta = written["metadata"]
    return {**written, "metadata": {"uid": f"{meta.get('namespace', '')}/{meta['name']}", **meta}}
