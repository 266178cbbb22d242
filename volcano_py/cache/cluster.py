"""The cluster as the scheduler knows it: fed by watches, asked for snapshots, told of binds.

One thread, the event loop's, owns it. Snapshots are private copies and may go anywhere.
"""

import random
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from volcano_py.api import keys
from volcano_py.api.core import Pod
from volcano_py.cache.bind_backoff import BindBackoff
from volcano_py.cache.binds import Assumed, Binds, Refused
from volcano_py.cache.changes import ChangeCallback
from volcano_py.cache.evictions import Evictions, Plan
from volcano_py.cache.fact_events import budget_events, namespace_events, quota_events, shard_events
from volcano_py.cache.group_events import PodGroupEvents, PriorityClassEvents, QueueEvents
from volcano_py.cache.groups import PriorityTable
from volcano_py.cache.node_events import NodeEvents
from volcano_py.cache.pod_events import PodEvents
from volcano_py.cache.series_events import SeriesEvents
from volcano_py.cache.state import ClusterState, SnapshotToken
from volcano_py.cache.unreadable_objects import Unreadable, UnreadableCallback, UnreadableObjects
from volcano_py.ledger.ledger import Entry, Ledger, Patience
from volcano_py.model.decisions import Bind, Decision, Evict, Nominate
from volcano_py.model.loads import NodeLoad
from volcano_py.model.objects import JobKey, TaskRef, TaskTrait
from volcano_py.model.statuses import TaskStatus
from volcano_py.runtime.clock import Clock, RealClock
from volcano_py.snapshot.columns import Snapshot
from volcano_py.snapshot.store import ClusterStore


class ClusterCache:
    """Takes events of its resources, gives snapshots, and knows which binds are assumed.

    ``pods``, ``nodes``, ``groups``, ``queues``, ``priority_classes``, ``namespaces``, ``quotas``, ``budgets`` and
    ``shards`` are the event handlers of their reflectors.
    """

    def __init__(
        self,
        *,
        scheduler_names: Collection[str] = (keys.SCHEDULER_NAME,),
        default_queue: str = keys.DEFAULT_QUEUE,
        queue_admission: bool = False,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        patience: Patience | None = None,
    ) -> None:
        self.ledger = Ledger(patience)
        """Assumed binds."""
        self.evictions = Ledger(patience, what="eviction")
        """Assumed evictions."""
        self._clock: Clock = clock or RealClock()
        self._state = ClusterState()
        self._bind_backoff = BindBackoff(self._state, rng or random.Random())
        self._unreadable = UnreadableObjects()
        priorities = PriorityTable()
        self.nodes = NodeEvents(self._state, self._unreadable)
        self.groups = PodGroupEvents(self._state, self._unreadable, priorities, default_queue)
        self.queues = QueueEvents(self._state, self._unreadable, self.groups)
        self.priority_classes = PriorityClassEvents(self._state, self._unreadable, priorities, self.groups)
        self.namespaces = namespace_events(self._state, self._unreadable)
        self.quotas = quota_events(self._state, self._unreadable)
        self.budgets = budget_events(self._state, self._unreadable)
        self.shards = shard_events(self._state, self._unreadable)
        self.series = SeriesEvents(self._state, self._unreadable)
        self.pods = PodEvents(
            self._state,
            self._unreadable,
            self.ledger,
            self.evictions,
            self.nodes,
            self.groups,
            scheduler_names,
            self._bind_backoff.over,
            queue_admission=queue_admission,
        )
        self._binds = Binds(self._state, self.ledger, self.pods, self._clock)
        self._evictions = Evictions(self._state, self.evictions, self.pods, self._clock)

    # What there is

    @property
    def store(self) -> ClusterStore:
        """The columns that snapshots are taken of; only to be looked at."""
        return self._state.store

    @property
    def token(self) -> SnapshotToken:
        """Which state this is; read it together with `snapshot` and give it back to `assume`."""
        return SnapshotToken(self._state.revision)

    def snapshot(self) -> Snapshot:
        """Return a private copy of everything; pods whose binds failed a moment ago are marked."""
        found = self._state.store.snapshot()
        if self._bind_backoff:
            held = self._bind_backoff.held(self._clock.monotonic())
            found.tasks.traits[self._state.store.rows_of(held)] |= np.uint8(TaskTrait.BACKING_OFF)
        return found

    def generation(self, key: JobKey) -> int:
        """Return a number that grows with every change of a PodGroup's demand or of its pods, our binds excepted."""
        return self._state.generation(key)

    def bound_pods(self) -> int:
        """Return how many pods stand on a node and have not ended, those that cannot be read included.

        An API server that is asked for pods with ``spec.nodeName!=`` and a phase other than Succeeded and Failed
        counts the same, once every event has arrived.
        """
        return self._state.bound_pods + self.pods.unreadable_bound_pods()

    def unreadable(self) -> tuple[Unreadable, ...]:
        """Return what cannot be read now, by kind, namespace and name."""
        return self._unreadable.entries()

    def measured(self, loads: Mapping[str, NodeLoad], interval_s: float) -> None:
        """Take the loads of nodes that were measured, and how often that happens; others keep what they had."""
        self._state.store.loads.set(loads, interval_s)

    # Who wants to know

    def on_change(self, callback: ChangeCallback) -> None:
        """Tell a callback after every batch of events what kinds of changes it held; see `changes.HELPFUL`."""
        self._state.subscribe(callback)

    def use_shard(self, name: str, *, strict: bool) -> None:
        """Divide nodes among schedulers: ours are those of the NodeShard of this name (`model.facts.Shard`)."""
        self._state.store.facts.use_shard(name, strict=strict)

    def on_unreadable(self, callback: UnreadableCallback) -> None:
        """Tell a callback of every object that cannot be read, once per reason."""
        self._unreadable.subscribe(callback)

    def to_write(self, decision: Decision) -> Decision | None:
        """Return a decision as it is to be written to the API server, None if there is nothing to write.

        A gang by annotations has no object: its status is kept here. Its pods are told what is wrong with their
        numbers. Every other decision is returned as it is.
        """
        return self.groups.to_write(decision)

    # Binds

    def assume(self, batch: tuple[Bind, ...], decided_at: SnapshotToken) -> list[Assumed | Refused]:
        """Count the binds of one batch on their nodes, those of a job all or none; return an answer for each."""
        return self._binds.assume(batch, decided_at)

    def sent(self, task: TaskRef) -> None:
        """Note that the request to bind a pod is on its way."""
        self._binds.sent(task)

    def bound(self, task: TaskRef) -> None:
        """Note that the API server has bound a pod; the task stays BINDING until the watch shows it."""
        self._binds.acknowledged(task)

    def objection_to_sending(self, bind: Bind) -> str:
        """Return why a bind that was assumed must not be sent any more, "" if it may."""
        return self._binds.objection_to_sending(bind)

    def bind_failed(self, task: TaskRef, why: str) -> None:
        """Let a task wait again, for a while, because its bind failed; nothing if the watch has told better."""
        entry = self.ledger.get(task.uid)
        if entry is not None and entry.job is not None:
            self._bind_backoff.failed(entry.job, task.uid, entry.assumed_at, self._clock.monotonic())
        self._binds.failed(task, why)

    def bind_withdrawn(self, task: TaskRef, why: str) -> None:
        """Let a task wait again because its bind was not sent; nothing if the watch has told better."""
        self._binds.failed(task, why)

    def expired(self, now: float | None = None) -> list[Entry]:
        """Return the binds that the watch should have confirmed by now; read their pods again and `resolve` them."""
        return self._binds.expired(self._clock.monotonic() if now is None else now)

    def resolve(self, task: TaskRef, pod: Pod | None) -> None:
        """Take a pod as it was read again, None if there is none of this name, as the truth about its bind."""
        self._binds.resolve(task, pod)

    # Evictions

    def objection(self, plan: Plan, decided_at: SnapshotToken) -> str:
        """Return why a plan to evict does not hold any more, "" if it does."""
        return self._evictions.objection(plan, decided_at)

    def assume_evicted(self, evictions: Sequence[Evict]) -> None:
        """Count the victims of a plan to which there is no objection as terminating."""
        self._evictions.assume(evictions)

    def plan_refused(self) -> None:
        """Tell those who start cycles that a plan was refused."""
        self._evictions.refused()

    def evicting(self, task: TaskRef) -> None:
        """Note that the request to delete a pod is on its way."""
        self._evictions.sent(task)

    def evicted(self, task: TaskRef) -> None:
        """Note that the API server has taken the deletion; the task stays terminating until the watch shows it."""
        self._evictions.acknowledged(task)

    def eviction_failed(self, task: TaskRef, why: str) -> None:
        """Let a pod stay because its eviction failed; nothing if the watch has meanwhile told better."""
        self._evictions.failed(task, why)

    def expired_evictions(self, now: float | None = None) -> list[Entry]:
        """Return the evictions that the watch should have confirmed by now; read their pods and `resolve_eviction`."""
        return self._evictions.expired(self._clock.monotonic() if now is None else now)

    def resolve_eviction(self, task: TaskRef, pod: Pod | None) -> None:
        """Take a pod as it was read again, None if there is none of this name, as the truth about its eviction."""
        self._evictions.resolve(task, pod)

    # Nominations

    def nominate(self, nomination: Nominate) -> bool:
        """Count a waiting pod as nominated to a node; False if it waits no longer or is nominated there already."""
        return self.pods.nominate(nomination.task.uid, nomination.node, self._clock.monotonic())

    def nomination_failed(self, task: TaskRef) -> None:
        """Count a pod as nominated to what the watch says: the nomination could not be written."""
        self.pods.nomination_failed(task.uid)

    def end_nominations(self, now: float | None = None) -> None:
        """Let nominations that the watch should have shown by now count no more."""
        self.pods.end_nominations(self._clock.monotonic() if now is None else now)

    def validate(self) -> None:
        """Raise AssertionError if what is assumed and what is counted contradict each other."""
        self.ledger.validate()
        self.evictions.validate()
        self._validate_evictions()
        assumed = {entry.task.uid: entry.node for entry in self.ledger}
        columns = self.snapshot().tasks
        records = [(record, status) for record, status in zip(columns.records, columns.status, strict=False) if record]
        binding = {record.uid for record, status in records if status == TaskStatus.BINDING}
        if binding != set(assumed):
            raise AssertionError(f"BINDING are {sorted(binding)}, the ledger has {sorted(assumed)}")
        for uid, node in assumed.items():
            place = self.store.task(uid)
            if place is None or place.node != node:
                raise AssertionError(f"the ledger has pod {uid} on node {node}, the store {place}")
        stand = sum(1 for record, _ in records if (place := self.store.task(record.uid)) and place.node)
        if stand - len(binding) != self._state.bound_pods:
            raise AssertionError(f"{stand - len(binding)} pods stand on nodes, {self._state.bound_pods} were counted")

    def _validate_evictions(self) -> None:
        going = {entry.task.uid: entry.node for entry in self.evictions}
        if going.keys() != self.pods.staying():
            raise AssertionError(f"evictions are assumed of {sorted(going)}, counted so {sorted(self.pods.staying())}")
        for uid, node in going.items():
            place = self.store.task(uid)
            if place is None or (place.status, place.node) != (TaskStatus.RELEASING, node):
                raise AssertionError(f"the eviction of pod {uid} from node {node} is assumed, the store has {place}")
