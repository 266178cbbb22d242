"""Checks cron jobs, job flows and job templates."""

from collections.abc import Collection, Iterator
from typing import Final

from volcano_py.admission.contract import UPDATE, Options, Request
from volcano_py.admission.cronjobs import validate
from volcano_py.admission.graph import in_order, unknown_targets
from volcano_py.api.duration import DurationError, parse_go_duration
from volcano_py.migration.findings import Finding, Group, Obj, Ref, mapping, sequence, shortened, text
from volcano_py.migration.jobs import judge_spec
from volcano_py.migration.relatives import NO_OBJECTS

_EVERY: Final = "@every "
_ENDED: Final = frozenset({"Succeed", "Failed"})
_MINUTE_S: Final = 60.0
_FILLED_IN: Final = {"queue": "default", "maxRetry": 3}
"""What the API server adds to a patch by itself, if it has Volcano's definition."""


def judge_cron_job(ref: Ref, cron_job: Obj, schedulers: Collection[str]) -> Iterator[Finding]:
    """Yield what differs for a cron job and the jobs that it creates."""
    request = Request(UPDATE, ref.namespace, ref.name, cron_job, cron_job)
    for flaw in validate(request, NO_OBJECTS, Options()).refusals:
        what = f"our webhook refuses it at its next change: {shortened(flaw.message.strip(' ;.'), 100)}"
        yield Finding(Group.DIFFERS, "cronjob-refused", ref, what, f"{flaw.field}: {flaw.hint}")
    yield from _every(ref, cron_job)
    template = mapping(cron_job, "spec", "jobTemplate")
    yield from judge_spec(ref, cron_job, mapping(template, "spec"), schedulers)


def _every(ref: Ref, cron_job: Obj) -> Iterator[Finding]:
    """Yield what differs for starts at equal distances."""
    schedule = text(cron_job, "spec", "schedule").strip()
    if not schedule.startswith(_EVERY):
        return
    try:
        distance_s = parse_go_duration(schedule.removeprefix(_EVERY).strip())
    except DurationError:
        return
    deadline_s = mapping(cron_job, "spec").get("startingDeadlineSeconds")
    if isinstance(deadline_s, int) and deadline_s < distance_s:
        what = f"it starts jobs here; in Volcano, the deadline of {deadline_s} s before {schedule} prevents every start"
        yield Finding(Group.DIFFERS, "cronjob-deadline", ref, what, "suspend it if it shall start nothing")
    elif distance_s < _MINUTE_S:
        what = f"{schedule} starts as many jobs as it says; Volcano starts one a minute, as names have minutes"
        yield Finding(Group.DIFFERS, "cronjob-every", ref, what, "write @every 1m to keep one start a minute")


def judge_flow(ref: Ref, flow: Obj, templates: Collection[tuple[str, str]]) -> Iterator[Finding]:
    """Yield what differs for a job flow that has not ended."""
    if text(flow, "status", "state", "phase") in _ENDED or text(flow, "metadata", "deletionTimestamp"):
        return
    steps = [one for one in sequence(flow, "spec", "flows") if isinstance(one, dict)]
    graph = {text(step, "name"): [str(one) for one in sequence(step, "dependsOn", "targets")] for step in steps}
    for step in steps:
        name, probe = text(step, "name"), mapping(step, "dependsOn", "probe")
        if (ref.namespace, name) not in templates:
            what = f"the job template {name} does not exist: here the flow waits for it; Volcano gives it up"
            yield Finding(Group.DIFFERS, "flow-template", ref, what, "create the template, or delete the flow")
        patch = mapping(step, "patch", "jobSpec")
        if any(patch[key] != _FILLED_IN.get(key) for key in patch):
            what = f"step {name} has a patch, which Volcano ignores: here its job gets the patch"
            yield Finding(Group.DIFFERS, "flow-patch", ref, what, "remove the patch if the job shall stay as it is")
        if asked := [key for key in ("httpGetList", "tcpSocketList") if sequence(probe, key)]:
            what = f"step {name} has a probe ({', '.join(asked)}), which Volcano ignores: here the step does not start"
            yield Finding(Group.BLOCKS, "flow-probe", ref, what, "remove this probe")
        elif sequence(probe, "taskStatusList"):
            what = f"step {name} has a probe of tasks, which Volcano ignores: here the step waits for it"
            yield Finding(Group.DIFFERS, "flow-task-probe", ref, what, "remove the probe if the step shall not wait")
    if unknown := unknown_targets(graph):
        what = f"it waits for {', '.join(unknown)}, which is no step of it"
        yield Finding(
            Group.DIFFERS, "flow-refused", ref, what, "correct dependsOn.targets: our webhook refuses the flow"
        )
    elif in_order(graph) is None:
        what = "its steps wait for each other in a circle"
        yield Finding(
            Group.DIFFERS, "flow-refused", ref, what, "correct dependsOn.targets: our webhook refuses the flow"
        )


def judge_template(ref: Ref, template: Obj, schedulers: Collection[str]) -> Iterator[Finding]:
    """Yield what differs for the jobs of a job template."""
    yield from judge_spec(ref, template, mapping(template, "spec"), schedulers)
