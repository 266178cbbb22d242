"""PodGroups of jobs that name another scheduler: an annotation leaves them to it.

A PodGroup does not say which scheduler it is for; its pods do. The PodGroup of a job may have no pods until it is
enqueued, so the job decides: ``volcano.sh/scheduler-name`` on the PodGroup names the scheduler of the job. Our
scheduler does not take such a PodGroup, and our queue controller does not count it.
"""

from collections.abc import Collection

from volcano_py.api import keys
from volcano_py.api.batch import Job
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.plan import NOTHING, Plan
from volcano_py.controllers.podgroup.decision import controller_of
from volcano_py.controllers.writes import Patch
from volcano_py.kube.resource import PODGROUPS, VCJOBS


def job_of(group: PodGroup) -> str:
    """Return the key of the job that owns a PodGroup, "" for none."""
    owner = controller_of(group.metadata)
    if owner is None or owner.kind != VCJOBS.kind or owner.api_version.partition("/")[0] != VCJOBS.group:
        return ""
    return f"{group.metadata.namespace}/{owner.name}"


def plan(group: PodGroup, job: Job, scheduler_names: Collection[str]) -> Plan:
    """Return the write that gives a PodGroup of a job the annotation, or takes it away."""
    owner = controller_of(group.metadata)
    if owner is None or owner.uid != job.metadata.uid:
        return NOTHING
    scheduler = job.spec.scheduler_name
    wanted = scheduler if scheduler and scheduler not in scheduler_names else None
    written = group.metadata.annotations.get(keys.GROUP_SCHEDULER)
    if written == wanted or (wanted is None and written in scheduler_names):
        return NOTHING
    meta = group.metadata
    body = {"metadata": {"uid": meta.uid, "annotations": {keys.GROUP_SCHEDULER: wanted}}}
    return Plan((Patch(PODGROUPS, meta.namespace, meta.name, body),))
