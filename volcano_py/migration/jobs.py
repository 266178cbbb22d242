"""Checks jobs (vcjobs), and the templates of jobs in cron jobs and job templates."""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

import msgspec

from volcano_py.admission.contract import Options, Refusal
from volcano_py.admission.jobs import spec_flaws
from volcano_py.admission.policies import ACTIONS, EVENTS
from volcano_py.admission.reading import typed
from volcano_py.api.batch import Job
from volcano_py.api.job_defaults import with_defaults
from volcano_py.controllers.job.plugins.registry import BUILT_IN, build_plugins
from volcano_py.migration.findings import Finding, Group, Obj, Ref, mapping, sequence, shortened, text
from volcano_py.migration.needs import needs_of, numa_policy

FINISHED: Final = frozenset({"Completed", "Failed", "Terminated"})
_PHASES: Final = FINISHED | {"", "Pending", "Running", "Restarting", "Aborting", "Aborted", "Completing", "Terminating"}
_PLUGIN: Final = "unable to find job plugin"
_ARGUMENTS: Final = ("unknown argument", "argument --", '"')


def judge_job(ref: Ref, job: Obj, queues: Collection[str], schedulers: Collection[str]) -> Iterator[Finding]:
    """Yield what differs for a job; one that has ended is only cleaned up."""
    phase = text(job, "status", "state", "phase")
    if phase in FINISHED or text(job, "metadata", "deletionTimestamp"):
        return
    if phase not in _PHASES:
        what = f"its phase is {phase}, which our controllers do not know"
        yield Finding(Group.DIFFERS, "job-phase", ref, what, "wait for its end, or delete the job before the switch")
    spec = mapping(job, "spec")
    queue = text(spec, "queue") or "default"
    if queue not in queues:
        what = f"its queue {queue} does not exist: the job waits here; Volcano terminates it after 15 attempts"
        yield Finding(Group.DIFFERS, "job-queue", ref, what, f"create the queue {queue}, or delete the job")
    yield from judge_spec(ref, job, spec, schedulers)
    yield from _policies(ref, job, spec)
    yield from _claims(ref, spec)


def judge_spec(ref: Ref, obj: Obj, spec: Obj, schedulers: Collection[str]) -> Iterator[Finding]:
    """Yield what differs for the jobs of a spec, wherever it stands; ``schedulers`` are the names of Volcano's."""
    scheduler = text(spec, "schedulerName")
    if scheduler and scheduler not in schedulers:
        what = f"it names the scheduler {scheduler}: here its PodGroup is left to that one; Volcano's enqueues it"
        advice = "name a scheduler of ours: a scheduler without PodGroups leaves the job without pods"
        yield Finding(Group.DIFFERS, "job-scheduler", ref, what, advice)
    missing = [name for name in mapping(spec, "plugins") if name not in BUILT_IN]
    for name in missing:
        what = f"the job plugin {name} does not exist here; the job waits and says so"
        yield Finding(Group.MISSING, "job-plugin", ref, what, "do without the plugin, or keep Volcano's controllers")
    yield from _needs(ref, spec)
    wire = {"metadata": {"name": text(obj, "metadata", "name")}, "spec": _as_created(spec)}
    job = typed(wire, Job)
    if isinstance(job, Refusal):
        yield _refused(ref, job)
        return
    for said in _plugin_arguments(with_defaults(job)):
        yield Finding(Group.DIFFERS, "job-plugin-argument", ref, shortened(said, 160), "correct what spec.plugins says")
    # A plugin that is missing has its finding already.
    for flaw in spec_flaws(wire, with_defaults(job), Options()):
        if not flaw.message.strip().startswith(_PLUGIN):
            yield _refused(ref, flaw)
            return


def _plugin_arguments(job: Job) -> Iterator[str]:
    """Yield arguments that Volcano stops reading at; what else plugins say of a job is the same there."""
    # Without tasks: a plugin would list the hosts of all replicas to see whether they fit.
    for said in build_plugins(msgspec.structs.replace(job, spec=msgspec.structs.replace(job.spec, tasks=[]))).warnings:
        if said.partition(": ")[2].startswith(_ARGUMENTS):
            yield said


def _as_created(spec: Obj) -> Obj:
    """Return a spec without the names of claims that the controller has generated since the job was created."""
    volumes = [
        {key: value for key, value in one.items() if key != "volumeClaimName" or not one.get("volumeClaim")}
        for one in sequence(spec, "volumes")
        if isinstance(one, dict)
    ]
    return {**spec, "volumes": volumes} if volumes else spec


def _refused(ref: Ref, flaw: Refusal) -> Finding:
    what = f"our webhook would refuse such a job: {shortened(flaw.message.strip(' ;.'), 120)}"
    where = f"{flaw.field}: " if flaw.field else ""
    return Finding(Group.DIFFERS, "job-refused", ref, what, f"{where}{flaw.hint}" if flaw.hint else "correct the job")


def _needs(ref: Ref, spec: Obj) -> Iterator[Finding]:
    found: dict[str, Finding] = {}
    for task in sequence(spec, "tasks"):
        template = mapping(task, "template")
        policy = text(task, "topologyPolicy")
        if policy not in ("", "none"):
            found.setdefault("numa-policy", numa_policy(ref, policy))
        for one in needs_of(ref, mapping(template, "metadata", "annotations"), mapping(template, "spec")):
            found.setdefault(one.rule, one)
    yield from found.values()


def _policies(ref: Ref, job: Obj, spec: Obj) -> Iterator[Finding]:
    version = mapping(job, "status").get("version") or 0
    policies = [one for one in sequence(spec, "policies") if isinstance(one, dict)]
    for task in sequence(spec, "tasks"):
        policies += [one for one in sequence(task, "policies") if isinstance(one, dict)]
    found: dict[str, Finding] = {}
    for policy in policies:
        events = {str(name) for name in (*sequence(policy, "events"), policy.get("event")) if name}
        action = text(policy, "action")
        if not events and action not in ACTIONS:
            # The webhooks let this pass: they check actions only beside events.
            what = f"a policy for an exit code has the action {action or 'none'}, which is no action: nothing happens"
            found["policy-action"] = Finding(
                Group.DIFFERS, "policy-action", ref, what, f"use one of {', '.join(ACTIONS)}"
            )
        if "Unknown" in events and version and events <= set(EVENTS):
            what = "its policy for the event Unknown acts here; Volcano ignores it once the job has restarted"
            found["policy-unknown"] = Finding(Group.DIFFERS, "policy-unknown", ref, what, "see docs/parity.md, Jobs")
    yield from found.values()


def _claims(ref: Ref, spec: Obj) -> Iterator[Finding]:
    claims = Counter(text(volume, "volumeClaimName") for volume in sequence(spec, "volumes"))
    for name in sorted(name for name, count in claims.items() if name and count > 1):
        what = f"two volumes have the claim {name}; new pods mount both paths here, in Volcano only the first"
        yield Finding(Group.DIFFERS, "claim-twice", ref, what, "check that the second path may appear in the pods")
