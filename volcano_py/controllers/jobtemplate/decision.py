"""Decides about a job template: the jobs that were created from it in, its status out."""

from collections.abc import Iterable

from volcano_py.api.flow import JobTemplate
from volcano_py.controllers.plan import NOTHING, Plan
from volcano_py.controllers.writes import Patch
from volcano_py.kube.resource import JOB_TEMPLATES


def plan(template: JobTemplate, jobs: Iterable[str]) -> Plan:
    """Return the write that lists the names of the jobs in the status. A job that is gone leaves the list."""
    names = sorted(jobs)
    if names == template.status.job_depends_on_list or template.metadata.deletion_timestamp is not None:
        return NOTHING
    meta = template.metadata
    body = {"metadata": {"uid": meta.uid}, "status": {"jobDependsOnList": names}}
    return Plan((Patch(JOB_TEMPLATES, meta.namespace, meta.name, body, subresource="status"),))
