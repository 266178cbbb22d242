"""Bundles: which tasks jobs can lose for a whole gang, and in what order.

The tasks of a job are examined by (priority, uid), lowest first. A task is safe as long as the job, the role of the
task and the numbers of sub-groups keep their minimum without it. The safe tasks of a job are one bundle, of which any
part may be evicted. The other tasks are the whole bundle of the job: evicting any of them breaks the gang, so either
all tasks that the job has on nodes are evicted or none. If a job is already below its minimum, all its tasks are safe.
Tasks on nodes where nobody gets room are evicted only as part of a whole job.

Safe bundles are evicted before whole ones. Then the job that is last in job order (preempt), or the queue that loses
first (reclaim), comes first. Then comes the bundle that gives most of what is needed for its cost to the job. Job and
task names decide the rest.

(Volcano: actions/utils. There a whole bundle is only what the job has in the domain in question; the rest of the job
keeps running without use.)
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from volcano_py.framework.contract.extension_points import Preemptor
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.evicting.eviction import Eviction
from volcano_py.framework.evicting.levelling import numbered
from volcano_py.framework.state.info import JobInfo
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.statuses import ALLOCATED_STATUSES, TaskStatus

_ON_NODES: Final = list(ALLOCATED_STATUSES)
_ROLE_STATUSES: Final = (*ALLOCATED_STATUSES, TaskStatus.SUCCEEDED)

Ranks = Callable[[Rows], Rows]
"""Takes task rows (n,) and returns the place of each in the order of victims, equal places for equal ones, (n,)."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Tasks of one job that are evicted together (``whole``), or of which any may be evicted."""

    job: int
    rows: Rows  # in order of eviction
    whole: bool
    yields: float = 0.0  # the part of the need that it gives, divided by its cost to the job


def bundles(
    eviction: Eviction,
    preemptor: Preemptor,
    candidates: VictimCandidates,
    need: Floats,
    ranks: Ranks,
    *,
    allow_whole: bool,
) -> list[Bundle]:
    """Return what plugins allow for a preemptor, in order of eviction; ``need`` is shape (n_resources,)."""
    found = _ordered(eviction, _cut(eviction, candidates.rows), need, ranks)
    if not found:
        return []
    rows = np.concatenate([one.rows for one in found])
    # A whole bundle is one unit; each safe task is a unit of its own.
    units = np.concatenate([np.full(len(one.rows), one.rows[0]) if one.whole else one.rows for one in found])
    asked = VictimCandidates(eviction.state, rows, np.zeros(len(rows), dtype=np.intp), units=units)
    mask = eviction.allowed_for_gang(preemptor, asked)
    allowed = set(rows[mask].tolist())
    kept: list[Bundle] = []
    # A Python loop over bundles; a job has at most two.
    for one in found:
        if one.whole:
            if allow_whole and allowed.issuperset(_on_nodes(eviction, one.job).tolist()):
                kept.append(one)
            continue
        mine = np.array([row for row in one.rows.tolist() if row in allowed], dtype=np.intp)
        if len(mine):
            kept.append(Bundle(one.job, mine, whole=False))
    return _ordered(eviction, kept, need, ranks)


def _cut(eviction: Eviction, rows: Rows) -> list[Bundle]:
    """Cut the candidates of every job into safe tasks and the rest."""
    jobs = eviction.state.tasks.job[rows]
    # A Python sort over the candidates' uids: only uids order tasks of one priority the same way every time.
    uids = np.array([eviction.state.tasks.record(row).uid for row in rows.tolist()])
    order = np.lexsort((uids, eviction.state.tasks.priority[rows], jobs)) if len(rows) else rows
    rows, jobs = rows[order], jobs[order]
    bounds = np.flatnonzero(np.diff(jobs, prepend=-1, append=-1))
    found: list[Bundle] = []
    shut = eviction.placement.node_sets.shut  # nobody gets room there
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        job, mine = eviction.state.job(int(jobs[start])), rows[start:end]
        useful = ~shut[eviction.state.tasks.node[mine]]
        safe = np.zeros(len(mine), dtype=bool)
        safe[useful] = _safe(eviction, job, mine[useful])
        if not useful[~safe].any():
            mine, safe = mine[safe], safe[safe]
        if safe.any():
            found.append(Bundle(job.row, mine[safe], whole=False))
        if not safe.all():
            found.append(Bundle(job.row, mine[~safe], whole=True))
    return found


def safe_in_groups(eviction: Eviction, candidates: VictimCandidates) -> Bools:
    """Return which candidates are safe to evict, shape (n,); each group is separate, and a job loses its first ones."""
    safe = np.zeros(len(candidates), dtype=bool)
    if not len(candidates):
        return safe
    which = numbered(candidates.groups, candidates.jobs)
    order = np.argsort(which, kind="stable")  # candidates of a job need not be adjacent
    changes = np.flatnonzero(np.diff(which[order])) + 1
    # A Python loop over the jobs of each group.
    for places in np.split(order, changes):
        safe[places] = _safe(eviction, eviction.state.job(int(candidates.jobs[places[0]])), candidates.rows[places])
    return safe


def _safe(eviction: Eviction, job: JobInfo, rows: Rows) -> Bools:
    """Return which of a job's candidates (n,), in order, are safe to evict, shape (n,)."""
    surplus = job.ready_count - job.min_available
    if surplus < 0:
        return np.ones(len(rows), dtype=bool)
    groups = eviction.state.sub_groups(job.row)
    if groups is not None:
        return groups.safe(rows, surplus)
    minimum = job.record.task_min_available
    if not minimum or job.min_available < sum(minimum.values()):
        return np.arange(len(rows)) < surplus
    counts = job.role_counts(_ROLE_STATUSES, best_effort=True)
    left = {role: count - minimum.get(role, 0) for role, count in counts.items()}
    safe = np.zeros(len(rows), dtype=bool)
    # A Python loop over the tasks of a job with a rule per role.
    for place, row in enumerate(rows.tolist()):
        role = eviction.state.tasks.record(row).role
        if surplus > 0 and left.get(role, 0) > 0:
            safe[place] = True
            surplus -= 1
            left[role] -= 1
    return safe


def _on_nodes(eviction: Eviction, job_row: int) -> Rows:
    """Return the tasks of a job that are on nodes, or on their way there: those cannot be evicted in this cycle."""
    mine = eviction.state.rows_of_job(job_row)
    found: Rows = mine[np.isin(eviction.state.tasks.status[mine], _ON_NODES)]
    return found


def _ordered(eviction: Eviction, found: Iterable[Bundle], need: Floats, ranks: Ranks) -> list[Bundle]:
    listed = [Bundle(one.job, one.rows, one.whole, _yield(eviction, one, need)) for one in found]
    if not listed:
        return []
    place = ranks(np.array([one.rows[0] for one in listed], dtype=np.intp)).tolist()
    names = [str(eviction.state.jobs.record(one.job).key) for one in listed]
    first = [eviction.state.tasks.record(int(one.rows[0])).uid for one in listed]
    order = sorted(
        range(len(listed)),
        key=lambda i: (listed[i].whole, place[i], -listed[i].yields, names[i], first[i], len(listed[i].rows)),
    )
    return [listed[i] for i in order]


def _yield(eviction: Eviction, bundle: Bundle, need: Floats) -> float:
    """Return the part of the need that a bundle gives over its cost: the request of the whole job, 0 if it is safe."""
    if not bundle.whole:
        return np.inf
    asked = need > 0
    gives = eviction.state.classes.requests[:, eviction.state.tasks.shape[bundle.rows]].sum(axis=1)[asked]
    costs = eviction.state.jobs.total[asked, bundle.job]
    cost = float((costs / need[asked]).sum())
    return float((np.minimum(gives, need[asked]) / need[asked]).sum()) / cost if cost else np.inf
