"""The cluster as the scheduler knows it: it takes in watch events and decisions, and gives out snapshots.

The thread of the event loop owns it. Snapshots are private copies, which any thread may use.
"""

import random
from collections.abc import Collection, Mapping

import numpy as np

from volcano_py.api import keys
from volcano_py.cache.assumed_nominations import AssumedNominations
from volcano_py.cache.bind_backoff import BindBackoff
from volcano_py.cache.binds import Binds
from volcano_py.cache.changes import Change, ChangeCallback
from volcano_py.cache.eviction_backoff import EvictionBackoff
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
from volcano_py.cache.volumes import StorageEvents, Volumes
from volcano_py.ledger.ledger import Ledger, Patience
from volcano_py.model.decisions import Decision
from volcano_py.model.loads import NodeLoad
from volcano_py.model.objects import JobKey, TaskRef, TaskTrait
from volcano_py.model.statuses import TaskStatus
from volcano_py.runtime.clock import Clock, RealClock
from volcano_py.snapshot.columns import Snapshot
from volcano_py.snapshot.store import ClusterStore


class ClusterCache:
    """Takes in events, gives out snapshots, and knows what is assumed.

    Event handlers: ``pods``, ``nodes``, ``groups``, ``queues``, ``priority_classes``, and those in ``facts``,
    ``series`` and ``storage``. What is decided but not yet shown by the watch: ``binds``, ``evictions`` and
    ``nominations``.
    """

    def __init__(
        self,
        *,
        scheduler_names: Collection[str] = (keys.SCHEDULER_NAME,),
        default_queue: str = keys.DEFAULT_QUEUE,
        queue_admission: bool = False,
        only_unschedulable: bool = False,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        patience: Patience | None = None,
        ignored_provisioners: Collection[str] = (),
    ) -> None:
        self._clock: Clock = clock or RealClock()
        self._state = ClusterState()
        self._state.store.volumes.ignored_provisioners = frozenset(ignored_provisioners)
        rng = rng or random.Random()
        self._bind_backoff = BindBackoff(self._state, rng)
        self._unreadable = UnreadableObjects()
        priorities = PriorityTable()
        self.nodes = NodeEvents(self._state, self._unreadable)
        self.groups = PodGroupEvents(self._state, self._unreadable, priorities, default_queue, scheduler_names)
        self.queues = QueueEvents(self._state, self._unreadable, self.groups)
        self.priority_classes = PriorityClassEvents(self._state, self._unreadable, priorities, self.groups)
        self.facts = FactEventHandlers(self._state, self._unreadable)
        self.series = SeriesEvents(self._state, self._unreadable)
        self.storage = StorageEvents(self._state, self._unreadable)
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
            self._bind_backoff.end,
            queue_admission=queue_admission,
            only_unschedulable=only_unschedulable,
        )
        self.binds = Binds(self._state, assumed_binds, self.pods, self._clock, self._bind_backoff)
        backoff = EvictionBackoff(self._state.store, rng)
        self.evictions = Evictions(self._state, assumed_evictions, self.pods, self._clock, backoff)
        self.nominations = Nominations(assumed_nominations, self.pods, self._clock)

    # State

    @property
    def store(self) -> ClusterStore:
        """The columns that snapshots are copied from; callers only read them."""
        return self._state.store

    @property
    def volumes(self) -> Volumes:
        """Claims and volumes as the watch shows them, and notices of their changes."""
        return self.storage.known

    @property
    def token(self) -> SnapshotToken:
        """The revision of the state; read it together with `snapshot`, and pass it on with the decisions."""
        return SnapshotToken(self._state.revision)

    def snapshot(self) -> Snapshot:
        """Return a private copy of everything; pods in bind back-off have the trait BACKING_OFF."""
        self.binds.promises.prune()
        self.storage.check()
        found = self._state.store.snapshot()
        self.facts.tell(found.facts.hyper_nodes)
        if self._bind_backoff:
            backing_off = self._bind_backoff.backing_off(self._clock.monotonic())
            found.tasks.traits[self._state.store.rows_of(backing_off)] |= np.uint8(TaskTrait.BACKING_OFF)
        return found

    def generation(self, key: JobKey) -> int:
        """Return a number that grows with every change of a PodGroup's demand or of its pods, except our own binds."""
        return self._state.generation(key)

    def bound_pods(self) -> int:
        """Return how many pods have a node and have not ended, including those that cannot be read.

        Once every event has arrived, this equals the number of pods that the API server lists with ``spec.nodeName!=``
        and a phase other than Succeeded and Failed.
        """
        return self._state.bound_pods + self.pods.unreadable_bound_pods()

    def unreadable(self) -> tuple[Unreadable, ...]:
        """Return the objects that cannot be read now, sorted by kind, namespace and name."""
        return self._unreadable.entries()

    def measured(self, loads: Mapping[str, NodeLoad], interval_s: float) -> None:
        """Take in measured loads of nodes, and the interval of the measurements; other nodes keep their last load."""
        self._state.store.loads.set(loads, interval_s)

    # Callbacks and settings

    def on_change(self, callback: ChangeCallback) -> None:
        """Call ``callback`` after every batch of events with the kinds of changes in it; see `changes.HELPFUL`."""
        self._state.subscribe(callback)

    def write_lost(self, lost: TaskRef | JobKey | str | None = None) -> None:
        """Note that something decided will not be written, so that a cycle decides it again.

        It is about one pod, one PodGroup or one queue; None stands for all of them, and costs a full cycle. What is
        decided about queues is decided in every cycle.
        """
        store = self._state.store
        match lost:
            case None:
                store.job_marks.all_changed()
                store.shown.nothing_awaited()
            case TaskRef(uid=uid):
                for row in store.rows_of((uid,)):
                    store.shown.pods.forget(row)
            case JobKey() if (job_row := store.job_marks.row(lost)) is not None:
                store.shown.groups.forget(job_row)
        self._state.note(Change.WRITE_LOST)
        self._state.notify()

    def use_shard(self, name: str, *, strict: bool) -> None:
        """Divide nodes among schedulers: this one uses those of the NodeShard ``name``, see `model.facts.Shard`."""
        self._state.store.facts.use_shard(name, strict=strict)

    def on_unreadable(self, callback: UnreadableCallback) -> None:
        """Call ``callback`` for every object that cannot be read, once per reason."""
        self._unreadable.subscribe(callback)

    def to_write(self, decision: Decision) -> Decision | None:
        """Return a decision as it must be written to the API server, None if there is nothing to write.

        A gang by annotations has no object, so its status is kept here. The conditions of its pods also say what is
        wrong with their numbers. Every other decision is returned unchanged.
        """
        return self.groups.to_write(decision)

    def validate(self) -> None:
        """Raise AssertionError if the store contradicts what is assumed, or the count of bound pods."""
        self.binds.validate()
        self.evictions.validate()
        records = (record for record in self._state.store.snapshot().tasks.records if record)
        places = [place for record in records if (place := self.store.task(record.uid)) and place.node]
        bound = sum(place.status is not TaskStatus.BINDING for place in places)
        if bound != self._state.bound_pods:
            raise AssertionError(f"{bound} pods are on nodes, {self._state.bound_pods} were counted")
