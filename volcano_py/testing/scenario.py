"""Scenarios: run cycles over wire objects until nothing changes any more, and return the resulting pods.

Every round takes a snapshot, runs one cycle and carries out its decisions, as a cluster without failures would. A bound
pod runs at once. Statuses and conditions are written at once. An evicted pod terminates for a while, disappears, and
comes back pending under another uid. When a round decides nothing and no pod is terminating, a number of further rounds
must decide nothing either: a scheduler that alternates between placing and evicting is not settled.
"""

import copy
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np

from volcano_py.api import keys
from volcano_py.api.core import Namespace, Node, Pod, ResourceQuota
from volcano_py.api.policy import PodDisruptionBudget
from volcano_py.api.scheduling import PodGroup, PriorityClass, Queue
from volcano_py.api.storage import PersistentVolume, PersistentVolumeClaim
from volcano_py.api.topology import HyperNode
from volcano_py.cache.binds import Refused
from volcano_py.cache.changes import Change
from volcano_py.cache.evictions import Plan
from volcano_py.cache.feeding import Known, prepared, why_pending, with_status, without_queue_gate
from volcano_py.cache.state import SnapshotToken
from volcano_py.conf.loader import parse_conf
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.state.clock import CycleClock
from volcano_py.framework.state.memory import Memory
from volcano_py.framework.state.report import JobReport
from volcano_py.model.decisions import (
    Bind,
    BindClaim,
    Decision,
    Evict,
    LiftGate,
    Nominate,
    PrepareStep,
    RecordEvent,
    SetPodCondition,
    SetPodGroupStatus,
)
from volcano_py.model.rejections import Reason, Rejection
from volcano_py.model.resources import EPSILON
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler import Policy, resolve, run_cycle
from volcano_py.testing.cluster import Object, a_cluster, added, deleted, flat, modified
from volcano_py.testing.leaving import Leaving, made_again
from volcano_py.testing.objects import EPOCH, NAMESPACE, Job

DEFAULT_ACTIONS: Final = "enqueue, allocate"
DEFAULT_PLUGINS: Final = ("priority", "gang", "predicates", "nodeorder")

_ROUNDS: Final = 100  # far more than any scenario needs
_SETTLE: Final = 5

PluginEntry = str | type[Plugin] | Mapping[str, Any]
"""A plugin by name, a plugin class, or either as an entry of a conf:
``{"name": "binpack", "arguments": {"binpack.weight": 5}}``."""


class NotSettled(AssertionError):
    """A scenario does not settle, or does not stay settled."""


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a job or its tasks wait."""

    message: str
    rejections: tuple[Rejection, ...]

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """All given reasons, once each, in order."""
        found = (
            reason
            for one in self.rejections
            for reason in (*(refusal.reason for refusal in one.refusals), *([one.blocked] if one.blocked else []))
        )
        return tuple(dict.fromkeys(found))


@dataclass(slots=True)
class Result:
    """The state of a settled scenario. Names in other namespaces than the default are ``ns/name``."""

    placements: dict[str, str] = field(default_factory=dict)  # pods bound so far and not evicted since -> node
    running_or_bound: dict[str, str] = field(default_factory=dict)  # every pod on a node now, also from the start
    batches: list[list[str]] = field(default_factory=list)  # the pods bound together, in order
    prepared: list[PrepareStep] = field(default_factory=list)  # the steps that prepared the binds, in order
    evictions: list[list[str]] = field(default_factory=list)  # the pods evicted together, in order
    evicted: list[Evict] = field(default_factory=list)  # the same as decisions, with action and beneficiary
    nominated: dict[str, str] = field(default_factory=dict)  # waiting pod -> its nominated node
    phases: dict[str, str] = field(default_factory=dict)  # PodGroup -> phase
    conditions: dict[str, str] = field(default_factory=dict)  # pod -> message of PodScheduled=False
    jobs: dict[str, JobReport] = field(default_factory=dict)  # reports of the last cycle
    events: list[RecordEvent] = field(default_factory=list)
    rounds: int = 0  # number of cycles until nothing changed

    def why_not(self, job: str) -> WhyNot:
        """Return why a job waits; raise LookupError if the last cycle did not report it as waiting."""
        report = self.jobs.get(job)
        if report is None or not report.message:
            raise LookupError(f"job {job} does not wait; waiting jobs: {sorted(self.waiting())}")
        return WhyNot(report.message, report.rejections)

    def waiting(self) -> list[str]:
        """Return the jobs that the last cycle left waiting."""
        return [name for name, report in self.jobs.items() if report.message]


class Scenario:
    """A cluster that carries out decisions and can be changed between runs.

    An evicted pod is terminating in the next ``grace`` cycles. Then it is gone, and with ``recreated`` it comes back
    pending under another uid.
    """

    def __init__(
        self,
        *objects: Object,
        queues: Iterable[Queue] | None = None,
        actions: str = DEFAULT_ACTIONS,
        plugins: Sequence[PluginEntry] | Sequence[Sequence[PluginEntry]] = DEFAULT_PLUGINS,
        conf: str | None = None,
        seed: int = 0,
        grace: int = 1,
        recreated: bool = True,
        **options: Any,
    ) -> None:
        self._policy = a_policy(actions, plugins) if conf is None else resolve(parse_conf(conf, "conf"))
        self._seed = seed
        self._memory = Memory()
        self._pods: dict[tuple[str, str], Pod] = {}
        self._groups: dict[tuple[str, str], PodGroup] = {}
        self._others: dict[tuple[type, str, str], Known] = {}  # by type, namespace and name
        self._leaving = Leaving(grace)
        self._recreated = recreated
        self._result = Result()
        self._cycles = 0
        self._waited_s = 0.0
        self._repeats_until = -math.inf  # until when cycles decide nothing, as the last one said, if nothing changes
        self._all_reported = True  # whether every waiting task has got its reason
        self._made = 0  # number of pods that came back
        self.cache = a_cluster(queues=queues, **options)
        self.cache.on_change(self._has_changed)
        self.add(*objects)

    def add(self, *objects: Object) -> None:
        """Add objects, or replace those that exist."""
        for one in flat(objects):
            known = self._remember(one)
            (modified if known else added)(self.cache, one)

    def _has_changed(self, _: frozenset[Change]) -> None:
        self._repeats_until = -math.inf

    def finish(self, *names: str, phase: str = "Succeeded") -> None:
        """End pods by their names, or all pods of jobs."""
        for pod in self._select(names):
            self._change_pod(pod, status=msgspec.structs.replace(pod.status, phase=phase))

    def terminate(self, *names: str) -> None:
        """Mark pods by their names, or all pods of jobs, as being deleted; they hold their resources until `delete`."""
        for pod in self._select(names):
            self._change_pod(pod, metadata=msgspec.structs.replace(pod.metadata, deletion_timestamp=EPOCH))

    def delete(self, *names: str) -> None:
        """Delete pods by their names, all pods of jobs, or nodes."""
        nodes = [name for name in names if (Node, "", name) in self._others]
        for name in nodes:
            deleted(self.cache, self._others.pop((Node, "", name)))
        for pod in self._select([name for name in names if name not in nodes]):
            del self._pods[pod.metadata.namespace, pod.metadata.name]
            deleted(self.cache, pod)

    def wait(self, seconds: float) -> None:
        """Let seconds pass without a cycle; each cycle takes one second, too."""
        self._waited_s += seconds

    def run(self, settle_rounds: int = _SETTLE) -> Result:
        """Run cycles until one decides nothing, then more that must decide nothing, either; return the state."""
        full = self._overfull_nodes()
        for self._result.rounds in range(1, _ROUNDS + 1):
            decisions = self._cycle()
            if not decisions and not self._leaving and self._all_reported:
                break
            more = self._overfull_nodes() - full
            if more:
                raise AssertionError(f"more was placed than fits on {sorted(more)}: {decisions}")
        else:
            raise NotSettled(f"cycles still decide something after {_ROUNDS} rounds: {decisions}")
        self.settle(settle_rounds)
        return self._picture()

    def step(self, cycles: int = 1) -> Result:
        """Run that many cycles, whatever they decide; return the state."""
        for _ in range(cycles):
            self._cycle()
        return self._picture()

    def settle(self, cycles: int) -> None:
        """Run that many more cycles; raise NotSettled if one of them decides anything."""
        for again in range(cycles):
            decisions = self._cycle()
            if decisions:
                raise NotSettled(f"settled after {self._result.rounds} rounds, but {again + 1} later: {decisions}")

    def _picture(self) -> Result:
        """Return the present state."""
        pods = {_name(*key): pod for key, pod in sorted(self._pods.items())}
        self._result.running_or_bound = {
            name: pod.spec.node_name
            for name, pod in pods.items()
            if pod.spec.node_name and pod.status.phase not in ("Succeeded", "Failed")
        }
        self._result.nominated = {
            name: pod.status.nominated_node_name for name, pod in pods.items() if pod.status.nominated_node_name
        }
        self._result.phases = {_name(*key): group.status.phase for key, group in sorted(self._groups.items())}
        self._result.conditions = {
            name: condition.message
            for name, pod in pods.items()
            for condition in pod.status.conditions
            if condition.type == keys.CONDITION_POD_SCHEDULED
        }
        return copy.deepcopy(self._result)

    def _cycle(self) -> list[Decision]:
        self._remove_evicted()
        batches: list[tuple[Decision, ...]] = []
        token, snapshot = self.cache.token, self.cache.snapshot()
        repeats_until, self._repeats_until = self._repeats_until, -math.inf
        self._cycles += 1
        now = EPOCH.timestamp() + self._cycles + self._waited_s
        clock = CycleClock(now)
        self._memory, report = run_cycle(snapshot, self._policy, clock, self._seed, self._memory, batches.append)
        self._all_reported = report.tells_in is None
        if batches and now < repeats_until:
            raise AssertionError(f"the last cycle said that the next one would decide nothing; it decides {batches}")
        self._repeats_until = report.repeats_until
        if report.failures:
            raise AssertionError(f"plugins failed: {report.failures}")
        self._result.jobs = {_name(*key): job for key, job in report.jobs.items()}
        for batch in batches:
            self._evict(batch, token)
            binds = tuple(decision for decision in batch if isinstance(decision, Bind))
            if binds:
                answers = self.cache.binds.assume(binds, token)
                self._bind(binds, [answer for answer in answers if isinstance(answer, Refused)])
            for decision in batch:
                self._carry_out(decision)
        self.cache.validate()
        return [decision for batch in batches for decision in batch]

    def _bind(self, binds: tuple[Bind, ...], refused: list[Refused]) -> None:
        if refused:
            raise AssertionError(f"the cache refused binds decided on its present state: {refused}")
        self._result.batches.append([_name(bind.task.namespace, bind.task.name) for bind in binds])
        for bind in binds:
            self._result.prepared += bind.prepare
            for step in bind.prepare:
                self._prepare(step)
            self.cache.binds.acknowledged(bind.task)
            pod = self._pods[bind.task.namespace, bind.task.name]
            self._result.placements[_name(bind.task.namespace, bind.task.name)] = bind.node
            status = msgspec.structs.replace(pod.status, phase="Running", conditions=[], nominated_node_name="")
            self._change_pod(pod, spec=msgspec.structs.replace(pod.spec, node_name=bind.node), status=status)

    def _prepare(self, step: PrepareStep) -> None:
        claim = self._others.get((PersistentVolumeClaim, step.namespace, step.claim))
        if not isinstance(claim, PersistentVolumeClaim):
            raise AssertionError(f"a bind is prepared by {step}, but there is no such claim")
        name = step.volume if isinstance(step, BindClaim) else ""
        volume = self._others.get((PersistentVolume, "", name))
        known = volume if isinstance(volume, PersistentVolume) else None
        self.add(*reversed(prepared(self.cache, step, claim, known)))

    def _evict(self, batch: tuple[Decision, ...], token: SnapshotToken) -> None:
        evictions = tuple(decision for decision in batch if isinstance(decision, Evict))
        nominations = tuple(decision for decision in batch if isinstance(decision, Nominate))
        if evictions:
            objection = self.cache.evictions.objection(Plan(evictions, nominations), token)
            if objection:
                raise AssertionError(f"the cache refused a plan for its present state: {objection}: {evictions}")
            self.cache.evictions.assume(evictions)
            self._result.evictions.append([_name(evict.task.namespace, evict.task.name) for evict in evictions])
            self._result.evicted += evictions
        for evict in evictions:
            pod = self._pods[evict.task.namespace, evict.task.name]
            self._result.placements.pop(_name(evict.task.namespace, evict.task.name), None)
            self.add(self._leaving.begin(pod))

    def _remove_evicted(self) -> None:
        """Delete evicted pods that have terminated, and create the pods that replace them."""
        for key in self._leaving.gone():
            pod = self._pods.pop(key, None)
            if pod is not None:
                deleted(self.cache, pod)
                if self._recreated:
                    self._made += 1
                    self.add(made_again(pod, self._made))

    def _carry_out(self, decision: Decision) -> None:
        match decision:
            case SetPodGroupStatus():
                self._write_group(decision)
            case SetPodCondition():
                pod = self._pods.get((decision.task.namespace, decision.task.name))
                if pod is not None and not pod.spec.node_name:
                    status = msgspec.structs.replace(pod.status, conditions=[why_pending(decision)])
                    self._change_pod(pod, status=status)
            case Nominate():
                pod = self._pods.get((decision.task.namespace, decision.task.name))
                if pod is not None and not pod.spec.node_name:
                    status = msgspec.structs.replace(pod.status, nominated_node_name=decision.node)
                    self._change_pod(pod, status=status)
            case LiftGate():
                pod = self._pods.get((decision.task.namespace, decision.task.name))
                if pod is not None:
                    self.add(without_queue_gate(pod))
            case RecordEvent():
                self._result.events.append(decision)

    def _write_group(self, decision: SetPodGroupStatus) -> None:
        group = self._groups[decision.job]
        self.add(with_status(group, decision))

    def _change_pod(self, pod: Pod, **fields: Any) -> None:
        self.add(msgspec.structs.replace(pod, **fields))

    def _remember(self, one: Known) -> bool:
        """Store the present state of an object; say whether it was known."""
        meta = one.metadata
        key = (meta.namespace, meta.name)
        if isinstance(one, Pod):
            known = key in self._pods
            self._pods[key] = one
        elif isinstance(one, PodGroup):
            known = key in self._groups
            self._groups[key] = one
        else:
            known = (type(one), *key) in self._others
            self._others[type(one), *key] = one
        return known

    def _select(self, names: Iterable[str]) -> list[Pod]:
        selected: list[Pod] = []
        for name in names:
            found = [
                pod
                for (namespace, pod_name), pod in self._pods.items()
                if name
                in (_name(namespace, pod_name), _name(namespace, pod.metadata.annotations.get(keys.GROUP_NAME, "")))
            ]
            if not found:
                raise LookupError(f"there is no pod or job {name}; pods: {sorted(_name(*key) for key in self._pods)}")
            selected += found
        return selected

    def _overfull_nodes(self) -> set[str]:
        nodes = self.cache.snapshot().nodes
        overfull = np.flatnonzero((nodes.idle <= -EPSILON).any(axis=0))
        return {nodes.names[int(row)] for row in overfull}


def run_scenario(
    *,
    nodes: Iterable[Node] = (),
    jobs: Iterable[Job] = (),
    pods: Iterable[Pod] = (),
    groups: Iterable[PodGroup] = (),
    priority_classes: Iterable[PriorityClass] = (),
    facts: Iterable[Namespace | ResourceQuota | PodDisruptionBudget | HyperNode] = (),
    settle_rounds: int = _SETTLE,
    **options: Any,
) -> Result:
    """Run cycles over these objects until nothing changes any more; further options are those of `Scenario`."""
    return Scenario(*priority_classes, *facts, *nodes, *groups, *jobs, *pods, **options).run(settle_rounds)


def a_policy(
    actions: str = DEFAULT_ACTIONS,
    plugins: Sequence[PluginEntry] | Sequence[Sequence[PluginEntry]] = DEFAULT_PLUGINS,
) -> Policy:
    """Return the policy of a conf with these actions and plugins: one tier, or a sequence of tiers."""
    one_tier = all(isinstance(entry, str | type | Mapping) for entry in plugins)
    tiers: Sequence[Any] = [plugins] if one_tier else plugins
    known = dict(PLUGINS)
    written = [{"plugins": [_written(entry, known) for entry in tier]} for tier in tiers]
    return resolve(parse_conf(json.dumps({"actions": actions, "tiers": written}), "scenario"), known)


def _written(entry: PluginEntry, known: dict[str, type[Plugin]]) -> dict[str, Any]:
    """Return an entry in the form of a conf, and register a plugin class by its name."""
    written = dict(entry) if isinstance(entry, Mapping) else {"name": entry}
    plugin = written["name"]
    if isinstance(plugin, type) and issubclass(plugin, Plugin):
        known[plugin.name] = plugin
        written["name"] = plugin.name
    return written


def _name(namespace: str, name: str) -> str:
    return name if namespace == NAMESPACE else f"{namespace}/{name}"
