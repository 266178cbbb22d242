"""What the scheduler says of a gang that waits: only what still holds."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from volcano_py.api import keys
from volcano_py.client.ages import time_of
from volcano_py.client.gang import waits
from volcano_py.client.waiting_facts import Facts

Obj = Mapping[str, Any]
_REFUSALS: Final = frozenset({keys.EVENT_UNSCHEDULABLE, keys.EVENT_FAILED_SCHEDULING})
_SHOWN: Final = 3


def about_group(group: Obj, events: Sequence[Obj]) -> str:
    """Return why a PodGroup is unschedulable now: its condition or, if it never had one, the last event about that."""
    conditions = {one.get("type"): one for one in (group.get("status") or {}).get("conditions") or ()}
    refused = conditions.get(keys.CONDITION_UNSCHEDULABLE)
    if refused is None:
        found = [one for one in events if one.get("reason") in _REFUSALS]
        return " ".join(str(max(found, key=when).get("message", "")).split()) if found else ""
    if not _true(refused) or _is_placed(conditions.get(keys.CONDITION_SCHEDULED), refused):
        return ""
    return ": ".join(str(refused[name]) for name in ("reason", "message") if refused.get(name))


def about_pods(pods: Iterable[Obj]) -> list[tuple[str, int]]:
    """Return the reasons of the pods that wait, and how many have each, the most common first."""
    return Counter(text for pod in pods if waits(pod) and (text := _of_pod(pod))).most_common(_SHOWN)


def has_spoken(facts: Facts) -> bool:
    """Say whether a scheduler has looked at a job: it has enqueued it, or refused it or one of its pods."""
    group = facts.group or {}
    enqueued = (group.get("status") or {}).get("phase") not in (None, "", "Pending") and not any(map(waits, facts.pods))
    said = any(of_last_cycle(facts)) or about_group(group, facts.events) or about_pods(facts.pods)
    return bool(enqueued or said)


def of_last_cycle(facts: Facts) -> Iterable[str]:
    """Yield what the scheduler's /debug says."""
    for job in (facts.debug or {}).get("jobs") or ():
        if job.get("message"):
            yield f"last cycle: {job['message']}"
        for rejection in (job.get("rejections") or ())[:_SHOWN]:
            for reason in (rejection.get("reasons") or ())[:_SHOWN]:
                count = reason.get("nodes")
                nodes = f" on {count} node{'' if count == 1 else 's'}" if count else ""
                yield f"{reason.get('plugin')}: {reason.get('text')} [{reason.get('code')}]{nodes}"


def when(event: Obj) -> float:
    """Return when an event happened last, to put events into their order."""
    found = time_of(time(event))
    return found.timestamp() if found else 0.0


def time(event: Obj) -> Any:
    """Return when an event happened last, as the API server tells it."""
    series = (event.get("series") or {}).get("lastObservedTime")
    return series or event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp")


def _is_placed(scheduled: Obj | None, refused: Obj) -> bool:
    """Say whether a gang was placed after it was refused: Volcano leaves the refusal where it is."""
    if scheduled is None or not _true(scheduled):
        return False
    placed, before = (time_of(one.get("lastTransitionTime")) for one in (scheduled, refused))
    return placed is not None and (before is None or placed > before)


def _true(condition: Obj) -> bool:
    return condition.get("status") == "True"


def _of_pod(pod: Obj) -> str:
    for one in (pod.get("status") or {}).get("conditions") or ():
        if one.get("type") == keys.CONDITION_POD_SCHEDULED and one.get("status") == "False":
            return str(one.get("message") or one.get("reason") or "")
    return ""
