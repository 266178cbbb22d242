"""Decides about a flow: its jobs and templates in, status and writes out.

The status is written first, with the resourceVersion on which the decision rests. So a job is never created on the
ground of an old status that does not know yet that the job has ended and is gone.
"""

from collections.abc import Container, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from volcano_py.api import keys
from volcano_py.api.batch import Job
from volcano_py.api.flow import FlowStep, JobFlow, JobFlowStatus, JobTemplate
from volcano_py.controllers.job import phases
from volcano_py.controllers.jobflow import standing as flow_phases
from volcano_py.controllers.jobflow.children import child, child_name
from volcano_py.controllers.jobflow.patching import PatchProblem, patched
from volcano_py.controllers.jobflow.standing import standing
from volcano_py.controllers.jobflow.steps import INVALID, Refusal, TasksOfJobs, may_start, refusals
from volcano_py.controllers.merge_patch import difference
from volcano_py.controllers.plan import NOTHING, Plan
from volcano_py.controllers.writes import Create, Delete, Patch, Write
from volcano_py.kube.resource import JOB_FLOWS, VCJOBS
from volcano_py.model.decisions import RecordEvent

RETAIN_POLICY_DELETE: Final = "delete"
MISSING_TEMPLATE: Final = "JobTemplateNotFound"
JOB_EXISTS: Final = "JobExists"


class Seen(NamedTuple):
    """A flow and what it depends on."""

    flow: JobFlow
    jobs: Mapping[str, Job]
    """The jobs that it owns, by name."""
    templates: Mapping[str, JobTemplate]
    """The job templates of its namespace that it names."""
    created: Container[str] = ()
    """Names of jobs that were created a moment ago; the watch may not show them yet."""
    taken: Container[str] = ()
    """Names of its jobs that other jobs have."""


class Verdict(NamedTuple):
    """What to write, and which steps cannot start."""

    plan: Plan
    problems: tuple[RecordEvent, ...] = ()
    """One event for each step that cannot start as things stand; the same again while nothing changes."""


def judge(seen: Seen, now: datetime) -> Verdict:
    """Return the writes for a flow, and its problems."""
    flow = seen.flow
    if flow.metadata.deletion_timestamp is not None:
        return Verdict(NOTHING)
    status = standing(flow, seen.jobs, now)
    phase = status.state.phase
    starts: list[Create] = []
    problems: list[RecordEvent] = []
    if phase not in flow_phases.ENDED:
        for step, result in _startable(seen, status):
            if isinstance(result, Create):
                starts.append(result)
            else:
                problems.append(_problem(flow, step, result))
    removals = _removals(seen) if phase == flow_phases.SUCCEED else ()
    steps: list[Write | tuple[Write, ...]] = [*_status(flow, status, fence=bool(starts)), tuple(starts), removals]
    return Verdict(Plan(tuple(step for step in steps if step), _phase_events(flow, status)), tuple(problems))


def _startable(seen: Seen, status: JobFlowStatus) -> Iterator[tuple[FlowStep, Create | Refusal]]:
    """Yield the steps without a job that may start, and those that cannot, with the reason."""
    flow = seen.flow
    refused, tasks_of = refusals(flow), TasksOfJobs()
    known = {entry.name for entry in status.job_status_list}
    completed = frozenset(entry.name for entry in status.job_status_list if entry.state == phases.COMPLETED)
    for step in {step.name: step for step in flow.spec.flows}.values():
        name = child_name(flow.metadata.name, step.name)
        if name in known or name in seen.created:
            continue
        if step.name in refused:
            yield step, refused[step.name]
            continue
        answer = may_start(flow.metadata.name, step, seen.jobs, completed, tasks_of)
        if isinstance(answer, Refusal):
            yield step, answer
        elif answer:
            if name in seen.taken:
                text = f"Job {name} exists already and does not belong to this flow: delete it, or rename the flow"
                yield step, Refusal(JOB_EXISTS, text)
            else:
                yield step, _start(seen, step)


def _start(seen: Seen, step: FlowStep) -> Create | Refusal:
    template = seen.templates.get(step.name)
    if template is None:
        where = f"{seen.flow.metadata.namespace}/{step.name}"
        return Refusal(MISSING_TEMPLATE, f"JobTemplate {where} does not exist: create it, and the step starts")
    spec: dict[str, Any] = template.spec
    if step.patch is not None:
        try:
            spec = patched(spec, step.patch.job_spec)
        except PatchProblem as problem:
            return Refusal(INVALID, str(problem))
    return child(seen.flow, step.name, spec)


def _status(flow: JobFlow, status: JobFlowStatus, *, fence: bool) -> Iterator[Patch]:
    changes = difference(msgspec.to_builtins(flow.status), msgspec.to_builtins(status))
    if changes or fence:
        meta = {"uid": flow.metadata.uid, "resourceVersion": flow.metadata.resource_version}
        body = {"metadata": meta, "status": changes}
        yield Patch(JOB_FLOWS, flow.metadata.namespace, flow.metadata.name, body, subresource="status")


def _removals(seen: Seen) -> tuple[Delete, ...]:
    """Return the deletions of the jobs of a flow that has succeeded and does not retain them."""
    if seen.flow.spec.job_retain_policy != RETAIN_POLICY_DELETE:
        return ()
    return tuple(
        Delete(VCJOBS, job.metadata.namespace, name, job.metadata.uid, propagation="Background")
        for name, job in sorted(seen.jobs.items())
        if job.metadata.deletion_timestamp is None
    )


def _problem(flow: JobFlow, step: FlowStep, refusal: Refusal) -> RecordEvent:
    return event(flow, keys.EVENT_WARNING, refusal.reason, f"step {step.name} does not start: {refusal.text}")


def _phase_events(flow: JobFlow, status: JobFlowStatus) -> tuple[RecordEvent, ...]:
    phase = status.state.phase
    if phase == flow.status.state.phase:
        return ()
    if phase == flow_phases.SUCCEED:
        return (event(flow, keys.EVENT_NORMAL, phase, f"all {len(status.completed_jobs)} jobs have completed"),)
    if phase == flow_phases.FAILED:
        bad = ", ".join([*status.failed_jobs, *status.terminated_jobs])
        return (event(flow, keys.EVENT_WARNING, phase, f"no further step starts, because of Job {bad}"),)
    return ()


def event(flow: JobFlow, kind: str, reason: str, text: str) -> RecordEvent:
    """Return an event on a flow."""
    meta = flow.metadata
    return RecordEvent(JOB_FLOWS.kind, meta.namespace, meta.name, meta.uid, kind, reason, text)
