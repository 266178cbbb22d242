"""The extension points: what the framework asks, what an answer means, and the conf switch that silences it.

How the answers of several plugins combine is written once, in `framework.contract.combine`, and named here in each
class. A switch that is absent in a loaded conf is on.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from volcano_py.framework.contract.normalization import NormalizedScore
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.retired import rename_methods
from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.rejections import Reason
from volcano_py.model.shape import Shape
from volcano_py.snapshot.columns import JobColumns, NodeColumns, TaskColumns

Verdicts = NDArray[np.int16]
"""One verdict per node: 0 passes, i > 0 refuses for the i-th of the plugin's reasons."""


class Vote(IntEnum):
    """An opinion on a job."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


class ExtensionPoint(ABC):
    """A question the framework asks plugins."""

    renamed: ClassVar[Mapping[str, str]] = {}  # old -> new names of its methods, see `framework.retired`
    switch: ClassVar[str]  # the conf flag that silences a plugin on this point, "" for none
    also: ClassVar[str] = ""  # another flag that, left on, keeps the plugin from being silenced

    def __init_subclass__(cls, **options: Any) -> None:
        """Let methods under old names answer."""
        super().__init_subclass__(**options)
        rename_methods(cls, {old: new for base in cls.__mro__ for old, new in getattr(base, "renamed", {}).items()})


class JobOrder(ExtensionPoint):
    """Which job of a queue goes first. Rule: first difference decides; then creation time, then namespace/name."""

    switch = "enableJobOrder"

    @abstractmethod
    def job_order(self, jobs: JobColumns) -> Floats:
        """Return one key per job of the view, shape (n_jobs,); the lowest goes first.

        A key may depend on the job and on what it holds now; it is asked again whenever the job has changed.
        """


class TaskOrder(ExtensionPoint):
    """Which task of a job goes first. Rule: first difference decides; then number in the name, creation time, uid."""

    switch = "enableTaskOrder"

    @abstractmethod
    def task_order(self, tasks: TaskColumns) -> Floats:
        """Return one key per task of the view, shape (n_tasks,); the lowest goes first."""


class QueueOrder(ExtensionPoint):
    """Which queue goes first. Rule: first non-zero comparison decides; then creation time, then name."""

    switch = "enableQueueOrder"

    @abstractmethod
    def queue_order(self, left: QueueInfo, right: QueueInfo) -> float:
        """Return a negative number if left goes first, a positive one if right does, zero for no opinion."""

    def queue_keys(self) -> Sequence[Floats | Bools] | None:
        """Return keys of all queues, most important first, each (n_queues,), that say now what `queue_order` says.

        The lowest goes first. None: the order is no matter of keys, and queues are compared two by two, which takes as
        many questions as there are queues, each time.
        """
        return None


class NamespaceOrder(ExtensionPoint):
    """Which namespace of a queue goes first, before the order of jobs counts in it? It is off unless switched on.

    Rule: first difference decides; then the name. Without such a plugin a queue does not look at namespaces.
    """

    switch = "enableNamespaceOrder"

    @abstractmethod
    def namespace_order(self, queue: QueueInfo, namespaces: Sequence[str]) -> Floats:
        """Return one key per namespace, shape (n_namespaces,); the lowest goes first. Asked anew before every turn."""


class JobValid(ExtensionPoint):
    """Can the job be scheduled at all? Rule: all must pass, the first refusal is the answer. It has no switch."""

    switch = ""

    @abstractmethod
    def job_valid(self, job: JobInfo) -> Reason | None:
        """Return why not, None if it can."""


class JobEnqueueable(ExtensionPoint):
    """May a pending job's pods be made and placed? Rule: vote."""

    switch = "enableJobEnqueued"

    @abstractmethod
    def job_enqueueable(self, job: JobInfo) -> Vote | Reason:
        """Return an opinion; a reason is a rejection that users are told of."""


class JobEnqueued(ExtensionPoint):
    """A pending job has been let in, whoever decided it. Rule: everybody is told."""

    switch = "enableJobEnqueued"

    @abstractmethod
    def job_enqueued(self, job: JobInfo) -> None:
        """Count the job in."""


class JobReady(ExtensionPoint):
    """May what is placed be committed? Rule: all must say yes; without any such plugin the answer is yes."""

    switch = "enableJobReady"

    @abstractmethod
    def missing(self, job: JobInfo) -> int:
        """Return 0 if the job is ready, else a number of tasks below which it cannot become ready (at least 1)."""


class JobPipelined(ExtensionPoint):
    """May a job that is not ready keep what it was promised for this session? Rule: vote."""

    switch = "enableJobPipelined"

    @abstractmethod
    def job_pipelined(self, job: JobInfo) -> Vote:
        """Return an opinion."""


class Overused(ExtensionPoint):
    """Has a queue had enough? Rule: any says yes."""

    switch = "enabledOverused"

    @abstractmethod
    def overused(self, queue: QueueInfo) -> bool:
        """Say whether the queue gets nothing more in this session."""

    def why_overused(self, queue: QueueInfo) -> Reason | None:
        """Return what users are told of a queue that has had enough; None for a text without numbers."""
        return None


class Allocatable(ExtensionPoint):
    """How many more tasks may a queue hold? Rule: all must allow, so the smallest number counts."""

    switch = "enabledAllocatable"

    @abstractmethod
    def allocatable(self, queue: QueueInfo, task: TaskInfo, wanted: int) -> int:
        """Return how many tasks like this one, at most ``wanted``, the queue may take now."""

    def why_not_allocatable(self, queue: QueueInfo, task: TaskInfo, asked: Floats, given: Floats) -> Reason | None:
        """Return what users are told when the queue may not take one more task like this; None for a general text.

        ``asked`` is what its job lacks altogether, ``given`` the part of it that counts as held by now, (n_resources,).
        """
        return None


class StaticPredicate(ExtensionPoint):
    """Can a task of this shape ever run on the node, as long as the node's record stays? Rule: first refusal.

    Answers are kept over many cycles, for shapes of one `static_part`, and asked again only for nodes whose record
    changed.
    """

    switch = "enablePredicate"
    static_reasons: ClassVar[tuple[Reason, ...]]

    @abstractmethod
    def static_predicate(self, shape: Shape, nodes: NodeColumns) -> Verdicts:
        """Return one verdict per node of the view, shape (n_nodes,), out of ``static_reasons``."""

    def static_part(self, shape: Shape) -> Hashable:
        """Return what of a shape the verdicts depend on: pods that differ in nothing but their requests share them."""
        return shape


class SeesEvictions(ExtensionPoint):
    """Are a plugin's predicates asked what they say without the pods that may go? No method answers this.

    Rule: every plugin for itself. Only ``enableTopologyAwarePreemption`` minds (Volcano: SimulateRemoveTask): a node
    that a plugin without this refuses is not tried then. ``enabledAllocatable`` leaves it on too.
    """

    switch = "enablePreemptable"
    also = "enabledAllocatable"


class Predicate(SeesEvictions):
    """Can the task run on the node now? Rule: first refusal. Resources are the framework's own check."""

    switch = "enablePredicate"
    also = ""
    reasons: tuple[Reason, ...]  # of the class, or of an instance if they depend on its arguments
    early: ClassVar[int] = 0
    """How many of the reasons stand before the plugin's static ones: users are told of them beside a static one."""

    @abstractmethod
    def predicate(self, task: TaskInfo, nodes: NodeColumns) -> Verdicts:
        """Return one verdict per node of the view, shape (n_nodes,), out of ``reasons``."""

    def refusals(self, task: TaskInfo, nodes: NodeColumns) -> Bools:
        """Return for each reason and node whether it refuses, shape (n_reasons, n_nodes): what users are told.

        Override it where several reasons may hold for one node.
        """
        verdicts = self.predicate(task, nodes)
        return np.asarray(verdicts == np.arange(1, len(self.reasons) + 1)[:, None])


class InterPodFilter(Protocol):
    """Where one shape may stand beside the pods of a session."""

    own_pods_matter: bool
    """Whether a task of the shape that finds its place may change the answer for the next one."""

    def allowed(self) -> Bools:
        """Return where it may stand now, shape (n_nodes,); the same array as long as nothing has changed."""

    def unresolvable(self) -> Bools:
        """Return where it may not stand now whoever goes, shape (n_nodes,): refused for a reason not resolvable."""


class InterPodPredicate(ExtensionPoint):
    """May the task stand on the node, as pods stand there and on other nodes? Rule: all must say yes.

    Asked only about shapes with terms of their own or meant by others' (`Shape.has_inter_pod_terms`), and asked again
    after every placement. Such a plugin is a `Predicate` too: there its ``refusals`` name the reasons of both.
    """

    renamed: ClassVar = {"neighbour_filter": "inter_pod_filter"}
    switch = "enablePredicate"

    @abstractmethod
    def inter_pod_filter(self, task: TaskInfo) -> InterPodFilter | None:
        """Return the filter of a shape for this session, None if no pod makes a difference to it."""


class InterPodScores(Protocol):
    """How good nodes are for one shape, as pods stand there and on other nodes."""

    def scores(self, group: Bools) -> Floats:
        """Return scores among a group of candidates, weights applied, shape (n_nodes,); of no meaning outside it."""


class InterPodOrder(ExtensionPoint):
    """How good is the node among the candidates, as pods stand there and on other nodes? Rule: sum.

    Asked only about shapes with terms of their own or meant by others', and asked again after every placement.
    """

    renamed: ClassVar = {"neighbour_scores": "inter_pod_scores"}
    switch = "enableNodeOrder"

    @abstractmethod
    def inter_pod_scores(self, task: TaskInfo) -> InterPodScores | None:
        """Return the scores of a shape for this session, None if no pod makes a difference to it."""


class NodeOrder(ExtensionPoint):
    """How good is the node? Rule: sum; weights are already applied, 100 times the weight is the best."""

    switch = "enableNodeOrder"

    @abstractmethod
    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        """Return one score per node of the view, shape (n_nodes,); the view may be one row, a group or all nodes."""


class NormalizedOrder(ExtensionPoint):
    """How good is the node among the candidates? Rule: sum, added to that of `NodeOrder`; weights are applied here."""

    switch = "enableNodeOrder"

    @abstractmethod
    def normalized_orders(self) -> Sequence[NormalizedScore]:
        """Return the scorers; asked once, when the session is open."""


class PlacementWatch(ExtensionPoint):
    """Tasks have taken or given back their nodes in this session. Rule: everybody is told. It has no switch.

    What a plugin counts here it changes through the journal of the session, so that an undo restores it by itself:
    nobody is told of one. A watcher may not refuse.
    """

    switch = ""

    @abstractmethod
    def placed(self, job_row: int, task: TaskInfo, tasks: Rows, nodes: Rows) -> None:
        """Count tasks of one job and kind in, allocated or promised, task i on node i; nodes may repeat."""

    @abstractmethod
    def freed(self, job_row: int, task: TaskInfo, tasks: Rows, nodes: Rows) -> None:
        """Count tasks of one job and kind out, because they are to be evicted."""


class JobStarving(ExtensionPoint):
    """Does a job need more than it has, so that others may be evicted for it?

    Rule: the first tier in which any plugin answers decides, and all in it must say yes; nobody answers: no.
    """

    switch = "enableJobStarving"

    @abstractmethod
    def job_starving(self, job: JobInfo) -> bool:
        """Say whether the job starves."""


class Purpose(Enum):
    """What room is taken for."""

    PREEMPT = "preempt"  # from jobs of the same queue, or from the claimant's own job
    RECLAIM = "reclaim"  # from other queues


@dataclass(frozen=True, slots=True)
class Preemptor:
    """Who wants the room that others are to leave."""

    purpose: Purpose
    job: JobInfo
    queue: QueueInfo
    task: TaskInfo | None = None  # None: the job as a whole (gang actions)
    priority: int = 0  # of the task; where there is none it has no meaning
    gains: Floats | None = (
        None  # (n_resources,), what the plan gives the job, at the most; None: what the task asks for
    )
    given: Floats | None = None  # (n_resources,), the part of it that the job has been promised already; None: nothing


class Preemptable(ExtensionPoint):
    """Which tasks of its queue may go for a claimant?

    Rule of all three questions of this kind, for every group of candidates by itself: within a tier the answers are
    intersected; a plugin that abstains does not count; once nobody is left the tier says nothing. The first tier that
    leaves anybody decides. A `VictimFilter` has the last word.
    """

    switch = "enablePreemptable"

    @abstractmethod
    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools | None:
        """Return for each candidate whether it may go, shape (n,); None for no opinion.

        Whatever is counted from candidate to candidate is counted within a group, in the order given;
        `VictimCandidates` has the sums.
        """


class Reclaimable(ExtensionPoint):
    """Which tasks of other queues may go for a claimant? Rule: see `Preemptable`."""

    switch = "enableReclaimable"

    @abstractmethod
    def reclaimable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools | None:
        """Return for each candidate whether it may go, shape (n,); None for no opinion."""


class UnifiedEvictable(ExtensionPoint):
    """Which tasks may go for a whole gang? Asked once for one group; it has no switch. Rule: see `Preemptable`."""

    switch = ""

    @abstractmethod
    def unified_evictable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools | None:
        """Return for each candidate whether it may go, shape (n,); None for no opinion."""


class VictimTasks(ExtensionPoint):
    """Which running tasks must go now, whoever gets their room?

    Rule: united within a tier, the first tier that names anybody decides. A `VictimFilter` has the last word.
    """

    switch = "enabledVictim"

    @abstractmethod
    def victim_tasks(self, candidates: VictimCandidates) -> Bools:
        """Return for each candidate, one group, whether it must go, shape (n,)."""


class VictimFilter(ExtensionPoint):
    """Which tasks must stay, whatever other plugins say and in whatever tier? Rule: any says so. It has no switch.

    A plugin's filter counts for those of the questions above that the plugin answers and that are switched on for it.
    Whoever must stay is not counted as gone for anybody else: plugins are asked again without them.
    """

    renamed: ClassVar = {"spared": "protected"}
    switch = ""
    about_queues: ClassVar[bool] = False
    """Whether the answers depend on the job and request of a candidate and on who goes before it, so that no task is
    let go behind one of its job that is alike and must stay. Such filters are asked last."""

    @abstractmethod
    def protected(self, preemptor: Preemptor | None, candidates: VictimCandidates) -> Bools:
        """Return for each candidate whether it must stay, shape (n,); without a claim nobody gets the room.

        What one pod after the other may cost (a budget) is counted within a group, in the order given.
        """


class Preemptive(ExtensionPoint):
    """May a queue take room from others for these tasks? Rule: all must say yes."""

    switch = "enablePreemptive"

    @abstractmethod
    def preemptive(self, queue: QueueInfo, tasks: Sequence[tuple[TaskInfo, int]]) -> bool:
        """Say whether the queue may hold these tasks beside what it holds now; each with how many of its like."""


class VictimQueueOrder(ExtensionPoint):
    """From which of two queues is taken first? Rule: first non-zero comparison, then the reverse of `QueueOrder`."""

    switch = ""

    @abstractmethod
    def victim_queue_order(self, left: QueueInfo, right: QueueInfo, preemptor: QueueInfo) -> float:
        """Return a negative number if left loses first, a positive one if right does, zero for no opinion."""

    def victim_queue_keys(self, preemptor: QueueInfo) -> Floats | None:
        """Return keys of all queues, most important first, (n_keys, n_queues), that say what `victim_queue_order` does.

        The lowest loses first. None: queues are compared two by two.
        """
        return None

    def loses_first(self, preemptor: QueueInfo, candidates: VictimCandidates) -> Bools | None:
        """Return which candidates (n,) go before all others, whatever the order of queues; None for nobody."""
        return None


POINTS: tuple[type[ExtensionPoint], ...] = (
    JobOrder,
    TaskOrder,
    QueueOrder,
    NamespaceOrder,
    JobValid,
    JobEnqueueable,
    JobEnqueued,
    JobReady,
    JobPipelined,
    Overused,
    Allocatable,
    StaticPredicate,
    SeesEvictions,
    Predicate,
    InterPodPredicate,
    NodeOrder,
    NormalizedOrder,
    InterPodOrder,
    PlacementWatch,
    JobStarving,
    Preemptable,
    Reclaimable,
    UnifiedEvictable,
    VictimTasks,
    VictimFilter,
    Preemptive,
    VictimQueueOrder,
)
"""Every extension point."""

PREFERENCES: Final[frozenset[type]] = frozenset(
    {
        *(JobOrder, TaskOrder, QueueOrder, NamespaceOrder),
        *(NodeOrder, NormalizedOrder, InterPodOrder),
    }
)
"""Extension points at which a plugin says what is better, not what may happen; without it the rest is still safe."""
