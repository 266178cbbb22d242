"""Disruption budgets: what the eviction subresource of pods checks before it deletes.

As in kube-apiserver (registry/core/pod/storage/eviction.go): a pod that is pending, has ended or is terminating may
always be evicted. Any other pod needs a disruption from the one budget that selects it. The budget's status says how
many it allows, and counts this one at once. No disruption controller runs here, so a client must write that status; a
budget without a status allows nothing.
"""

from __future__ import annotations

from volcano_py.apiserver.objects import Obj, timestamp
from volcano_py.apiserver.registry import Registry
from volcano_py.apiserver.status import StatusError
from volcano_py.apiserver.store import Stored
from volcano_py.apiserver.webhooks.matching import selects

_AT_WILL = ("Pending", "Succeeded", "Failed")
_PROCESSED_IN_S = 10


def spend(registry: Registry, pod: Obj, *, dry_run: bool = False) -> None:
    """Take one disruption from the budget of a pod that is to be evicted; StatusError 429 if it allows none."""
    meta = pod["metadata"]
    if (pod.get("status") or {}).get("phase") in _AT_WILL or "deletionTimestamp" in meta:
        return
    budgets = _budgets_of(registry, pod)
    if len(budgets) > 1:
        why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise StatusError(500, "InternalError", why)
    for stored in budgets:
        status = _after_one(stored.obj, meta["name"])
        if not dry_run:
            resource = registry.resources.of_kind("policy/v1", "PodDisruptionBudget")
            assert resource is not None, "budgets are served"
            registry.replace(resource, stored, {**stored.obj, "status": status})


def _budgets_of(registry: Registry, pod: Obj) -> list[Stored]:
    resource = registry.resources.of_kind("policy/v1", "PodDisruptionBudget")
    if resource is None:
        return []
    labels = pod["metadata"].get("labels") or {}
    return [
        stored
        for stored in registry.collection(resource).scan(f"{pod['metadata']['namespace']}/")
        if (selector := (stored.obj.get("spec") or {}).get("selector")) is not None and selects(selector, labels)
    ]


def _after_one(budget: Obj, pod: str) -> Obj:
    """Return the status of a budget after one more disruption."""
    name, status = budget["metadata"]["name"], budget.get("status") or {}
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", _PROCESSED_IN_S)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 1:
        healthy, needed = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
        raise _refused(f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently")
    disrupted = {**(status.get("disruptedPods") or {}), pod: timestamp()}
    return {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted}


def _refused(why: str, retry_after_s: int | None = None) -> StatusError:
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    details: Obj = {"causes": [{"reason": "DisruptionBudget", "message": why}]}
    return StatusError(429, "TooManyRequests", message, details, retry_after_s)
