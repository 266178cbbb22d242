"""What plugins of others are given: the same columns, which numpy does not let them change.

The columns of a session belong to the framework, and a plugin that changed them in place would corrupt the cycle in
silence. Built-in plugins get the columns themselves. The views are of the same memory, so they show every placement.
"""

from collections.abc import Callable, Hashable, Mapping
from copy import copy
from dataclasses import fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from volcano_py.framework.contract.eviction_points import Preemptor
from volcano_py.framework.contract.topology import Part
from volcano_py.framework.contract.victim_candidates import VictimCandidates
from volcano_py.framework.state.info import JobInfo
from volcano_py.framework.state.queue_accounts import Accounts, JobAccounts, QueueColumns
from volcano_py.framework.state.state import State
from volcano_py.framework.state.sub_groups import JobSubGroups
from volcano_py.model.arrays import Rows
from volcano_py.snapshot.columns import JobColumns, JobRules, NodeColumns, TaskColumns

T = TypeVar("T")


def read_only(value: T) -> T:
    """Return a view of an array that cannot be written to; anything else as it is."""
    if not isinstance(value, np.ndarray):
        return value
    view = value.view()
    view.flags.writeable = False
    return view


class ReadOnlyState(State):
    """The state of a session without the right to change columns."""

    def __init__(self, state: State) -> None:
        """Take the state of a session, whose equivalence classes are final."""
        vars(self).update(
            _state=state,
            _statics=replace(state.nodes.statics, labels=MappingProxyType(state.nodes.statics.labels)),
            tasks=_tasks(state.tasks),
            queues=MappingProxyType(state.queues),
            accounts=_ReadOnlyAccounts(state.accounts),
            _rules=_rules(state.jobs.rules),
            _job_infos={},
        )
        vars(self).update(nodes=self._nodes(state.nodes), jobs=self._jobs(state.jobs))

    def __getattr__(self, name: str) -> Any:
        if name == "_state":
            raise AttributeError(name)
        return getattr(self._state, name)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"ssn.{name} is read only: a plugin keeps its data in attributes of its own")

    def rows_of_job(self, job_row: int) -> Rows:
        """Return the task rows of a job; see `State.rows_of_job`."""
        return read_only(self._state.rows_of_job(job_row))

    def sub_groups(self, job_row: int) -> JobSubGroups | None:
        """Return the sub-groups of a job; see `State.sub_groups`."""
        return self._state.sub_groups(job_row)  # type: ignore[no-any-return]

    def static_row(self, key: Hashable, ask: Callable[[NodeColumns], NDArray[Any]]) -> NDArray[Any]:
        """Return answers about node records, which are kept over cycles; see `State.static_row`."""
        return read_only(super().static_row(key, ask))

    @cached_property
    def queue_of_job(self) -> Rows:
        """The row of each job's queue; see `State.queue_of_job`."""
        return read_only(self._state.queue_of_job)

    @cached_property
    def total(self) -> Any:
        """What all nodes together offer to pods, shape (n_resources,)."""
        return read_only(self._state.total)

    def given(self, value: Any) -> Any:
        """Return an argument of a question in the form in which a plugin of others gets it."""
        seal = _SEALED.get(type(value))
        return value if seal is None else seal(self, value)

    def _nodes(self, nodes: NodeColumns) -> NodeColumns:
        known: NodeColumns | None = vars(self).get("nodes")
        if known is not None and nodes is self._state.nodes:
            return known
        found = NodeColumns(
            self._statics, read_only(nodes.block), len(self._state.resources), nodes.ports, read_only(nodes.rows)
        )
        found.copies = read_only(nodes.copies)
        return found

    def _jobs(self, jobs: JobColumns) -> JobColumns:
        rules = self._rules if jobs.rules is self._state.jobs.rules else _rules(jobs.rules)
        return JobColumns(
            records=read_only(jobs.records),
            block=read_only(jobs.block),
            n_resources=len(self._state.resources),
            min_available=read_only(jobs.min_available),
            priority=read_only(jobs.priority),
            creation=read_only(jobs.creation),
            phase=read_only(jobs.phase),
            rules=rules,
            rows=read_only(jobs.rows),
        )


class _ReadOnlyAccounts(Accounts):
    """What jobs and queues hold; a plugin may still add accounts of its own."""

    __slots__ = ("_given", "_of")

    def __init__(self, accounts: Accounts) -> None:
        self._of = accounts
        self._given: QueueColumns | None = None

    @property
    def queues(self) -> QueueColumns | None:  # type: ignore[override]
        """What queues hold, once a plugin has asked for it."""
        return None if self._of.queues is None else self.track_queues()

    def track_queues(self) -> QueueColumns:
        """Return what queues hold; see `Accounts.track_queues`."""
        if self._given is None:
            self._given = copy(self._of.track_queues())
            self._given.taken = read_only(self._given.taken)
        return self._given

    def track(self, accounts: JobAccounts) -> None:
        """Keep an account up to date; see `Accounts.track`."""
        self._of.track(accounts)


def _tasks(tasks: TaskColumns) -> TaskColumns:
    found = copy(tasks)
    for name in TaskColumns.__slots__:
        setattr(found, name, read_only(getattr(tasks, name)))
    return found


def _rules(rules: JobRules) -> JobRules:
    return replace(rules, **{one.name: read_only(getattr(rules, one.name)) for one in fields(rules)})


def _preemptor(state: ReadOnlyState, preemptor: Preemptor) -> Preemptor:
    gains, given = read_only(preemptor.gains), read_only(preemptor.given)
    return replace(preemptor, job=state.job(preemptor.job.row), gains=gains, given=given)


def _part(state: ReadOnlyState, part: Part) -> Part:
    request = read_only(part.request)
    return replace(part, job=state.job(part.job.row), tasks=read_only(part.tasks), request=request)


_SEALED: Final[Mapping[type, Any]] = {
    np.ndarray: lambda _, array: read_only(array),
    NodeColumns: ReadOnlyState._nodes,
    State: lambda state, _: state,
    JobColumns: ReadOnlyState._jobs,
    TaskColumns: lambda _, tasks: _tasks(tasks),
    JobInfo: lambda state, job: state.job(job.row),
    VictimCandidates: lambda state, candidates: candidates.of(state),
    Preemptor: _preemptor,
    Part: _part,
}
