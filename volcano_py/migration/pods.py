"""Checks PodGroups and the pods of Volcano's schedulers that no job owns."""

from collections.abc import Collection, Iterator
from typing import Final

from volcano_py.migration.findings import Finding, Group, Obj, Ref, mapping, sequence, text
from volcano_py.migration.needs import needs_of

_PHASES: Final = frozenset({"", "Pending", "Running", "Unknown", "Inqueue", "Completed"})
_ENDED: Final = frozenset({"Succeeded", "Failed"})


def judge_group(ref: Ref, group: Obj, queues: Collection[str]) -> Iterator[Finding]:
    """Yield what differs for a PodGroup."""
    phase = text(group, "status", "phase")
    if phase not in _PHASES:
        what = f"its phase is {phase}, which our scheduler does not know"
        yield Finding(Group.DIFFERS, "podgroup-phase", ref, what, "wait for its end, or delete its pods")
    spec = mapping(group, "spec")
    queue = text(spec, "queue") or "default"
    if queue not in queues and not _of_job(group) and phase not in ("Completed", "Running"):
        what = f"its queue {queue} does not exist: it waits, and its conditions say so"
        yield Finding(Group.DIFFERS, "podgroup-queue", ref, what, f"create the queue {queue}")
    if sequence(spec, "subGroupPolicy") and mapping(spec, "minTaskMember") and not _of_job(group):
        what = "it has minTaskMember and subGroupPolicy; both count here, and Volcano advises against both"
        yield Finding(Group.DIFFERS, "podgroup-both", ref, what, "remove minTaskMember")


def _of_job(group: Obj) -> bool:
    return owner(group) is not None and text(owner(group), "apiVersion").startswith("batch.volcano.sh/")


def owner(obj: Obj) -> Obj | None:
    """Return the reference to the controller of an object, None if it has none."""
    references = sequence(obj, "metadata", "ownerReferences")
    return next((one for one in references if isinstance(one, dict) and one.get("controller")), None)


def judge_pod(pod: Obj, scheduler_names: Collection[str]) -> Iterator[Finding]:
    """Yield what a pod of Volcano's schedulers asks for and would not get; jobs are judged by their templates.

    The finding is about the owner of the pod, so that a workload has one finding and not one for each pod.
    """
    if text(pod, "spec", "schedulerName") not in scheduler_names or text(pod, "status", "phase") in _ENDED:
        return
    above = owner(pod)
    if above is not None and text(above, "apiVersion").startswith("batch.volcano.sh/"):
        return
    namespace = text(pod, "metadata", "namespace")
    ref = Ref("Pod", text(pod, "metadata", "name"), namespace)
    if above is not None:
        ref = Ref(text(above, "kind"), text(above, "name"), namespace)
    yield from needs_of(ref, mapping(pod, "metadata", "annotations"), mapping(pod, "spec"))
