"""The parts of a gang while it is placed: which tasks wait in each, up to which tier, and what each part needs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from volcano_py.framework.contract.topology import Part
from volcano_py.framework.hooks.hooks import Hooks
from volcano_py.framework.placing.task_loop import Goal, JobGoal
from volcano_py.framework.state.info import JobInfo, QueueInfo
from volcano_py.framework.state.state import State
from volcano_py.framework.state.statement import Statement
from volcano_py.framework.state.sub_groups import OWN, JobSubGroups
from volcano_py.model.arrays import Floats, Ints, Rows
from volcano_py.model.rejections import Rejection
from volcano_py.model.sub_groups import TierLimit, tier_limits

_NO_FILTERS: Final = frozenset({"resources", "cache"})  # whose reasons say that a node lacks a resource or is closed


class GroupGoal:
    """The goal of one sub-group: its size."""

    def __init__(self, groups: JobSubGroups, group: int) -> None:
        self._groups = groups
        self._group = group

    def missing(self) -> int:
        """Return how many tasks the sub-group lacks."""
        return int(self._groups.missing()[self._group])

    def worth_continuing(self, failed_roles: frozenset[str]) -> bool:
        """Say whether other tasks may still complete the sub-group."""
        return int(self._groups.sizes[self._group]) < len(self._groups.members(self._group))


@dataclass(eq=False)
class Notes:
    """What an attempt has met, for the text of its refusal."""

    filtered: bool = False
    """Whether a filter has refused a node; a node that lacks a resource does not count."""
    failed: "tuple[Piece, Ints] | None" = None
    """The first part that no domain took, and the room that each domain had for it then, (n_domains,)."""

    def add(self, rejections: Iterable[Rejection]) -> None:
        """Note why nodes have refused tasks."""
        refusals = (refusal for one in rejections for refusal in one.refusals)
        self.filtered = self.filtered or any(one.reason.plugin not in _NO_FILTERS for one in refusals)


class Attempt(NamedTuple):
    """What is tried."""

    statement: Statement
    queue: QueueInfo
    job: JobInfo
    before: Mapping[int, Rejection]
    """Why tasks of the job cannot be placed wherever it is tried, by shape."""
    notes: Notes
    once_free: bool = False
    """Whether what is being released counts as idle: a plan of evictions is tried."""


@dataclass(eq=False)
class Piece:
    """A part of a gang while it is placed."""

    part: Part
    asked: Rows
    """The tasks to place, in order."""
    limit: TierLimit | None
    goal: Goal
    group: int | None = None
    """The number of the sub-group, None for a whole job."""
    waiting: Rows = field(init=False)
    """Those of them that are still to be tried."""
    scores: Floats = field(default_factory=lambda: np.zeros(0))
    """The scores of the domains that were tried last, shape (n_domains,)."""

    def __post_init__(self) -> None:
        """Begin with all tasks."""
        self.waiting = self.asked


class Pieces:
    """Divides the tasks of jobs."""

    def __init__(self, state: State, hooks: Hooks, *, enforced: bool) -> None:
        """``enforced`` says whether topologies are limits."""
        self._state = state
        self._hooks = hooks
        self._enforced = enforced

    def limits_of(self, job: JobInfo) -> tuple[TierLimit | None, tuple[TierLimit | None, ...]]:
        """Return the limit of a job and those of its policies for sub-groups."""
        record = job.record
        if not self._enforced:
            return None, (None,) * len(record.sub_group_policies)
        return tier_limits(record.network_topology, record.sub_group_policies, self._state.facts.hyper_nodes)

    def hard_limits(self, job: JobInfo) -> list[TierLimit]:
        """Return those of these limits that are conditions."""
        limit, limits = self.limits_of(job)
        return [one for one in (limit, *limits) if one is not None and not one.soft]

    def whole(self, job: JobInfo, tasks: Rows) -> Piece:
        """Return a job as one piece."""
        part = Part(job, str(job.key), self._state.rows_of_job(job.row), self.request(tasks))
        return Piece(part, tasks, self.limits_of(job)[0], JobGoal(self._hooks, job))

    def now(self, job: JobInfo, tasks: Rows) -> tuple[list[Piece], Rows]:
        """Return the parts of a gang that are placed now, and the tasks whose turn comes later.

        Once a job has its minimum, its sub-groups are placed one by one.
        """
        groups = self._state.sub_groups(job.row)
        if groups is None:
            return [self.whole(job, tasks)], tasks[:0]
        if self._hooks.missing(job):
            return self.all(job, tasks), tasks[:0]
        first, numbers = groups.order(tasks)[0], groups.numbers(tasks)
        return [self._of_group(job, groups, first, tasks[numbers == first])], tasks[numbers != first]

    def all(self, job: JobInfo, tasks: Rows) -> list[Piece]:
        """Return all parts of a gang that have some of these tasks, in the order in which they are placed."""
        groups = self._state.sub_groups(job.row)
        if groups is None:
            return [self.whole(job, tasks)]
        waiting = groups.split(tasks)
        # A Python loop over the sub-groups of one job.
        return [self._of_group(job, groups, group, waiting[group]) for group in groups.order(tasks)]

    def _of_group(self, job: JobInfo, groups: JobSubGroups, group: int, waiting: Rows) -> Piece:
        job_limit, limits = self.limits_of(job)
        policy = int(groups.policy[group])
        part = Part(job, groups.groups[group].id, groups.members(group), self.request(waiting))
        return Piece(part, waiting, job_limit if policy == OWN else limits[policy], GroupGoal(groups, group), group)

    def request(self, tasks: Rows) -> Floats:
        """Return what tasks request together, shape (n_resources,)."""
        requests: Floats = self._state.classes.requests[:, self._state.tasks.shape[tasks]].sum(axis=1)
        return requests
