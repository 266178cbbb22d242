"""The random runs find faults: each sabotage of the table or of a decision breaks a rule within 1500 runs."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import pytest

from tests.controllers.job.simulation.auditor import Wrong
from tests.controllers.job.simulation.run import Run, quiet
from volcano_py.controllers.job import acting, bookkeeping, decision, happenings, phases, pod_group, policies, record
from volcano_py.controllers.job import status as statuses
from volcano_py.controllers.job.carrying_out import CarryOut
from volcano_py.controllers.job.members import Members
from volcano_py.controllers.job.observed import JobPlan
from volcano_py.controllers.job.phases import Change, Kill, Rule
from volcano_py.controllers.job.policies import Request

MOST_RUNS: Final = 1500
Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def no_logs() -> Iterator[None]:
    with quiet():
        yield


def _rule(action: str, rule: Rule | None, *of: str) -> Callable[[Patch], None]:
    """Return the sabotage that puts another rule into the table, or removes one."""

    def sabotage(patch: Patch) -> None:
        table = {phase: dict(rules) for phase, rules in phases.TABLE.items()}
        for phase in of or (phases.PENDING, phases.RUNNING):
            if rule is None:
                del table[phase][action]
            else:
                table[phase][action] = rule
        patch.setattr(phases, "TABLE", table)

    return sabotage


def _next_phase(change: Callable[[Any, Any, Any, Change | None], Change | None]) -> Callable[[Patch], None]:
    """Return the sabotage that changes what a job does by itself."""

    def sabotage(patch: Patch) -> None:
        real = phases.next_phase
        patch.setattr(phases, "next_phase", lambda job, *rest: change(job, *rest, real(job, *rest)))

    return sabotage


def _protected(patch: Patch, **changes: Any) -> None:
    for name, value in changes.items():
        target, _, attribute = name.partition("__")
        patch.setattr(_MODULES[target], attribute, value)


_MODULES: Final = {
    "acting": acting,
    "bookkeeping": bookkeeping,
    "decision": decision,
    "happenings": happenings,
    "policies": policies,
    "record": record,
    "statuses": statuses,
}


def _with(**changes: Any) -> Callable[[Patch], None]:
    """Return the sabotage that replaces functions, as module__name."""
    return lambda patch: _protected(patch, **changes)


def _counts_without_terminating(job: Any, counts: phases.Counts, by_task: Any, real: Change | None) -> Change | None:
    return real or _next(job, counts._replace(terminating=0), by_task)


_next = phases.next_phase


def _one_pod_less(job: Any, counts: phases.Counts, by_task: Any, _: Change | None) -> Change | None:
    started = counts._replace(running=counts.running + 1) if job.status.state.phase == phases.PENDING else counts
    return _next(job, started, by_task)


def _restarts_for_ever(job: Any, counts: phases.Counts, by_task: Any, real: Change | None) -> Change | None:
    if job.status.state.phase == phases.RESTARTING and real is not None and real.phase == phases.FAILED:
        return Change(phases.PENDING, real.reason, real.message)
    return real


def _always_completed(_: Any, __: Any, ___: Any, real: Change | None) -> Change | None:
    if real is not None and real.reason in ("PodsFailed", "TaskFailed"):
        return Change(phases.COMPLETED, real.reason, real.message)
    return real


def _no_min_success(job: Any, counts: phases.Counts, by_task: Any, _: Change | None) -> Change | None:
    spec = msgspec.structs.replace(job.spec, min_success=None)
    return _next(msgspec.structs.replace(job, spec=spec), counts, by_task)


def _keeps_version(patch: Patch) -> None:
    real = acting._apply

    def apply(seen: Any, draft: Any, *rest: Any) -> None:
        version = draft.job.status.version
        real(seen, draft, *rest)
        status = msgspec.structs.replace(draft.job.status, version=version)
        draft.job = msgspec.structs.replace(draft.job, status=status)

    patch.setattr(acting, "_apply", apply)


def _no_version_guard(patch: Patch) -> None:
    real = policies.resolve
    patch.setattr(policies, "resolve", lambda job, request: real(job, request._replace(version=None)))


def _job_before_task(patch: Patch) -> None:
    real = policies.resolve

    def resolve(job: Any, request: Request) -> Any:
        found = real(job, request._replace(task=""))
        return found if found.policy is not None else real(job, request)

    patch.setattr(policies, "resolve", resolve)


def _kills_first(patch: Patch) -> None:
    real = CarryOut.__call__

    async def carry_out(self: CarryOut, found: Any, plan: JobPlan) -> None:
        await self._leaving.delete(found, found.job, plan)
        await real(self, found, plan)

    patch.setattr(CarryOut, "__call__", carry_out)


def _forgets_at_once(patch: Patch) -> None:
    real = CarryOut.__call__

    async def carry_out(self: CarryOut, found: Any, plan: JobPlan) -> None:
        for _ in range(plan.handled):
            found.triggers.popleft()
        await real(self, found, _without_handled(plan))

    def _without_handled(plan: JobPlan) -> JobPlan:
        return decision.dataclasses.replace(plan, handled=0)

    patch.setattr(CarryOut, "__call__", carry_out)


def _counts_twice(patch: Patch) -> None:
    real = Members.counts
    patch.setattr(
        Members, "counts", lambda self: (found := real(self))._replace(running=found.running + len(self.leaving))
    )


def _deletes_without_counting(patch: Patch) -> None:
    def mark(self: Members, name: str, uid: str) -> None:
        member = self.get(name)
        if member is not None and member.uid == uid:
            member.deleting = member.killed = True

    patch.setattr(Members, "mark_deleting", mark)


def _no_command_note(patch: Patch) -> None:
    real = acting.answer_command

    def answer(seen: Any, now: Any) -> JobPlan | None:
        found = real(seen, now)
        if found is None or found.status is None:
            return found
        notes = bookkeeping.without(found.status.controlled_resources, bookkeeping.COMMAND)
        status = msgspec.structs.replace(found.status, controlled_resources=notes)
        return decision.dataclasses.replace(found, status=status)

    patch.setattr(acting, "answer_command", answer)


def _creates_without_turn(patch: Patch) -> None:
    """Create pods although the PodGroup waits."""
    real = decision.plan

    def plan(seen: Any, now: Any) -> JobPlan:
        if seen.group is None and seen.job.status.state.phase in phases.ACTIVE:
            body = pod_group.create(seen.job, seen.priorities).body
            meta = {**body["metadata"], "uid": "none", "resourceVersion": "0"}
            group = msgspec.convert({**body, "metadata": meta, "status": {"phase": "Inqueue"}}, record.PodGroup)
            seen = decision.dataclasses.replace(seen, group=group)
        return real(seen, now)

    patch.setattr(decision, "plan", plan)


def _no_condition(patch: Patch) -> None:
    patch.setattr(statuses, "appended", lambda conditions, _: list(conditions))


def _leftovers_stay(patch: Patch) -> None:
    real = Members.victims

    def victims(self: Members, **how: Any) -> Any:
        return [one for one in real(self, **how) if one.index != 1]

    patch.setattr(Members, "victims", victims)


def _acts_at_once(patch: Patch) -> None:
    patch.setattr(policies, "delay_of", lambda _: 0.0)


def _scale_down_is_eviction(patch: Patch) -> None:
    def removed(_: object, last: Any) -> list[str]:
        return [policies.POD_EVICTED] if last.dropped or not last.killed else []

    patch.setattr(happenings, "removed", removed)


def _kill_is_eviction(patch: Patch) -> None:
    patch.setattr(happenings, "removed", lambda *_: [policies.POD_EVICTED])


SABOTAGES: Final[dict[str, Callable[[Patch], None]]] = {
    "abortion ends as termination": _rule(policies.ABORT_JOB, Rule(Kill.UNFINISHED, phases.TERMINATING)),
    "a restart of the job counts no retry": _rule(policies.RESTART_JOB, Rule(Kill.ALL, phases.RESTARTING)),
    "a restart of a pod counts no retry": _rule(policies.RESTART_POD, Rule(Kill.TARGET, phases.RESTARTING)),
    "a restart of a task kills all": _rule(policies.RESTART_TASK, Rule(Kill.ALL, phases.RESTARTING, retry=True)),
    "a restart of the job spares what ended": _rule(
        policies.RESTART_JOB, Rule(Kill.UNFINISHED, phases.RESTARTING, retry=True)
    ),
    "an abortion kills what ended": _rule(policies.ABORT_JOB, Rule(Kill.ALL, phases.ABORTING)),
    "a restart within a restart counts again": _rule(
        policies.RESTART_JOB, Rule(Kill.ALL, phases.RESTARTING, retry=True), phases.RESTARTING
    ),
    "resumption counts no retry": _rule(
        policies.RESUME_JOB, Rule(Kill.UNSUCCESSFUL, phases.RESTARTING), phases.ABORTED, phases.ABORTING
    ),
    "resumption kills what succeeded": _rule(
        policies.RESUME_JOB, Rule(Kill.ALL, phases.RESTARTING, retry=True), phases.ABORTED, phases.ABORTING
    ),
    "resumption leads to Pending": _rule(
        policies.RESUME_JOB, Rule(Kill.UNSUCCESSFUL, phases.PENDING, retry=True), phases.ABORTED
    ),
    "completion is forgotten": _rule(policies.COMPLETE_JOB, None),
    "a termination is undone": _rule(
        policies.RESTART_JOB, Rule(Kill.ALL, phases.RESTARTING, retry=True), phases.TERMINATED, phases.TERMINATING
    ),
    "maxRetry is ignored": _next_phase(_restarts_for_ever),
    "a phase does not wait for pods that terminate": _next_phase(_counts_without_terminating),
    "a job runs with one pod too few": _next_phase(_one_pod_less),
    "a job completes although its pods failed": _next_phase(_always_completed),
    "minSuccess is ignored": _next_phase(_no_min_success),
    "the version stays": _keeps_version,
    "pods of an earlier version are heard": _no_version_guard,
    "policies of the job come first": _job_before_task,
    "delays are ignored": _acts_at_once,
    "pods are killed before the status says so": _kills_first,
    "what happened is forgotten before the status says it": _forgets_at_once,
    "a pod that somebody deletes counts twice": _counts_twice,
    "a deleted pod is still counted": _deletes_without_counting,
    "one pod is never killed": _leftovers_stay,
    "a restart forgets whom it has still to kill": _with(bookkeeping__restart_victims=lambda *_: []),
    "evictions while the controller was away are lost": _with(happenings__missed=lambda *_: []),
    "what happened while the controller was away is lost": _with(happenings__present=lambda *_: []),
    "a kill is an eviction": _kill_is_eviction,
    "a scale-down is an eviction": _scale_down_is_eviction,
    "an old state of a pod replaces a new one": _with(record__is_older=lambda *_: False),
    "pods do not wait for their turn": _creates_without_turn,
    "dependsOn is ignored": _with(decision__may_start=lambda *_: True),
    "a Command is not noted": _no_command_note,
    "a phase gets no condition": _no_condition,
    "one success completes a task": _with(happenings__is_complete=lambda *_: True),
}


TRY_FIRST: Final = {
    "a restart within a restart counts again": 177,
    "completion is forgotten": 103,
    "a termination is undone": 228,
    "pods of an earlier version are heard": 357,
    "what happened is forgotten before the status says it": 98,
    "a restart forgets whom it has still to kill": 177,
    "evictions while the controller was away are lost": 732,
    "what happened while the controller was away is lost": 177,
    "a kill is an eviction": 140,
    "a scale-down is an eviction": 951,
    "an old state of a pod replaces a new one": 456,
}
"""Seeds that found a sabotage late: only to save time. A change of the simulator may need others, or none."""


@pytest.mark.parametrize("name", SABOTAGES)
def test_a_sabotage_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    SABOTAGES[name](monkeypatch)
    for seed in (TRY_FIRST.get(name, 0), *range(MOST_RUNS)):
        try:
            Run(seed).run()
        except Wrong:
            return
    pytest.fail(f"{MOST_RUNS} runs did not find that {name}")
