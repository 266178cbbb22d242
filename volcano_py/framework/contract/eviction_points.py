"""The extension points about evictions: whom plugins allow to evict, whom they protect, and for whom.

Each class names the rule that combines the answers of several plugins; see `framework.contract.extension_points`.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from volcano_py.framework.contract.extension_point import ExtensionPoint
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.model.arrays import Bools, Floats


class Purpose(Enum):
    """From whom a preemptor takes room."""

    PREEMPT = "preempt"  # from jobs of the same queue, or from the preemptor's own job
    RECLAIM = "reclaim"  # from other queues


@dataclass(frozen=True, slots=True)
class Preemptor:
    """For whom tasks are to be evicted."""

    purpose: Purpose
    job: JobInfo
    queue: QueueInfo
    task: TaskInfo | None = None  # None: the job as a whole (gang actions)
    priority: int = 0  # of the task; without a task it has no meaning
    gains: Floats | None = None  # (n_resources,), the most that the plan gives the job; None: what the task requests
    given: Floats | None = None  # (n_resources,), the part of ``gains`` already promised to the job; None: nothing


class Preemptable(ExtensionPoint):
    """Which tasks of the same queue may be evicted for the preemptor?

    Rule, as for `Reclaimable` and `UnifiedEvictable`: each group of candidates is decided separately. Within a tier the
    answers are intersected; a plugin that abstains does not count. The first tier whose intersection is not empty
    decides. A `VictimFilter` then protects some of these tasks.
    """

    switch = "enablePreemptable"
    shortcuts: ClassVar = {"safe_from": "preemptable"}

    @abstractmethod
    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools | None:
        """Return for each candidate whether it may be evicted, shape (n,); None for no opinion.

        Whatever you count from one candidate to the next starts again with each group. The order is the order given;
        `VictimCandidates` has the sums.
        """

    def safe_from(self, candidates: VictimCandidates) -> Floats | None:
        """Return for each candidate the highest priority of a job for which it is never evicted, shape (n,).

        It is infinite for a candidate that is never evicted. The candidate's own job does not count. None: the plugin
        cannot say. It only saves questions, and only if all plugins are ours.
        """
        return None


class Reclaimable(ExtensionPoint):
    """Which tasks of other queues may be evicted for the preemptor? Rule: see `Preemptable`."""

    switch = "enableReclaimable"

    @abstractmethod
    def reclaimable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools | None:
        """Return for each candidate whether it may be evicted, shape (n,); None for no opinion."""


class UnifiedEvictable(ExtensionPoint):
    """Which tasks may be evicted for a whole gang? It has no switch. Rule: see `Preemptable`, with a single group."""

    switch = ""

    @abstractmethod
    def unified_evictable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools | None:
        """Return for each candidate whether it may be evicted, shape (n,); None for no opinion."""


class VictimTasks(ExtensionPoint):
    """Which running tasks must be evicted now, whoever gets their room?

    Rule: answers are united within a tier, and the first tier that names a task decides. A `VictimFilter` then protects
    some of these tasks.
    """

    switch = "enabledVictim"

    @abstractmethod
    def victim_tasks(self, candidates: VictimCandidates) -> Bools:
        """Return for each candidate whether it must be evicted, shape (n,); all candidates are one group."""


class VictimFilter(ExtensionPoint):
    """Which tasks are protected from eviction, whatever other plugins answer in any tier? Rule: any says so.

    It has no switch. The filter of a plugin that answers none of the four questions above applies to all of them. Any
    other filter applies to those of the four that its plugin answers and that are switched on for the plugin. Plugins
    are asked again without the protected tasks, so nobody counts those as evicted.
    """

    renamed: ClassVar = {"spared": "protected"}
    switch = ""
    about_queues: ClassVar[bool] = False
    """Whether an answer depends on the job and request of a candidate and on the candidates evicted before it. Then a
    protected task also protects the equal tasks of its job behind it. Such filters are asked last."""
    first_say: ClassVar[bool] = False
    """Whether the plugin protects nobody if plugins of an earlier tier vote: the configuration puts these first."""

    @abstractmethod
    def protected(self, preemptor: Preemptor | None, candidates: VictimCandidates) -> Bools:
        """Return for each candidate whether it is protected, shape (n,); without a preemptor nobody gets the room.

        Count what is used up by one eviction after the other (a budget) within a group, in the order given.
        """


class Preemptive(ExtensionPoint):
    """May the queue take room from other queues for these tasks? Rule: all must say yes."""

    switch = "enablePreemptive"
    shortcuts: ClassVar = {"sated_queues": "preemptive"}

    @abstractmethod
    def preemptive(self, queue: QueueInfo, tasks: Sequence[tuple[TaskInfo, int]]) -> bool:
        """Say whether the queue may hold these tasks besides what it holds now; each comes with its number."""

    def sated_queues(self, task: TaskInfo) -> Bools | None:
        """Return queues that may not take room even for one task like this now, (n_queues,); None if it is unknown.

        More tasks must not change a yes here. It only saves questions, and only if all plugins are ours.
        """
        return None


class VictimQueueOrder(ExtensionPoint):
    """Which of two queues loses tasks first? Rule: first non-zero comparison, then the reverse of `QueueOrder`."""

    switch = ""
    shortcuts: ClassVar = {"victim_queue_keys": "victim_queue_order"}

    @abstractmethod
    def victim_queue_order(self, left: QueueInfo, right: QueueInfo, preemptor: QueueInfo) -> float:
        """Return a negative number if left loses tasks first, a positive one if right does, zero for no opinion."""

    def victim_queue_keys(self, preemptor: QueueInfo) -> Floats | None:
        """Return keys of all queues, most important first, (n_keys, n_queues), that order as `victim_queue_order` does.

        The lowest loses tasks first. None: queues are compared two by two.
        """
        return None

    def loses_first(self, preemptor: QueueInfo, candidates: VictimCandidates) -> Bools | None:
        """Return which candidates (n,) are evicted before all others, whatever their queues; None for none."""
        return None
