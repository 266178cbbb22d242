"""How an object goes away: preconditions, grace periods, finalizers and propagation.

    alive ──delete──▶ gone                     no grace, no finalizers
      │                 ▲
      └──delete──▶ terminating ──(grace 0 and last finalizer removed)──┘

Terminating means that deletionTimestamp is set; from then on no finalizer may be added.
"""

from __future__ import annotations

from dataclasses import dataclass

from volcano_py.apiserver.kinds.conform import conform
from volcano_py.apiserver.kinds.shapes import DELETE_OPTIONS
from volcano_py.apiserver.objects import Obj, timestamp
from volcano_py.apiserver.resources import Resource
from volcano_py.apiserver.status import StatusError, bad_request, conflict, forbidden, invalid, unsupported_value
from volcano_py.apiserver.store import Collection, Stored

FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
"""Finalizers by which an owner waits for its dependents (foreground) or releases them (orphan)."""

_IMMORTAL = frozenset({"default", "kube-public", "kube-system"})
"""Namespaces that every cluster needs."""
_POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """What a deletion asks for."""

    grace_seconds: int | None = None
    propagation: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Deletion:
    """The object as the deletion left it, and whether it is gone."""

    stored: Stored
    gone: bool


def parse_options(body: Obj, query: dict[str, str]) -> DeleteOptions:
    """Read DeleteOptions from a request's body and query."""
    conform(body, DELETE_OPTIONS)
    preconditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    policy = body.get("propagationPolicy", query.get("propagationPolicy"))
    if isinstance(grace, str):
        try:
            grace = int(grace)
        except ValueError:
            raise bad_request(f"gracePeriodSeconds {grace!r} is not a whole number") from None
    if policy is None and (body.get("orphanDependents") is not None):
        policy = "Orphan" if body["orphanDependents"] else "Background"
    if policy is not None and policy not in _POLICIES:
        error = unsupported_value("propagationPolicy", policy, (*_POLICIES, "nil"))
        raise invalid("meta.k8s.io", "DeleteOptions", "", [error])
    dry_run = "All" in (body.get("dryRun") or []) or query.get("dryRun") == "All"
    return DeleteOptions(grace, policy, preconditions.get("uid"), preconditions.get("resourceVersion"), dry_run)


def may_vanish(obj: Obj) -> bool:
    """Whether a terminating object can be removed now."""
    meta = obj["metadata"]
    return (
        "deletionTimestamp" in meta
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
        and not (obj["kind"] == "Namespace" and (obj.get("spec") or {}).get("finalizers"))
    )


def begin_deletion(collection: Collection, resource: Resource, stored: Stored, options: DeleteOptions) -> Deletion:
    """Carry a deletion of an object of this collection as far as it can go now."""
    name = stored.obj["metadata"]["name"]
    if resource.kind == "Namespace" and name in _IMMORTAL:
        raise forbidden(resource.group, resource.plural, name, "this namespace may not be deleted")
    check_preconditions(resource, stored, options)
    meta = dict(stored.obj["metadata"])
    obj = {**stored.obj, "metadata": meta}
    grace = resource.strategy.grace_seconds(obj, options.grace_seconds)
    had_timestamp = "deletionTimestamp" in meta
    if resource.kind == "Namespace" and not had_timestamp:
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    finalizers = _finalizers(meta.get("finalizers") or [], options.propagation)
    if not had_timestamp:
        added = resource.strategy.deletion_finalizers
        finalizers = [*finalizers, *(name for name in added if name not in finalizers)]
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    holds = bool(finalizers) or bool(grace) or _waits_for_content(obj)
    if had_timestamp:
        _shorten(meta, grace)
    elif holds or grace is not None:
        _mark(meta, None if resource.kind == "Namespace" else grace or 0)
    if options.dry_run:
        return Deletion(Stored(stored.key, obj, stored.rv), not holds)
    if obj["metadata"] != stored.obj["metadata"] and (holds or grace is not None):
        stored = collection.put(stored.key, obj)
    if may_vanish(stored.obj) or not holds:
        return Deletion(collection.remove(stored.key), gone=True)
    return Deletion(stored, gone=False)


def check_preconditions(resource: Resource, stored: Stored, options: DeleteOptions) -> None:
    """Refuse (409) a request that is meant for another revision or another object of this name."""
    meta = stored.obj["metadata"]
    if options.uid is not None and options.uid != meta["uid"]:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise _precondition_failed(resource, meta["name"], why)
    asked = options.resource_version
    if asked is not None and asked != str(stored.rv):
        why = (
            f"the ResourceVersion in the precondition ({asked}) does not match the ResourceVersion in record "
            f"({stored.rv}). The object might have been modified"
        )
        raise _precondition_failed(resource, meta["name"], why)


def _precondition_failed(resource: Resource, name: str, why: str) -> StatusError:
    return conflict(resource.group, resource.kind, name, why)


def _finalizers(current: list[str], propagation: str | None) -> list[str]:
    if propagation is None:
        return current
    kept = [name for name in current if name not in (FOREGROUND, ORPHAN)]
    if propagation == "Foreground":
        kept.append(FOREGROUND)
    elif propagation == "Orphan":
        kept.append(ORPHAN)
    return kept


def _waits_for_content(obj: Obj) -> bool:
    return obj["kind"] == "Namespace" and bool((obj.get("spec") or {}).get("finalizers"))


def _mark(meta: Obj, grace: int | None) -> None:
    meta["deletionTimestamp"] = timestamp(grace or 0)
    if grace is not None:
        meta["deletionGracePeriodSeconds"] = grace
    if "generation" in meta:
        meta["generation"] += 1


def _shorten(meta: Obj, grace: int | None) -> None:
    """A second deletion may only make the first one quicker."""
    current = meta.get("deletionGracePeriodSeconds") or 0
    if grace is not None and grace < current:
        meta["deletionTimestamp"] = timestamp(grace - current) if grace == 0 else timestamp(grace)
        meta["deletionGracePeriodSeconds"] = grace
