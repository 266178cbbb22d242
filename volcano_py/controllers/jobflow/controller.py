"""The jobflow controller: watches flows, their jobs and job templates, and carries out the plan of `decision.judge`."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from volcano_py.api import keys
from volcano_py.api.batch import Job
from volcano_py.api.flow import FlowStep, JobFlow, JobTemplate
from volcano_py.api.meta import OwnerReference
from volcano_py.controllers.controller import ControllerContext
from volcano_py.controllers.jobflow import decision, standing
from volcano_py.controllers.jobflow.children import child_name
from volcano_py.controllers.jobflow.decision import Seen
from volcano_py.controllers.jobflow.patching import without_effect
from volcano_py.controllers.plan import NOTHING, Plan
from volcano_py.controllers.podgroup.decision import controller_of
from volcano_py.controllers.recent import Recent
from volcano_py.controllers.shell import Shell
from volcano_py.controllers.view import View
from volcano_py.controllers.writes import Create, Write
from volcano_py.kube import errors
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import JOB_FLOWS, JOB_TEMPLATES
from volcano_py.model.decisions import RecordEvent
from volcano_py.runtime.supervisor import Supervisor

EVENT_CREATED: Final = "Created"
EVENT_REFUSED: Final = "FailedCreate"
EVENT_GIVEN_UP: Final = "SyncJobFlow"
_WORKERS: Final = 4


class JobFlowController:
    """Creates the jobs of each flow step by step, and keeps the status of the flow up to date."""

    name: Final = "jobflow-controller"

    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._events = context.events
        self._flows: View[JobFlow] = View()
        self._templates: View[JobTemplate] = View()
        self._jobs = context.jobs
        self._children: dict[tuple[str, str], dict[str, Job]] = {}  # namespace and uid of a flow -> its jobs by name
        self._by_template: dict[str, set[str]] = {}  # job template -> flows that name it
        self._by_job: dict[str, set[str]] = {}  # job -> flows with a step of this job
        self._told: dict[str, frozenset[RecordEvent]] = {}  # flow -> problems that it has events of
        self._created: Recent[str] = Recent(context.clock)  # jobs
        self._metrics = context.metrics
        self._in_namespace: Counter[str] = Counter()  # how many flows there are
        self._works = False
        self._shell: Shell[str] = Shell(
            context,
            self.name,
            self._look,
            workers=_WORKERS,
            refill=self._unfinished,
            on_written=self._written,
            on_refused=self._refused,
            on_given_up=self._given_up,
        )
        context.excuses.subscribe(self._shell.excuse)
        self._flows.subscribe(self._flow_changed)
        self._templates.subscribe(self._template_changed)
        self._jobs.subscribe(self._job_changed)

    def watch(self, informers: Informers) -> None:
        """Add the informers of flows and job templates."""
        informers.add(JOB_FLOWS, JobFlow, self._flows, optional=True)
        informers.add(JOB_TEMPLATES, JobTemplate, self._templates, name="job templates of flows", optional=True)

    def start(self, supervisor: Supervisor) -> None:
        """Start to reconcile; until then, changes are only collected."""
        self._works = True
        self._shell.start(supervisor)

    def backlog(self) -> int:
        """Return how many flows wait in the work queue or are being reconciled."""
        return self._shell.backlog

    # Changes

    def _flow_changed(self, key: str, before: JobFlow | None, after: JobFlow | None) -> None:
        for flow, enter in ((before, False), (after, True)):
            if flow is not None:
                for step in flow.spec.flows:
                    _enter(self._by_template, _template_key(flow, step), key, enter)
                    _enter(self._by_job, _job_key(flow, step), key, enter)
        self._measure(before, after)
        if after is None:
            self._told.pop(key, None)
        else:
            self._shell.changed(key)

    def _measure(self, before: JobFlow | None, after: JobFlow | None) -> None:
        """Count a new phase, unless this process only stands by."""
        for flow, step in ((before, -1), (after, 1)):
            if flow is not None:
                self._in_namespace[flow.metadata.namespace] += step
                if not self._in_namespace[flow.metadata.namespace] and after is None:
                    del self._in_namespace[flow.metadata.namespace]
                    self._metrics.flows_gone(flow.metadata.namespace)
        if self._works and before is not None and after is not None:
            phase = after.status.state.phase
            if phase != before.status.state.phase:
                self._metrics.flow_phase(after.metadata.namespace, phase)

    def _template_changed(self, key: str, _: JobTemplate | None, __: JobTemplate | None) -> None:
        for flow in sorted(self._by_template.get(key, ())):
            self._shell.changed(flow)

    def _job_changed(self, key: str, before: Job | None, after: Job | None) -> None:
        flows = set(self._by_job.get(key, ()))
        if before is not None and (owner := _owner_of(before)) is not None:
            family = before.metadata.namespace, owner.uid
            children = self._children.get(family, {})
            children.pop(before.metadata.name, None)
            if not children:
                self._children.pop(family, None)
            flows.add(f"{before.metadata.namespace}/{owner.name}")
        if after is not None and (owner := _owner_of(after)) is not None:
            family = after.metadata.namespace, owner.uid
            self._children.setdefault(family, {})[after.metadata.name] = after
            flows.add(f"{after.metadata.namespace}/{owner.name}")
        if after is None:
            self._created.discard(key)
        for flow in sorted(flows):
            self._shell.changed(flow)

    def _unfinished(self) -> Iterable[str]:
        """Return every flow that may need work."""
        found = ((key, self._flows.get(key)) for key in self._flows.keys())  # noqa: SIM118 - a view is not a dict
        return [key for key, flow in found if flow is not None and self._is_unfinished(flow)]

    def _is_unfinished(self, flow: JobFlow) -> bool:
        return flow.status.state.phase not in standing.ENDED or _family(flow) in self._children

    # Reconciling

    def _look(self, key: str) -> Plan:
        flow = self._flows.get(key)
        if flow is None:
            return NOTHING
        verdict = decision.judge(self._seen(flow), self._clock.now().replace(microsecond=0))
        for problem in verdict.problems:
            if problem not in self._told.get(key, ()):
                self._events.record(problem)
        self._told[key] = frozenset(verdict.problems)
        return verdict.plan

    def _seen(self, flow: JobFlow) -> Seen:
        children = self._children.get(_family(flow), {})
        jobs = {child_name(flow.metadata.name, step.name): _job_key(flow, step) for step in flow.spec.flows}
        templates = {step.name: self._templates.get(_template_key(flow, step)) for step in flow.spec.flows}
        return Seen(
            flow,
            children,
            {name: template for name, template in templates.items() if template is not None},
            created={name for name, key in jobs.items() if key in self._created},
            taken={name for name, key in jobs.items() if name not in children and self._jobs.get(key) is not None},
        )

    def _written(self, _: str, write: Write, __: bytes) -> None:
        found = self._step_of(write)
        if found is None:
            return
        flow, step = found
        self._created.add(_job_key(flow, step))
        text = f"Job {child_name(flow.metadata.name, step.name)} is created from JobTemplate {step.name}"
        template = self._templates.get(_template_key(flow, step))
        if template is not None and step.patch is not None:
            vain = without_effect(template.spec, step.patch.job_spec)
            if vain:
                text += f"; {' and '.join(vain)} of the patch are defaults of the API server and change nothing"
        self._events.record(decision.event(flow, keys.EVENT_NORMAL, EVENT_CREATED, text))

    def _refused(self, _: str, write: Write, error: errors.ApiError) -> None:
        """Record an event if a job is refused for what it says; it is tried again all the same."""
        found = self._step_of(write)
        if found is not None and isinstance(error, errors.Invalid | errors.Forbidden | errors.BadRequest):
            flow, step = found
            text = f"the job of step {step.name} is refused: {error}"
            self._events.record(decision.event(flow, keys.EVENT_WARNING, EVENT_REFUSED, text))

    def _step_of(self, write: Write) -> tuple[JobFlow, FlowStep] | None:
        """Return the flow and the step that a write creates the job of; None for another write, or if they are gone."""
        if not isinstance(write, Create) or not isinstance(write.body, Mapping):
            return None
        meta = write.body["metadata"]
        (owner,) = meta["ownerReferences"]
        flow = self._flows.get(f"{write.namespace}/{owner['name']}")
        if flow is None or flow.metadata.uid != owner["uid"]:
            return None
        name = meta["name"]
        return next(((flow, step) for step in flow.spec.flows if child_name(owner["name"], step.name) == name), None)

    def _given_up(self, key: str, error: errors.ApiError) -> None:
        flow = self._flows.get(key)
        if flow is not None:
            text = f"the flow does not go on: {error}"
            self._events.record(decision.event(flow, keys.EVENT_WARNING, EVENT_GIVEN_UP, text))


def _enter(index: dict[str, set[str]], key: str, flow: str, enter: bool) -> None:
    """Put a flow under a key of an index, or take it away."""
    if enter:
        index.setdefault(key, set()).add(flow)
    elif key in index:
        index[key].discard(flow)
        if not index[key]:
            del index[key]


def _family(flow: JobFlow) -> tuple[str, str]:
    """Return where the jobs of a flow are found: an owner reference in another namespace is none, as in Kubernetes."""
    return flow.metadata.namespace, flow.metadata.uid


def _template_key(flow: JobFlow, step: FlowStep) -> str:
    return f"{flow.metadata.namespace}/{step.name}"


def _job_key(flow: JobFlow, step: FlowStep) -> str:
    return f"{flow.metadata.namespace}/{child_name(flow.metadata.name, step.name)}"


def _owner_of(job: Job) -> OwnerReference | None:
    """Return the flow that owns a job."""
    owner = controller_of(job.metadata)
    return owner if owner is not None and owner.kind == JOB_FLOWS.kind else None
