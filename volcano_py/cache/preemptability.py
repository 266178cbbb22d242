"""What pods and PodGroups say about being evicted, and what else decides who goes first."""

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
_RUNNING: Final = "Running"
_QUALITY: Final = {"BestEffort": TaskTrait.BEST_EFFORT, "Guaranteed": TaskTrait.GUARANTEED}
_CONDITION_TRUE: Final = "True"


def preemptable(meta: ObjectMeta) -> bool | None:
    """Return what an annotation, or without one a label, says of evictions; a text that is no boolean says no.

    None if nothing is said: a pod may then be evicted, and for a PodGroup it depends on who asks. (Volcano:
    GetPodPreemptable, extractPreemptable.)
    """
    written = meta.annotations.get(keys.PREEMPTABLE, meta.labels.get(keys.PREEMPTABLE))
    return None if written is None else boolean(written)


def traits(pod: Pod) -> int:
    """Return what a pod is and says when it comes to evictions, as `TaskTrait`.

    Critical are the pods of kube-system and of the two critical priority classes. Revocable nodes are for pods that
    say so, and for those that say by an annotation that they may be evicted, if they say nothing of zones (Volcano:
    GetPodRevocableZone).
    """
    meta, spec = pod.metadata, pod.spec
    found = TaskTrait(0)
    if preemptable(meta) is not False:
        found |= TaskTrait.PREEMPTABLE
    if meta.namespace == keys.SYSTEM_NAMESPACE or spec.priority_class_name in keys.CRITICAL_CLASSES:
        found |= TaskTrait.CRITICAL
    if spec.preemption_policy == keys.PREEMPT_NEVER:
        found |= TaskTrait.NEVER_PREEMPTS
    zone = meta.annotations.get(keys.REVOCABLE_ZONE)
    if zone == _ANY_ZONE or (zone is None and boolean(meta.annotations.get(keys.PREEMPTABLE, ""))):
        found |= TaskTrait.REVOCABLE
    if keys.COOLDOWN_TIME in meta.labels or keys.COOLDOWN_TIME in meta.annotations:
        found |= TaskTrait.COOLS_DOWN
    return (found | _QUALITY.get(pod.status.qos_class, TaskTrait(0))).value


def protected_until(pod: Pod) -> float:
    """Return until when a running pod cools down, in seconds since the epoch; 0 if it does not.

    A cool-down time that is no duration protects nothing (Volcano: cdp).
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
    """Return how many tasks a job can spare; a minimum counts before a maximum, what is no number or % not at all."""
    least = _part(annotations.get(keys.JDB_MIN_AVAILABLE))
    if least is not None:
        return JobBudget(min_available=least)
    most = _part(annotations.get(keys.JDB_MAX_UNAVAILABLE))
    return None if most is None else JobBudget(max_unavailable=most)


def _part(text: str | None) -> Part | None:
    match = _PART.fullmatch(text or "")
    return None if match is None else Part(int(match[1]), bool(match[2]))
