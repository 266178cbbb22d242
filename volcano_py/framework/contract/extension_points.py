"""The extension points: what the framework asks, what an answer means, and the conf switch that silences it.

Each class names the rule that combines the answers of several plugins; `framework.contract.combine` has the rules. A
switch that is absent in a loaded conf is on.
"""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from enum import IntEnum
from typing import ClassVar, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from volcano_py.framework.contract.eviction_points import (
    Preemptable as Preemptable,
)
from volcano_py.framework.contract.eviction_points import (
    Preemptive as Preemptive,
)
from volcano_py.framework.contract.eviction_points import (
    Preemptor as Preemptor,
)
from volcano_py.framework.contract.eviction_points import (
    Purpose as Purpose,
)
from volcano_py.framework.contract.eviction_points import (
    Reclaimable as Reclaimable,
)
from volcano_py.framework.contract.eviction_points import (
    UnifiedEvictable as UnifiedEvictable,
)
from volcano_py.framework.contract.eviction_points import (
    VictimFilter as VictimFilter,
)
from volcano_py.framework.contract.eviction_points import (
    VictimQueueOrder as VictimQueueOrder,
)
from volcano_py.framework.contract.eviction_points import (
    VictimTasks as VictimTasks,
)
from volcano_py.framework.contract.extension_point import ExtensionPoint
from volcano_py.framework.contract.normalization import NormalizedScore
from volcano_py.framework.contract.topology import DomainOrder, LeafOrder, NearOrder, TierLimits
from volcano_py.framework.state.info import JobInfo, QueueInfo, TaskInfo
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
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


class Votes(NamedTuple):
    """Opinions on many jobs."""

    places: Ints
    """For each job the place of its answer, (n,), or -1 for a job that the plugin must be asked about."""
    answers: Sequence["Vote | Reason"]


class JobOrder(ExtensionPoint):
    """Which job of a queue goes first? Rule: first difference decides; then creation time, then namespace/name."""

    switch = "enableJobOrder"

    @abstractmethod
    def job_order(self, jobs: JobColumns) -> Floats:
        """Return one key per job of the view, shape (n_jobs,); the lowest goes first.

        A key may depend on the job and on what it holds now. The framework asks again whenever the job has changed.
        """


class TaskOrder(ExtensionPoint):
    """Which task of a job goes first? Rule: first difference decides; then number in the name, creation time, uid."""

    switch = "enableTaskOrder"

    @abstractmethod
    def task_order(self, tasks: TaskColumns) -> Floats:
        """Return one key per task of the view, shape (n_tasks,); the lowest goes first.

        ``tasks.rows`` are the rows of these tasks in the session, and ``tasks.record(i)`` is the record of task i.
        """


class QueueOrder(ExtensionPoint):
    """Which queue goes first? Rule: first non-zero comparison decides; then creation time, then name."""

    switch = "enableQueueOrder"
    shortcuts: ClassVar = {"queue_keys": "queue_order"}

    @abstractmethod
    def queue_order(self, left: QueueInfo, right: QueueInfo) -> float:
        """Return a negative number if left goes first, a positive one if right does, zero for no opinion."""

    def queue_keys(self) -> Sequence[Floats | Bools] | None:
        """Return keys of all queues, most important first, each (n_queues,), that order them as `queue_order` does now.

        The lowest goes first. None: keys cannot express the order. Queues are then compared two by two, which takes
        one question per queue each time.
        """
        return None


class NamespaceOrder(ExtensionPoint):
    """Which namespace of a queue goes first? This comes before the order of jobs. It is off by default.

    Rule: first difference decides; then the name. Without such a plugin a queue ignores namespaces.
    """

    switch = "enableNamespaceOrder"

    @abstractmethod
    def namespace_order(self, queue: QueueInfo, namespaces: Sequence[str]) -> Floats:
        """Return one key per namespace, shape (n_namespaces,); the lowest goes first. Asked before each job."""


class JobValid(ExtensionPoint):
    """Can the job be scheduled at all? Rule: all must pass; the first refusal is the answer. It has no switch."""

    switch = ""
    shortcuts: ClassVar = {"surely_valid": "job_valid"}

    @abstractmethod
    def job_valid(self, job: JobInfo) -> Reason | None:
        """Return why the job cannot be scheduled, None if it can."""

    def surely_valid(self) -> Bools | bool:
        """Return jobs that `job_valid` certainly passes now, shape (n_jobs,); False: each is asked about."""
        return False


class JobEnqueueable(ExtensionPoint):
    """May a pending job be enqueued, so that its pods can be created and placed? Rule: vote."""

    switch = "enableJobEnqueued"
    shortcuts: ClassVar = {"enqueueable_jobs": "job_enqueueable"}

    @abstractmethod
    def job_enqueueable(self, job: JobInfo) -> Vote | Reason:
        """Return an opinion; a reason is a rejection with a text for users."""

    def enqueueable_jobs(self, jobs: Rows) -> Votes | None:
        """Return what `job_enqueueable` says now about jobs with minResources, rows (n,); None: each is asked about.

        While other jobs are enqueued, a rejection must stay one, for whatever reason, and no other answer may become a
        permit: a permit of an earlier tier would overrule the rejection of a later one.
        """
        return None


class JobEnqueued(ExtensionPoint):
    """No question: the scheduler reports that a job was enqueued. Rule: every plugin is called."""

    switch = "enableJobEnqueued"

    @abstractmethod
    def job_enqueued(self, job: JobInfo) -> None:
        """Count the job as enqueued."""


class JobReady(ExtensionPoint):
    """How many tasks does the job still need before its placements may be committed? Rule: all must say 0."""

    switch = "enableJobReady"

    @abstractmethod
    def missing(self, job: JobInfo) -> int:
        """Return 0 if the job is ready, else a lower bound (at least 1) of the tasks that it still needs."""


class JobPipelined(ExtensionPoint):
    """May a job that is not ready keep the room promised to it in this session? Rule: vote."""

    switch = "enableJobPipelined"

    @abstractmethod
    def job_pipelined(self, job: JobInfo) -> Vote:
        """Return an opinion."""


class Overused(ExtensionPoint):
    """Does the queue already hold all that it may have? Rule: any says yes."""

    switch = "enabledOverused"
    shortcuts: ClassVar = {"overused_queues": "overused"}

    @abstractmethod
    def overused(self, queue: QueueInfo) -> bool:
        """Say whether the queue gets nothing more in this session."""

    def overused_queues(self) -> Bools | None:
        """Return `overused` of all queues now, shape (n_queues,); None if they must be asked about one by one."""
        return None

    def why_overused(self, queue: QueueInfo) -> Reason | None:
        """Return the text for users about a queue that is overused; None for a text without numbers."""
        return None


class Allocatable(ExtensionPoint):
    """How many more tasks like this one may the queue hold? Rule: all must allow, so the smallest number counts."""

    switch = "enabledAllocatable"
    shortcuts: ClassVar = {"full_queues": "allocatable"}

    @abstractmethod
    def allocatable(self, queue: QueueInfo, task: TaskInfo, wanted: int) -> int:
        """Return how many tasks like this one, at most ``wanted``, the queue may take now."""

    def full_queues(self, task: TaskInfo) -> Bools | None:
        """Return queues that may not take a single task like this one now, shape (n_queues,); None if it is unknown.

        More tasks in queues must not change a yes here. A queue that is left out is asked about with `allocatable`.
        """
        return None

    def why_not_allocatable(self, queue: QueueInfo, task: TaskInfo, asked: Floats, given: Floats) -> Reason | None:
        """Return the text for users when the queue may not hold one more task like this; None for a general text.

        ``asked`` is all that the job lacks. ``given`` is the part of it that is already placed and counts as held. Both
        are (n_resources,).
        """
        return None


class StaticPredicate(ExtensionPoint):
    """Can a task of this shape run on the node, as long as the node object does not change? Rule: first refusal.

    The framework keeps answers over many cycles, by `static_part`. It asks again only for nodes whose object changed.
    """

    switch = "enablePredicate"
    shortcuts: ClassVar = {"static_part": "static_predicate"}
    static_reasons: ClassVar[tuple[Reason, ...]]

    @abstractmethod
    def static_predicate(self, shape: Shape, nodes: NodeColumns) -> Verdicts:
        """Return one verdict per node of the view, shape (n_nodes,), which numbers ``static_reasons``."""

    def static_part(self, shape: Shape) -> Hashable:
        """Return the part of the shape that the verdicts depend on; shapes that are equal in it share the verdicts."""
        return shape


class SeesEvictions(ExtensionPoint):
    """No question: its predicates stay correct when the scheduler simulates a node without the victims.

    Rule: every plugin for itself. Only ``enableTopologyAwarePreemption`` uses this (Volcano: SimulateRemoveTask): it
    does not try a node that is refused by a plugin without this. ``enabledAllocatable`` also leaves it on.
    """

    switch = "enablePreemptable"
    also = "enabledAllocatable"


class Predicate(SeesEvictions):
    """Can the task run on the node now? Rule: first refusal. The framework itself checks resources."""

    switch = "enablePredicate"
    also = ""
    shortcuts: ClassVar = {"refusals_stay": "predicate"}
    reasons: tuple[Reason, ...]  # of the class, or of an instance if they depend on its arguments
    early: ClassVar[int] = 0
    """How many of the reasons come before the plugin's static ones: users read these even beside a static one."""
    refusals_stay: ClassVar[bool] = False
    """Whether a node that refuses a task also refuses it after more tasks have been placed, wherever they are. If not,
    the plugin is asked for every job."""

    @abstractmethod
    def predicate(self, task: TaskInfo, nodes: NodeColumns) -> Verdicts:
        """Return one verdict per node of the view, shape (n_nodes,), which numbers ``reasons``."""

    def refusals(self, task: TaskInfo, nodes: NodeColumns) -> Bools:
        """Return for each reason and node whether it refuses, shape (n_reasons, n_nodes); users read the reasons.

        Override it if several reasons may apply to one node.
        """
        verdicts = self.predicate(task, nodes)
        return np.asarray(verdicts == np.arange(1, len(self.reasons) + 1)[:, None])


class InterPodFilter(Protocol):
    """Where tasks of one shape may run, given the pods of a session."""

    own_pods_matter: bool
    """Whether placing one task of the shape may change the answer for the next one."""

    def allowed(self) -> Bools:
        """Return where the shape may run now, shape (n_nodes,); the same array as long as nothing has changed."""

    def unresolvable(self) -> Bools:
        """Return the nodes refused for a reason that no eviction can resolve, shape (n_nodes,)."""


class InterPodPredicate(ExtensionPoint):
    """May the task run on the node, given the pods on this node and on others? Rule: all must say yes.

    The framework asks only about tasks with inter-pod terms or volume claims, and asks again after every placement.
    Such a plugin must also be a `Predicate`, whose ``refusals`` name the reasons of both.
    """

    renamed: ClassVar = {"neighbour_filter": "inter_pod_filter"}
    switch = "enablePredicate"

    @abstractmethod
    def inter_pod_filter(self, task: TaskInfo) -> InterPodFilter | None:
        """Return the filter of a shape for this session, None if other pods make no difference to it."""


class InterPodScores(Protocol):
    """How good nodes are for one shape, given the pods there and on other nodes."""

    def scores(self, group: Bools) -> Floats:
        """Return scores of a group of feasible nodes, weights applied, shape (n_nodes,); others are ignored."""


class InterPodOrder(ExtensionPoint):
    """How good is the node, given the pods on this node and on others? Rule: sum.

    The framework asks only about tasks with inter-pod terms or volume claims, and asks again after every placement.
    """

    renamed: ClassVar = {"neighbour_scores": "inter_pod_scores"}
    switch = "enableNodeOrder"

    @abstractmethod
    def inter_pod_scores(self, task: TaskInfo) -> InterPodScores | None:
        """Return the scores of a shape for this session, None if other pods make no difference to it."""


class NodeOrder(ExtensionPoint):
    """How good is the node for the task? Rule: sum. The plugin applies its weight: the best score is 100 * weight."""

    switch = "enableNodeOrder"

    @abstractmethod
    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        """Return one score per node of the view, shape (n_nodes,); the view may be one row, a group or all nodes."""


class NormalizedOrder(ExtensionPoint):
    """How good is the node, compared with the other feasible nodes? Rule: sum, with the scores of `NodeOrder`."""

    switch = "enableNodeOrder"

    @abstractmethod
    def normalized_orders(self) -> Sequence[NormalizedScore]:
        """Return the scorers with their weights, which the framework applies; asked once, when the session is open."""


class PlacementWatch(ExtensionPoint):
    """No question: the scheduler tells the plugin when tasks get or lose a node in this session. It has no switch.

    Rule: every plugin is asked to count; none can refuse. A plugin changes its counters only through the journal of the
    session. An undo then restores them without a call.
    """

    switch = ""

    @abstractmethod
    def placed(self, job_row: int, task: TaskInfo, tasks: Rows, nodes: Rows) -> None:
        """Count tasks of one job and equivalence class as allocated or promised, task i on node i; nodes may repeat."""

    @abstractmethod
    def freed(self, job_row: int, task: TaskInfo, tasks: Rows, nodes: Rows) -> None:
        """Count tasks of one job and equivalence class out: they are to be evicted, or wait again."""


class JobStarving(ExtensionPoint):
    """Does the job need more than it has, so that other pods may be evicted for it?

    Rule: the first tier with such a plugin decides, and all in it must say yes. Without any such plugin: no.
    """

    switch = "enableJobStarving"
    shortcuts: ClassVar = {"starving_jobs": "job_starving"}

    @abstractmethod
    def job_starving(self, job: JobInfo) -> bool:
        """Say whether the job starves."""

    def starving_jobs(self) -> Bools | None:
        """Return what `job_starving` says of all jobs now, (n_jobs,); None: each is asked about."""
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
    TierLimits,
    DomainOrder,
    LeafOrder,
    NearOrder,
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
        *(NodeOrder, NormalizedOrder, InterPodOrder, DomainOrder, LeafOrder, NearOrder),
    }
)
"""Extension points at which a plugin says what is better, not what is allowed. Scheduling is safe without them."""
