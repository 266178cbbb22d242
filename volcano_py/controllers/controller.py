"""What a controller is to the controller manager, and what the manager gives it.

To add a controller:

1. a package here with `decision`, plain functions from objects to writes, and `controller`, a class that watches,
   queues and carries out what the functions say,
2. a line in `volcano_py.controllers.table`,
3. the rights that it needs, in ``manifests/rbac/controllers.yaml``.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from volcano_py.api import keys
from volcano_py.api.scheduling import PodGroup
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

_REFILL_EVERY_S: Final = 60.0


class Controller(Protocol):
    """Keeps one kind of object as it should be. The manager builds it, lets it watch, and starts it once it leads."""

    @property
    def name(self) -> str:
        """Its name in ``--controllers`` and in metrics; the names are Volcano's."""
        ...

    def watch(self, informers: Informers) -> None:
        """Add the informers of what it needs beside PodGroups."""
        ...

    def start(self, supervisor: Supervisor) -> None:
        """Start to work; before, changes are only gathered."""
        ...

    def backlog(self) -> int:
        """Return how many objects wait for their turn or have it now."""
        ...


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """What can be chosen about the controllers themselves. The defaults are those of the command line."""

    scheduler_names: tuple[str, ...] = (keys.SCHEDULER_NAME,)
    default_queue: str = keys.DEFAULT_QUEUE
    inherit_owner_annotations: bool = True
    podgroup_workers: int = 5
    queue_workers: int = 5
    attempts: int = 15
    """Turns in a row that may fail before an object is left to its next change."""
    count_after_s: float = 0.5
    """PodGroups that change within this time cost their queue one write."""

    def work_queue(self, workers: int) -> WorkQueueOptions:
        """Return the options of a work queue with so many workers."""
        return WorkQueueOptions(workers=workers, attempts=self.attempts, refill_every_s=_REFILL_EVERY_S)


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What every controller may use; one for all controllers of a process."""

    client: ApiClient
    """For reading; writes go through ``writer``, which limits their rate."""
    writer: Writer
    groups: View[PodGroup]
    """All PodGroups; the manager watches them for everybody."""
    events: EventRecorder
    metrics: ControllerMetrics
    options: ControllerOptions
    clock: Clock
    rng: random.Random
    """For the spread of delays only."""
    served: Callable[[Resource], bool]
    """Says whether the API server knows a watched resource; without it there is nothing to do."""
