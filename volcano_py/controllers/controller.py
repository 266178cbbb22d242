"""The interface of a controller, and what the controller manager gives it.

To add a controller:

1. a package here with `decision`, plain functions from objects to writes, and `controller`, a class that watches,
   queues and carries out the writes,
2. a line in `volcano_py.controllers.table`,
3. its rights, in ``manifests/rbac/controllers.yaml``.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from volcano_py.api import keys
from volcano_py.api.batch import Job
from volcano_py.api.scheduling import PodGroup, PriorityClass, Queue
from volcano_py.controllers.excuses import Excuses
from volcano_py.controllers.metrics import ControllerMetrics
from volcano_py.controllers.view import View
from volcano_py.controllers.writes import Writer
from volcano_py.kube.client import ApiClient
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import Resource
from volcano_py.kube.workqueue import WorkQueueOptions
from volcano_py.runtime.clock import Clock
from volcano_py.runtime.supervisor import Supervisor
from volcano_py.writing.events import EventRecorder

REFILL_EVERY_S: Final = 60.0
"""Seconds between two refills of a work queue."""
UNSERVED_S: Final = 10.0
"""After which a look is repeated that found the resource of its objects not served."""
SOON_S: Final = 1.5 * REFILL_EVERY_S
"""A look that is due later needs no place in a work queue, whose size is limited: a refill before it brings it back."""


class Controller(Protocol):
    """Brings objects into their desired state. The manager builds it, calls `watch`, and `start` when it leads."""

    @property
    def name(self) -> str:
        """Its name in ``--controllers`` and in metrics; the names are Volcano's."""
        ...

    def watch(self, informers: Informers) -> None:
        """Add the informers of the objects that it needs in addition to PodGroups."""
        ...

    def start(self, supervisor: Supervisor) -> None:
        """Start to reconcile; until then, changes are only collected."""
        ...

    def backlog(self) -> int:
        """Return how many objects wait for a turn that is due, or are being reconciled."""
        ...


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """Settings of the controllers. The defaults are those of the command line."""

    scheduler_names: tuple[str, ...] = (keys.SCHEDULER_NAME,)
    default_queue: str = keys.DEFAULT_QUEUE
    inherit_owner_annotations: bool = True
    job_workers: int = 32
    podgroup_workers: int = 5
    queue_workers: int = 5
    cron_job_workers: int = 3
    garbage_workers: int = 1
    attempts: int = 15
    """After so many failures in a row, an object is not tried again until it changes."""
    count_after_s: float = 0.5
    """All changes of PodGroups within this time lead to one write of their queue."""

    def work_queue(self, workers: int) -> WorkQueueOptions:
        """Return the options of a work queue with this number of workers."""
        return WorkQueueOptions(workers=workers, attempts=self.attempts, refill_every_s=REFILL_EVERY_S)


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What every controller may use; one for all controllers of a process."""

    client: ApiClient
    """For reading; writes go through ``writer``, which limits their rate."""
    writer: Writer
    groups: View[PodGroup]
    """All PodGroups; the manager watches them for all controllers."""
    jobs: View[Job]
    """All jobs of Volcano; the manager watches them if a controller subscribes."""
    queues: View[Queue]
    """All queues, on the same terms."""
    classes: View[PriorityClass]
    """All priority classes, on the same terms."""
    excuses: Excuses
    """For controllers that write objects which name a queue or a priority class."""
    events: EventRecorder
    metrics: ControllerMetrics
    options: ControllerOptions
    clock: Clock
    rng: random.Random
    """Only for the spread of delays."""
    served: Callable[[Resource], bool]
    """Says whether the API server serves a watched resource; if not, there is nothing to reconcile."""
