"""Rescheduling: evicts pods from nodes with a high measured load, if other nodes have a low one.

The plugin works with the action shuffle, every ``interval`` (5m). It uses loads that were measured in the last five
minutes (the section ``metrics`` of the configuration). Its only strategy, ``lowNodeUtilization``, has two limits in
percent for cpu and memory, each 100 by default:

    low node    schedulable, and every load below ``thresholds``
    high node   not low, and some load above ``targetThresholds``
    headroom    the cpu and memory that low nodes may take until they reach the targets

If there is no low node or no high node, nothing happens. Otherwise high nodes lose running pods, the node with the
highest sum of loads first. On each node pods go by priority, lowest first, then best-effort before burstable before
guaranteed ones. Evictions from a node go on while some load of it reaches its target and there is headroom. Every
victim's request is subtracted from its node's load and from the headroom.

A pod goes only if a low node could take it: the request fits into what is idle there, beside that of the victims before
it, and its tolerations and node affinity allow the node. Its job must keep its minimum, unless the pod is all that runs
of the job. Otherwise pods would be evicted in every interval without end, and come back to their node.

(Volcano: plugins/rescheduling. There victims need no place to go, and gangs are broken. The loads are never filled
under the default configuration, old measurements count, headroom ends only at exactly 0, and pods that must not be
preempted are evicted too.)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from volcano_py.api.duration import DurationError, parse_go_duration
from volcano_py.conf.arguments import Warn, get_string
from volcano_py.framework.contract.extension_points import VictimTasks
from volcano_py.framework.contract.plugin import Plugin
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.state.state import State
from volcano_py.model.arrays import Bools, Floats, Rows
from volcano_py.model.objects import TaskTrait
from volcano_py.model.resources import CPU_ROW, MEMORY_ROW
from volcano_py.model.statuses import READY_STATUSES
from volcano_py.snapshot import node_terms, taints

_INTERVAL: Final = "interval"
_PERIOD: Final = "metricsPeriod"
_STRATEGIES: Final = "strategies"
_LOW_NODE: Final = "lowNodeUtilization"
_LOW: Final = "thresholds"
_HIGH: Final = "targetThresholds"
_DEFAULT_INTERVAL_S: Final = 300.0
_FRESH_S: Final = 300.0
_RESOURCES: Final = ("cpu", "memory")
_ROWS: Final = [CPU_ROW, MEMORY_ROW]
_NO_LIMIT: Final = 100.0
_MOST: Final = 1e6  # a percentage beyond it is a mistake, and may be no finite number


@dataclass(frozen=True, slots=True)
class ReschedulingArgs:
    """The interval, and the limits in percent of cpu and memory; if not ``active``, the plugin does nothing."""

    interval: float = _DEFAULT_INTERVAL_S  # seconds
    thresholds: tuple[float, float] = (_NO_LIMIT, _NO_LIMIT)
    targets: tuple[float, float] = (_NO_LIMIT, _NO_LIMIT)
    active: bool = True


class Rescheduling(Plugin, VictimTasks):
    """Eviction of pods from busy nodes."""

    name = "rescheduling"
    arguments = frozenset({_INTERVAL, _PERIOD, _STRATEGIES})

    def __init__(self, arguments: ReschedulingArgs | None = None) -> None:
        self._args = arguments or ReschedulingArgs()

    @classmethod
    def parse(cls, arguments: Mapping[str, Any], warn: Warn) -> ReschedulingArgs:
        """Read ``interval``, and the limits of ``lowNodeUtilization`` in ``strategies``; ``metricsPeriod`` is ignored.

        Raises ValueError for limits that are not numbers.
        """
        text = get_string(arguments, _INTERVAL, "", warn)
        interval = _DEFAULT_INTERVAL_S
        if text:
            try:
                interval = parse_go_duration(text)
            except DurationError as error:
                warn(f"argument {_INTERVAL}: {error}; the default 5m is used")
        strategies = arguments.get(_STRATEGIES) or [{"name": _LOW_NODE}]
        if not isinstance(strategies, list) or not all(isinstance(one, Mapping) for one in strategies):
            raise ValueError(f"argument {_STRATEGIES} must be a list of entries with name and params")
        chosen = [one for one in strategies if one.get("name") == _LOW_NODE]
        for other in strategies:
            if other.get("name") != _LOW_NODE:
                warn(f"argument {_STRATEGIES}: {other.get('name')!r} is ignored; the only strategy is {_LOW_NODE}")
        if not chosen:
            return ReschedulingArgs(interval, active=False)
        params = chosen[-1].get("params") or {}
        if not isinstance(params, Mapping):
            raise ValueError(f"argument {_STRATEGIES}: params is {params!r}: write {_LOW} and {_HIGH} below it")
        for ignored in sorted(set(params) - {_LOW, _HIGH}):
            warn(f"argument {_STRATEGIES}: {ignored} of {_LOW_NODE} is ignored; it knows {_LOW} and {_HIGH}")
        return ReschedulingArgs(interval, _limits(params, _LOW), _limits(params, _HIGH))

    def on_session_open(self, ssn: State) -> None:
        """Find out whether an interval has passed since the last run, or since the first session."""
        self._ssn = ssn
        last = ssn.memory.times.get(self.name)
        self._due = last is not None and last + self._args.interval < ssn.now
        if last is None or self._due:
            ssn.outcome.times[self.name] = ssn.now

    def victim_tasks(self, candidates: VictimCandidates) -> Bools:
        """Return pods of busy nodes, if the interval has passed and other nodes have headroom."""
        named = np.zeros(len(candidates), dtype=bool)
        loads, nodes = self._ssn.loads, self._ssn.nodes
        if not self._due or not self._args.active or loads is None:
            return named
        fresh = loads.measured >= self._ssn.now - _FRESH_S
        allocatable = nodes.allocatable[_ROWS]
        thresholds, targets = (np.array(one)[:, None] for one in (self._args.thresholds, self._args.targets))
        low = fresh & ~nodes.unschedulable & (loads.percent < thresholds).all(axis=0)
        high = fresh & ~low & (loads.percent > targets).any(axis=0)
        if not low.any() or not high.any():
            return named
        headroom: Floats = ((targets - loads.percent[:, low]) / 100 * allocatable[:, low]).sum(axis=1)
        busy, room, spare = np.flatnonzero(high), _Room(self._ssn, np.flatnonzero(low)), _Spare(self._ssn)
        # A Python loop over the busy nodes and their pods, once per interval.
        for node in busy[np.argsort(-loads.percent[:, busy].sum(axis=0), kind="stable")].tolist():
            percent = loads.percent[:, node].copy()
            for place in self._in_order(candidates, np.flatnonzero(candidates.nodes == node)).tolist():
                if not ((percent >= targets[:, 0]).any() and (headroom > 0).all()):
                    break
                row = int(candidates.rows[place])
                if not (spare.has(row) and room.take(row)):
                    continue
                spare.take(row)
                request = candidates.requests[_ROWS, place]
                headroom = headroom - request
                capacity = allocatable[:, node]
                percent -= np.divide(100 * request, capacity, out=np.zeros(2), where=capacity > 0)
                named[place] = True
        return named

    def _in_order(self, candidates: VictimCandidates, places: Rows) -> Rows:
        """Return the candidates of one node in order of eviction."""
        traits = candidates.traits[places]
        best_effort, guaranteed = (traits & trait.value > 0 for trait in (TaskTrait.BEST_EFFORT, TaskTrait.GUARANTEED))
        quality = np.select([best_effort, guaranteed], [0, 2], 1)
        uids = np.array([self._ssn.tasks.record(row).uid for row in candidates.rows[places].tolist()], dtype=str)
        ordered: Rows = places[np.lexsort((uids, quality, candidates.priorities[places]))]
        return ordered


class _Room:
    """What is idle on the low nodes, and who may use it."""

    def __init__(self, ssn: State, low: Rows) -> None:
        self._ssn = ssn
        self._low = low
        self._idle: Floats = np.minimum(ssn.nodes.idle, ssn.nodes.future_idle)[:, low]
        self._open: dict[int, Bools] = {}  # by shape, (n_low,)

    def take(self, row: int) -> bool:
        """Reserve room for a task on the first low node that could take it; say whether there is one."""
        shape_id = int(self._ssn.tasks.shape[row])
        info = self._ssn.task_of(shape_id)
        if shape_id not in self._open:
            found = taints.tolerated(info.shape.tolerations, self._ssn.nodes)
            self._open[shape_id] = (found & node_terms.matches(info.shape, self._ssn.nodes))[self._low]
        places = np.flatnonzero(self._open[shape_id] & info.fit.fits(self._idle))
        if not len(places):
            return False
        self._idle[:, places[0]] -= info.request
        return True


class _Spare:
    """How many tasks jobs, and roles of jobs, have above their minimum."""

    def __init__(self, ssn: State) -> None:
        self._ssn = ssn
        self._left: dict[int, int] = {}  # by job
        self._left_of_role: dict[tuple[int, str], int] = {}

    def has(self, row: int) -> bool:
        """Say whether a job can lose a task, or has no other."""
        job, role = self._ssn.job(int(self._ssn.tasks.job[row])), self._ssn.tasks.record(row).role
        left = self._left.setdefault(job.row, job.ready_count - job.min_available)
        if (job.row, role) not in self._left_of_role:
            of_role = job.role_counts(READY_STATUSES).get(role, 0) - job.record.role_rule.get(role, 0)
            self._left_of_role[job.row, role] = of_role
        return job.ready_count == 1 or (left > 0 and self._left_of_role[job.row, role] > 0)

    def take(self, row: int) -> None:
        """Count a task as lost, of which `has` was asked."""
        job_row = int(self._ssn.tasks.job[row])
        self._left[job_row] -= 1
        self._left_of_role[job_row, self._ssn.tasks.record(row).role] -= 1


def _limits(params: Mapping[str, Any], key: str) -> tuple[float, float]:
    said = params.get(key) or {}
    found = [said.get(resource, _NO_LIMIT) for resource in _RESOURCES] if isinstance(said, Mapping) else []
    numbers = (isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one <= _MOST for one in found)
    if not found or not all(numbers):
        raise ValueError(f"argument {_STRATEGIES}: {key} is {said!r}: write percents such as {{cpu: 20, memory: 20}}")
    cpu, memory = (float(one) for one in found)
    return cpu, memory
