"""The settings of a scheduler process."""

from dataclasses import dataclass, field
from typing import Final

from volcano_py.api import keys
from volcano_py.effects import nominations, pod_conditions, podgroup_status, queue_gates, queue_status, shard_status
from volcano_py.effects.backpressure import DEFAULT_CAPACITY
from volcano_py.effects.binder import BinderOptions
from volcano_py.effects.evictor import EvictorOptions
from volcano_py.effects.pod_conditions import PodConditionOptions
from volcano_py.effects.preparer import PreparerOptions
from volcano_py.kube.lease import LeaseOptions
from volcano_py.kube.reflector import ReflectorOptions
from volcano_py.runtime.options import ListenAddress
from volcano_py.writing import events
from volcano_py.writing.write_queue import WriteQueueOptions

DEFAULT_METRICS_ADDRESS: Final = ListenAddress("", 8080)
DEFAULT_HEALTH_ADDRESS: Final = ListenAddress("", 11251)


@dataclass(frozen=True, slots=True)
class ShardOptions:
    """How nodes are divided among schedulers (`model.facts.Shard`)."""

    name: str = keys.SCHEDULER_NAME
    """Name of our NodeShard."""
    strict: bool = False
    """True: our pods never go to other nodes; False: they do if ours have no room."""


@dataclass(frozen=True, slots=True)
class DaemonOptions:
    """Settings of one scheduler. The defaults are those of the command line."""

    scheduler_name: str = keys.SCHEDULER_NAME
    default_queue: str = keys.DEFAULT_QUEUE
    queue_admission: bool = False
    """Whether pods carry a gate of their queue until the scheduler removes it (`framework.placing.queue_admission`)."""
    ignored_provisioners: tuple[str, ...] = ()
    """CSI drivers whose volumes do not count towards the limits of nodes."""
    seed: int = 0
    period_s: float = 1.0
    """Longest time between two cycles while something is pending and the next cycle could decide something.

    If it could not, it runs after ten periods, within 10 s; without pending tasks no cycle runs.
    """
    debounce_s: float = 0.02
    """One cycle sees all changes within this time."""
    metrics_address: ListenAddress | None = DEFAULT_METRICS_ADDRESS
    health_address: ListenAddress | None = DEFAULT_HEALTH_ADDRESS
    remote_debug: bool = False
    """Whether `/debug/...` also answers other machines."""
    barrier_patience_s: float = 10.0
    """How long the start barrier waits until the watch shows the bound pods of a fresh list.

    After that pods are listed anew. The first cycle waits until all are known.
    """
    stop_patience_s: float = 10.0
    """How long binds and evictions may take to complete when the process is asked to end."""
    flush_patience_s: float = 2.0
    """How long statuses and events may then take."""
    recheck_every_s: float = 1.0
    shard: ShardOptions | None = None
    """Which part of the nodes is ours; None: all nodes."""
    lease: LeaseOptions | None = None
    """The lease of the leader election; None: this scheduler always acts."""
    conf_poll_s: float = 0.5
    """How often the configuration file is checked; a change is loaded when a second check finds the same content."""
    freeze_garbage: bool = False
    """Exclude the objects of the first lists from garbage collections, in the whole Python process."""
    bind_capacity: int = DEFAULT_CAPACITY
    binder: BinderOptions = field(default_factory=BinderOptions)
    preparer: PreparerOptions = field(default_factory=PreparerOptions)
    evictor: EvictorOptions = field(default_factory=EvictorOptions)
    reflectors: ReflectorOptions = field(default_factory=ReflectorOptions)
    group_statuses: WriteQueueOptions = podgroup_status.DEFAULT_OPTIONS
    queue_statuses: WriteQueueOptions = queue_status.DEFAULT_OPTIONS
    pod_conditions: PodConditionOptions = pod_conditions.DEFAULT_OPTIONS
    nominations: WriteQueueOptions = nominations.DEFAULT_OPTIONS
    queue_gates: WriteQueueOptions = queue_gates.DEFAULT_OPTIONS
    shard_status: WriteQueueOptions = shard_status.DEFAULT_OPTIONS
    events: WriteQueueOptions = events.DEFAULT_OPTIONS
