"""Flows, their jobs and templates, for tests."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from volcano_py.api.batch import Job
from volcano_py.api.flow import JobFlow, JobTemplate
from volcano_py.controllers.jobflow.decision import Seen, Verdict, judge
from volcano_py.controllers.jobflow.standing import standing
from volcano_py.controllers.writes import Create, Delete, Patch, Write

NOW = datetime(2024, 1, 1, 12, tzinfo=UTC)
THEN = "2024-01-01T11:00:00Z"


def a_step(name: str, *targets: str, probe: dict[str, Any] | None = None, patch: Any = None) -> dict[str, Any]:
    step: dict[str, Any] = {"name": name}
    if targets:
        step["dependsOn"] = {"targets": list(targets), **({"probe": probe} if probe else {})}
    if patch is not None:
        step["patch"] = {"jobSpec": patch}
    return step


def a_flow(*steps: dict[str, Any], policy: str = "", status: Any = None, **meta: Any) -> JobFlow:
    wire = {
        "metadata": {"name": "f", "namespace": "default", "uid": "uid-f", "resourceVersion": "7", **meta},
        "spec": {"flows": list(steps), "jobRetainPolicy": policy},
        "status": status or {},
    }
    return msgspec.convert(wire, JobFlow)


def a_child(step: str, phase: str = "", tasks: Any = (), **status: Any) -> Job:
    state = {"phase": phase, "lastTransitionTime": THEN} if phase else {}
    wire = {
        "metadata": {"name": f"f-{step}", "namespace": "default", "uid": f"uid-{step}", "creationTimestamp": THEN},
        "spec": {"tasks": list(tasks)},
        "status": {"state": state, **status},
    }
    return msgspec.convert(wire, Job)


def a_template(name: str, **spec: Any) -> JobTemplate:
    wire = {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": spec}
    return msgspec.convert(wire, JobTemplate)


def seen(flow: JobFlow, *jobs: Job, templates: Any = None, **more: Any) -> Seen:
    """Return what the controller sees; without ``templates``, every step has one."""
    found = {step.name: a_template(step.name) for step in flow.spec.flows} if templates is None else templates
    return Seen(flow, {job.metadata.name: job for job in jobs}, found, **more)


def verdict(flow: JobFlow, *jobs: Job, **more: Any) -> Verdict:
    return judge(seen(flow, *jobs, **more), NOW)


def writes(found: Verdict) -> list[Write]:
    return [write for step in found.plan.steps for write in (step if isinstance(step, tuple) else (step,))]


def created(found: Verdict) -> list[str]:
    """Return the names of the jobs that are created."""
    return [body_of(write)["metadata"]["name"] for write in writes(found) if isinstance(write, Create)]


def deleted(found: Verdict) -> list[str]:
    return [write.name for write in writes(found) if isinstance(write, Delete)]


def body_of(write: Write) -> dict[str, Any]:
    assert isinstance(write, Create)
    assert isinstance(write.body, dict)
    return write.body


def status_patch(found: Verdict) -> dict[str, Any] | None:
    patches = [write for write in writes(found) if isinstance(write, Patch)]
    assert len(patches) <= 1
    return dict(patches[0].body["status"]) if patches else None


def problems(found: Verdict) -> list[tuple[str, str]]:
    """Return reason and text of each problem."""
    return [(event.reason, event.message) for event in found.problems]


def after(flow: JobFlow, *jobs: Job) -> JobFlow:
    """Return the flow with the status that one look gives it."""
    return msgspec.structs.replace(flow, status=standing(flow, {job.metadata.name: job for job in jobs}, NOW))
