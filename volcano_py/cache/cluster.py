"""The cluster as the scheduler knows it: fed by watches, asked for snapshots, told of binds.

One thread, the event loop's, owns it. Snapshots are private copies and may go anywhere.
"""

import random
from collections.abc import Collection, Mapping

import numpy as np

from volcano_py.api import keys
from volcano_py.cache.assumed_nominations import AssumedNominations
from volcano_py.cache.bind_backoff import BindBackoff
from volcano_py.cache.binds import Binds
from volcano_py.cache.changes import ChangeCallback
from volcano_py.cache.evictions import Evictions
from volcano_py.cache.fact_events import FactEventHandlers
from volcano_py.cache.group_events import PodGroupEvents, PriorityClassEvents, QueueEvents
from volcano_py.cache.groups import PriorityTable
from volcano_py.cache.node_events import NodeEvents
from volcano_py.cache.nominations import Nominations
from volcano_py.cache.pod_events import PodEvents
from volcano_py.cache.series_events import SeriesEvents
from volcano_py.cache.state import ClusterState, SnapshotToken
from volcano_py.cache.unreadable_objects import Unreadable, UnreadableCallback, UnreadableObjects
from volcano_py.ledger.ledger import Ledger, Patience
from volcano_py.model.decisions import Decision
from volcano_py.model.loads import NodeLoad
from volcano_py.model.objects import JobKey, TaskTrait
from volcano_py.model.statuses import TaskStatus
from volcano_py.runtime.clock import Clock, RealClock
from volcano_py.snapshot.columns import Snapshot
from volcano_py.snapshot.store import ClusterStore


class ClusterCache:
    """Takes events of its resources, gives snapshots, and knows which binds are assumed.

    ``pods``, ``nodes``, ``groups``, ``queues``, ``priority_classes``, and those in ``facts`` and ``series``, are the
    event handlers of their reflectors. ``binds``, ``evictions`` and ``nominations`` know what is decided and not yet
    shown by the watch.
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
        self._clock: Clock = clock or RealClock()
        self._state = ClusterState()
        self._bind_backoff = BindBackoff(self._state, rng or random.Random())
        self._unreadable = UnreadableObjects()
        priorities = PriorityTable()
        self.nodes = NodeEvents(self._state, self._unreadable)
        self.groups = PodGroupEvents(self._state, self._unreadable, priorities, default_queue)
        self.queues = QueueEvents(self._state, self._unreadable, self.groups)
        self.priority_classes = PriorityClassEvents(self._state, self._unreadable, priorities, self.groups)
        self.facts = FactEventHandlers(self._state, self._unreadable)
        self.series = SeriesEvents(self._state, self._unreadable)
        assumed_binds, assumed_evictions = Ledger(patience), Ledger(patience, what="eviction")
        assumed_nominations = AssumedNominations()
        self.pods = PodEvents(
            self._state,
            self._unreadable,
            assumed_binds,
            assumed_evictions,
            assumed_nominations,
            self.nodes,
            self.groups,
            scheduler_names,
            self._bind_backoff.over,
            queue_admission=queue_admission,
        )
        self.binds = Binds(self._state, assumed_binds, self.pods, self._clock, self._bind_backoff)
        self.evictions = Evictions(self._state, assumed_evictions, self.pods, self._clock)
        self.nominations = Nominations(assumed_nominations, self.pods, self._clock)

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

    def validate(self) -> None:
        """Raise AssertionError if what is assumed and what is counted contradict each other."""
        self.binds.validate()
        self.evictions.validate()
        records = (record for record in self._state.store.snapshot().tasks.records if record)
        places = [place for record in records if (place := self.store.task(record.uid)) and place.node]
        bound = sum(place.status is not TaskStatus.BINDING for place in places)
        if bound != self._state.bound_pods:
            raise AssertionError(f"{bound} pods are bound to nodes, {self._state.bound_pods} were counted")
