"""The jobtemplate controller: watches job templates and the jobs that were created from them."""

from typing import Final

from volcano_py.api import keys
from volcano_py.api.batch import Job
from volcano_py.api.flow import JobTemplate
from volcano_py.controllers.controller import ControllerContext
from volcano_py.controllers.jobflow.children import marked
from volcano_py.controllers.jobtemplate import decision
from volcano_py.controllers.plan import NOTHING, Plan
from volcano_py.controllers.shell import Shell
from volcano_py.controllers.view import View
from volcano_py.kube.informer import Informers
from volcano_py.kube.resource import JOB_TEMPLATES
from volcano_py.runtime.supervisor import Supervisor

_WORKERS: Final = 1


class JobTemplateController:
    """Lists in the status of each job template the jobs that were created from it."""

    name: Final = "jobtemplate-controller"

    def __init__(self, context: ControllerContext) -> None:
        self._templates: View[JobTemplate] = View()
        self._dependents: dict[str, set[str]] = {}  # job template -> names of its jobs
        self._shell: Shell[str] = Shell(context, self.name, self._look, workers=_WORKERS, refill=self._templates.keys)
        self._templates.subscribe(lambda key, _, __: self._shell.changed(key))
        context.jobs.subscribe(self._job_changed)

    def watch(self, informers: Informers) -> None:
        """Add the informer of job templates."""
        informers.add(JOB_TEMPLATES, JobTemplate, self._templates, optional=True)

    def start(self, supervisor: Supervisor) -> None:
        """Start to reconcile; until then, changes are only collected."""
        self._shell.start(supervisor)

    def backlog(self) -> int:
        """Return how many job templates wait in the work queue or are being reconciled."""
        return self._shell.backlog

    def _job_changed(self, _: str, before: Job | None, after: Job | None) -> None:
        was, now = _template_of(before), _template_of(after)
        if was == now:
            return
        if before is not None and was:
            dependents = self._dependents[was]
            dependents.discard(before.metadata.name)
            if not dependents:
                del self._dependents[was]
            self._shell.changed(was)
        if after is not None and now:
            self._dependents.setdefault(now, set()).add(after.metadata.name)
            self._shell.changed(now)

    def _look(self, key: str) -> Plan:
        template = self._templates.get(key)
        return NOTHING if template is None else decision.plan(template, self._dependents.get(key, ()))


def _template_of(job: Job | None) -> str:
    """Return the job template in the job's own namespace that its marks name, "" for none."""
    key = "" if job is None else marked(job.metadata, keys.BY_JOB_TEMPLATE)
    return key if job is not None and key.startswith(f"{job.metadata.namespace}/") else ""
