"""Reads what decides about evictions from pods and PodGroups: annotations, labels, priority and quality of service."""

import re
from collections.abc import Mapping
from typing import Final

from volcano_py.api import keys
from volcano_py.api.core import Pod
from volcano_py.api.duration import DurationError, parse_go_duration
from volcano_py.api.meta import ObjectMeta
from volcano_py.cache.fields import boolean, seconds
from volcano_py.model.objects import JobBudget, Part, TaskTrait

_ANY_ZONE: Final = "*"
_PART: Final = re.compile(r"([0-9]{1,9})(%?)")
_WHOLE: Final = 100  # percent
_RUNNING: Final = "Running"
# Plain numbers, because every pod is read: operations on enum members cost a microsecond each.
_QUALITY: Final[Mapping[str, int]] = {
    "BestEffort": TaskTrait.BEST_EFFORT.value,
    "Guaranteed": TaskTrait.GUARANTEED.value,
}
_PREEMPTABLE: Final = int(TaskTrait.PREEMPTABLE.value)
_CONDITION_TRUE: Final = "True"


def preemptable(meta: ObjectMeta) -> bool | None:
    """Return whether a pod or PodGroup may be evicted, from its annotation or else its label; None if it has neither.

    Text that is not a boolean means no. None means yes for a pod; for a PodGroup, each caller decides. (Volcano:
    GetPodPreemptable, extractPreemptable.)
    """
    written = meta.annotations.get(keys.PREEMPTABLE, meta.labels.get(keys.PREEMPTABLE))
    return None if written is None else boolean(written)


def traits(pod: Pod) -> int:
    """Return the traits of a pod that matter for evictions, as a `TaskTrait`.

    Critical pods are those of kube-system and of the two critical priority classes. A pod may use revocable nodes if
    its annotation says so; without that annotation, if another annotation makes it preemptable (Volcano:
    GetPodRevocableZone).
    """
    meta, spec = pod.metadata, pod.spec
    found = _QUALITY.get(pod.status.qos_class, 0)
    if preemptable(meta) is not False:
        found |= _PREEMPTABLE
    if meta.namespace == keys.SYSTEM_NAMESPACE or spec.priority_class_name in keys.CRITICAL_CLASSES:
        found |= TaskTrait.CRITICAL.value
    if spec.preemption_policy == keys.PREEMPT_NEVER:
        found |= TaskTrait.NEVER_PREEMPTS.value
    zone = meta.annotations.get(keys.REVOCABLE_ZONE)
    if zone == _ANY_ZONE or (zone is None and boolean(meta.annotations.get(keys.PREEMPTABLE, ""))):
        found |= TaskTrait.REVOCABLE.value
    if keys.COOLDOWN_TIME in meta.labels or keys.COOLDOWN_TIME in meta.annotations:
        found |= TaskTrait.COOLS_DOWN.value
    return found


def protected_until(pod: Pod) -> float:
    """Return the end of a running pod's cool-down, in seconds since the epoch; 0 if it has none.

    A cool-down time that is not a duration does not count (Volcano: cdp).
    """
    meta = pod.metadata
    text = meta.labels.get(keys.COOLDOWN_TIME, meta.annotations.get(keys.COOLDOWN_TIME))
    if text is None or pod.status.phase != _RUNNING:
        return 0.0
    try:
        duration = parse_go_duration(text)
    except DurationError:
        return 0.0
    for condition in pod.status.conditions:
        if condition.type == keys.CONDITION_POD_SCHEDULED and condition.status == _CONDITION_TRUE:
            return seconds(condition.last_transition_time) + duration
    return 0.0


def budget(annotations: Mapping[str, str]) -> JobBudget | None:
    """Return the disruption budget of a job, from its minimum or else its maximum; unreadable text is ignored."""
    least = _part(annotations.get(keys.JDB_MIN_AVAILABLE))
    if least is not None:
        return JobBudget(min_available=least)
    most = _part(annotations.get(keys.JDB_MAX_UNAVAILABLE))
    return None if most is None else JobBudget(max_unavailable=most)


def unreadable_budgets(annotations: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the annotations about the disruption budget of a job."""
    return [
        f"annotation {key} is {annotations[key]!r}: write a number such as 2, or a percentage such as 30%"
        for key in (keys.JDB_MIN_AVAILABLE, keys.JDB_MAX_UNAVAILABLE)
        if key in annotations and _part(annotations[key]) is None
    ]


def _part(text: str | None) -> Part | None:
    match = _PART.fullmatch(text or "")
    if match is None or (match[2] and int(match[1]) > _WHOLE):
        return None
    return Part(int(match[1]), bool(match[2]))
