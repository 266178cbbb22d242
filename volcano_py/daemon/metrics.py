"""All metrics of a scheduler, in one registry."""

from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from volcano_py.metrics.conf import ConfMetrics
from volcano_py.metrics.cycle import CycleMetrics, VerifyMetrics, WaitingMetrics
from volcano_py.metrics.effects import BindMetrics, WriteQueueMetrics
from volcano_py.metrics.evictions import EvictionMetrics
from volcano_py.metrics.jobs import JobMetrics
from volcano_py.metrics.loads import LoadMetrics
from volcano_py.metrics.preparing import PrepareMetrics
from volcano_py.metrics.queue_shares import QueueMetrics
from volcano_py.metrics.state import StateMetrics


@dataclass(frozen=True, slots=True)
class DaemonMetrics:
    """One object per subject; each part of the daemon counts in those that concern it."""

    state: StateMetrics
    conf: ConfMetrics
    cycles: CycleMetrics
    verifying: VerifyMetrics
    waiting: WaitingMetrics
    queues: QueueMetrics
    jobs: JobMetrics
    binds: BindMetrics
    preparing: PrepareMetrics
    evictions: EvictionMetrics
    write_queues: WriteQueueMetrics
    loads: LoadMetrics

    @classmethod
    def of(cls, registry: CollectorRegistry) -> "DaemonMetrics":
        """Register all of them."""
        return cls(
            state=StateMetrics(registry),
            conf=ConfMetrics(registry),
            cycles=CycleMetrics(registry),
            verifying=VerifyMetrics(registry),
            waiting=WaitingMetrics(registry),
            queues=QueueMetrics(registry),
            jobs=JobMetrics(registry),
            binds=BindMetrics(registry),
            preparing=PrepareMetrics(registry),
            evictions=EvictionMetrics(registry),
            write_queues=WriteQueueMetrics(registry),
            loads=LoadMetrics(registry),
        )
