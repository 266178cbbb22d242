"""Tdm: revocable nodes, which may be used only for a part of the day (time division multiplexing).

A node with the label ``volcano.sh/revocable-zone`` is revocable. It takes only tasks with the annotation
``volcano.sh/revocable-zone: "*"`` or, without it, ``volcano.sh/preemptable: "true"``, and only while the window of its
zone is open. The argument ``tdm.revocable-zone.<zone>`` is the window in local time, for instance "22:00-06:00". A
window whose end is not after its begin lasts until the next day.

predicate   for a revocable node: its zone has a window, the window is open, and the task may use revocable nodes
score       100 for a revocable node that the task may use
job order   jobs that are not preemptable go first
victims     (preempt) running preemptable tasks on ordinary nodes, as many as their job's budget allows, if the
            preemptor is neither preemptable nor allowed to use revocable nodes
evicted     (shuffle) every ``tdm.evict.period`` (1m): running preemptable tasks on nodes whose window is closed, as
            many of each job as its budget allows
budget      ``volcano.sh/jdb-max-unavailable`` minus the tasks that do not run now; else the running tasks minus
            ``volcano.sh/jdb-min-available``, but 1 if fewer run; else 1. Percentages are of all tasks, rounded up.

(Volcano: plugins/tdm. There a window over midnight is closed after midnight. Nodes of a closed zone also lose the
scores of all plugins, which makes no difference because no task may be placed there.)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from volcano_py.api import keys
from volcano_py.api.duration import DurationError, parse_go_duration
from volcano_py.conf.arguments import Warn, get_string
from volcano_py.framework.contract.extension_points import (
    JobOrder,
    JobPipelined,
    JobStarving,
    NodeOrder,
    Predicate,
    Preemptable,
    Preemptor,
    Verdicts,
    VictimTasks,
    Vote,
)
from volcano_py.framework.contract.plugin import DependsOn, Plugin
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.state.info import JobInfo, TaskInfo
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Ints, Rows
from volcano_py.model.objects import TaskTrait
from volcano_py.model.rejections import Reason
from volcano_py.model.statuses import TaskStatus
from volcano_py.snapshot.columns import JobColumns, NodeColumns

_WINDOW: Final = "tdm.revocable-zone."
_PERIOD: Final = "tdm.evict.period"
_DEFAULT_PERIOD_S: Final = 60.0
_DEFAULT_BUDGET: Final = 1
_DAY_S: Final = 86_400
_BEST: Final = 100.0

_REVOCABLE: Final = 1  # bits of a task's mark
_STAYS: Final = 2  # the task is not preemptable


class Window(NamedTuple):
    """A part of the day: ``begin`` in seconds since midnight, length in ``seconds``. It may end on the next day."""

    begin: int
    seconds: int

    def open(self, time_of_day: float) -> bool:
        """Say whether the window is open, both ends included, in whole seconds."""
        return (int(time_of_day) - self.begin) % _DAY_S <= self.seconds


def parse_window(text: str) -> Window:
    """Read "HH:MM-HH:MM", with one or two digits for the hour; raise ValueError for anything else."""
    begin, dash, end = text.strip().partition("-")
    if not dash:
        raise ValueError(f"{text!r} is not a window: write HH:MM-HH:MM, such as 22:00-06:00")
    first, last = _time_of_day(begin, text), _time_of_day(end, text)
    return Window(first, last - first + (_DAY_S if first >= last else 0))


def _time_of_day(written: str, text: str) -> int:
    hour, _, minute = written.partition(":")
    digits = hour.isascii() and hour.isdigit() and minute.isascii() and minute.isdigit()
    if not digits or len(hour) > 2 or len(minute) != 2 or int(hour) > 23 or int(minute) > 59:
        raise ValueError(f"{text!r} is not a window: {written!r} is not a time of day, write HH:MM-HH:MM")
    return (int(hour) * 60 + int(minute)) * 60


@dataclass(frozen=True, slots=True)
class TdmArgs:
    """The windows by zone, and the period of evictions from nodes whose window is closed."""

    windows: Mapping[str, Window] = field(default_factory=dict)
    period: float = _DEFAULT_PERIOD_S  # seconds


class Tdm(Plugin, Predicate, NodeOrder, JobOrder, JobPipelined, JobStarving, Preemptable, VictimTasks):
    """Time windows of revocable nodes."""

    name = "tdm"
    depends_on = DependsOn.NODE_ALONE
    refusals_stay = True
    arguments = frozenset({_WINDOW + "*", _PERIOD})
    reasons = (
        Reason("tdm", "revocable-zone-unknown", "revocable zone not support", resolvable=False),
        Reason("tdm", "revocable-zone-closed", "current time beyond revocable zone", resolvable=False),
        Reason("tdm", "not-revocable", "not allow to dispatch to revocable node", resolvable=False),
    )

    def __init__(self, arguments: TdmArgs | None = None) -> None:
        self._args = arguments or TdmArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> TdmArgs:
        """Read the windows and the period (1m); an invalid window is left out."""
        windows: dict[str, Window] = {}
        for key in arguments:
            if not key.startswith(_WINDOW):
                continue
            try:
                windows[key.removeprefix(_WINDOW)] = parse_window(get_string(arguments, key, "", warn))
            except ValueError as error:
                warn(f"argument {key}: {error}; nothing is placed on nodes of this zone")
        text = get_string(arguments, _PERIOD, "", warn)
        try:
            period = parse_go_duration(text) if text else _DEFAULT_PERIOD_S
        except DurationError as error:
            warn(f"argument {_PERIOD}: {error}; the default 1m is used")
            period = _DEFAULT_PERIOD_S
        return TdmArgs(windows, period)

    def equivalence_keys(self, ssn: State) -> Ints:
        """Distinguish tasks that may use revocable nodes, and tasks that are not preemptable."""
        traits = ssn.tasks.traits
        revocable = np.where(traits & TaskTrait.REVOCABLE.value > 0, _REVOCABLE, 0)
        return np.asarray(revocable + np.where(traits & TaskTrait.PREEMPTABLE.value > 0, 0, _STAYS), dtype=np.int64)

    def on_session_open(self, ssn: State) -> None:
        """Find out which zones are open."""
        self._ssn = ssn
        time_of_day = (ssn.now + ssn.clock.utc_offset) % _DAY_S
        self._open = {zone: window.open(time_of_day) for zone, window in self._args.windows.items()}

    # Nodes

    def predicate(self, task: TaskInfo, nodes: NodeColumns) -> Verdicts:
        """Refuse revocable nodes if their zone is unknown or closed, or the task may not use revocable nodes."""
        found = np.zeros(len(nodes), dtype=np.int16)
        column = nodes.label(keys.REVOCABLE_ZONE)
        if column is None:
            return found
        allowed = 0 if task.equivalence_key(self.name) & _REVOCABLE else 3
        table = [allowed if self._open.get(zone) else 2 if zone in self._open else 1 for zone in column.values]
        for code in (0, *(code for code, zone in enumerate(column.values) if not zone)):
            table[code] = 0  # without the label, or with an empty one, the node is not revocable
        return np.asarray(np.array(table, dtype=np.int16)[column.codes])

    def node_order(self, task: TaskInfo, nodes: NodeColumns) -> Floats:
        """Return 100 for open revocable nodes if the task may use them, shape (n_nodes,)."""
        column = nodes.label(keys.REVOCABLE_ZONE)
        if column is None or not task.equivalence_key(self.name) & _REVOCABLE:
            return np.zeros(len(nodes))
        table = np.array([_BEST if code and self._open.get(zone) else 0.0 for code, zone in enumerate(column.values)])
        return np.asarray(table[column.codes])

    # Jobs

    def job_order(self, jobs: JobColumns) -> Floats:
        """Return 1 for preemptable jobs and 0 for the others, shape (n_jobs,)."""
        # A Python loop over jobs: preemptability is in their records.
        return np.array([record is not None and bool(record.preemptable) for record in jobs.records], dtype=float)

    def job_pipelined(self, job: JobInfo) -> Vote:
        """Permit a job whose minimum is met with pipelined tasks counted, reject any other."""
        return Vote.PERMIT if job.is_pipelined() else Vote.REJECT

    def job_starving(self, job: JobInfo) -> bool:
        """Say whether the job is not preemptable and has pending tasks."""
        return not job.record.preemptable and job.count(TaskStatus.PENDING) > 0

    # Victims

    def preemptable(self, preemptor: Preemptor, candidates: VictimCandidates) -> Bools:
        """Allow evicting running tasks on ordinary nodes within their jobs' budgets.

        Only a preemptor that is neither preemptable nor allowed to use revocable nodes gets victims.
        """
        if preemptor.task is None or preemptor.task.equivalence_key(self.name) != _STAYS:
            return np.zeros(len(candidates), dtype=bool)
        column = self._ssn.nodes.label(keys.REVOCABLE_ZONE)
        ordinary = self._running(candidates)
        if column is not None:
            ordinary &= ~_zoned(column.values)[column.codes[candidates.nodes]]
        return self._within_budgets(candidates, ordinary, candidates.groups)

    def victim_tasks(self, candidates: VictimCandidates) -> Bools:
        """Return running tasks on nodes of closed zones within their jobs' budgets, once per period."""
        column = self._ssn.nodes.label(keys.REVOCABLE_ZONE)
        last = self._ssn.memory.times.get(self.name)
        if column is None or (last is not None and self._ssn.now < last + self._args.period):
            return np.zeros(len(candidates), dtype=bool)
        closed = np.array([bool(code) and self._open.get(zone) is False for code, zone in enumerate(column.values)])
        zones = column.codes[candidates.nodes].astype(np.intp)
        named = self._within_budgets(candidates, self._running(candidates) & closed[zones], zones)
        if named.any():
            self._ssn.outcome.times[self.name] = self._ssn.now
        return named

    def _running(self, candidates: VictimCandidates) -> Bools:
        status = self._ssn.tasks.status[candidates.rows]
        return np.asarray((status == TaskStatus.RUNNING) & (candidates.traits & TaskTrait.PREEMPTABLE.value > 0))

    def _within_budgets(self, candidates: VictimCandidates, eligible: Bools, groups: Rows) -> Bools:
        """Return the first eligible candidates per job and group, as many as the job's budget allows, shape (n,)."""
        rows = np.flatnonzero(eligible)
        rows = rows[np.argsort(groups[rows], kind="stable")]
        found = np.zeros(len(candidates), dtype=bool)
        if not len(rows):
            return found
        jobs, which = np.unique(candidates.jobs[rows], return_inverse=True)
        # A Python loop over the candidates' jobs: budgets are in their records.
        budgets = np.array([self._budget(int(job)) for job in jobs])
        earlier = VictimCandidates(self._ssn, candidates.rows[rows], groups[rows]).by_job.count()
        found[rows[earlier < budgets[which]]] = True
        return found

    def _budget(self, job_row: int) -> int:
        """Return how many running tasks a job may lose."""
        counts = self._ssn.jobs.counts[:, job_row]
        tasks, running = int(counts.sum()), int(counts[TaskStatus.RUNNING])
        record = self._ssn.jobs.records[job_row]
        budget = None if record is None else record.budget
        if budget is not None and budget.max_unavailable is not None:
            finished = int(counts[TaskStatus.SUCCEEDED] + counts[TaskStatus.FAILED])
            return max(0, budget.max_unavailable.of(tasks) - (tasks - finished - running))
        if budget is not None and budget.min_available is not None:
            least = budget.min_available.of(tasks)
            if running >= least:
                return running - least
        return _DEFAULT_BUDGET


def _zoned(zones: "tuple[str, ...] | list[str] | Any") -> Bools:
    return np.array([bool(code) and bool(zone) for code, zone in enumerate(zones)])
