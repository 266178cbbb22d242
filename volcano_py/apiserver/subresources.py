"""The subresources of pods that are actions: binding and eviction."""

from __future__ import annotations

from typing import Any

from volcano_py.apiserver import disruptions, metadata
from volcano_py.apiserver.deletion import DeleteOptions, check_preconditions, parse_options
from volcano_py.apiserver.objects import Obj, object_key, timestamp
from volcano_py.apiserver.registry import Registry
from volcano_py.apiserver.resources import Resource
from volcano_py.apiserver.status import StatusError, bad_request, conflict, details_of, not_found
from volcano_py.apiserver.store import Stored


def bind(registry: Registry, pods: Resource, namespace: str, name: str, binding: Obj, dry_run: bool = False) -> Stored:
    """Assign a pod to a node: set nodeName and PodScheduled, merge the binding's annotations and labels."""
    meta = metadata.metadata_of(binding)
    name = name or str(meta.get("name") or "")
    if meta.get("name") and meta["name"] != name:
        raise bad_request("name in URL does not match name in Binding object")
    if meta.get("namespace") and meta["namespace"] != namespace:
        raise bad_request("namespace in URL does not match namespace in Binding object")
    node = _node_of(binding)
    stored = registry.collection(pods).get(object_key(namespace, name))
    if stored is None:
        raise not_found("", "pods", name)
    _check_preconditions(stored, name, meta)
    pod = stored.obj
    spec, pod_meta = pod["spec"], pod["metadata"]
    if "deletionTimestamp" in pod_meta:
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refused(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")
    new_meta = dict(pod_meta)
    for field in ("annotations", "labels"):
        if meta.get(field):
            new_meta[field] = {**(pod_meta.get(field) or {}), **meta[field]}
    bound = {
        **pod,
        "metadata": new_meta,
        "spec": {**spec, "nodeName": node},
        "status": _scheduled(pod.get("status") or {}),
    }
    return registry.replace(pods, stored, bound) if not dry_run else stored


def _node_of(binding: Obj) -> str:
    target: Any = binding.get("target")
    target = target if isinstance(target, dict) else {}
    if target.get("kind") not in (None, "", "Node"):
        kind = target.get("kind")
        raise StatusError(500, "", f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"')
    node = target.get("name")
    if not isinstance(node, str) or not node:
        raise StatusError(500, "", "target.name: Required value")
    return node


def _check_preconditions(stored: Stored, name: str, meta: Obj) -> None:
    uid, version = meta.get("uid"), meta.get("resourceVersion")
    own = stored.obj["metadata"]["uid"]
    if uid and uid != own:
        failed = f"UID in precondition: {uid}, UID in object meta: {own}"
    elif version and version != str(stored.rv):
        failed = f"ResourceVersion in precondition: {version}, ResourceVersion in object meta: {stored.rv}"
    else:
        return
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/pods/{stored.key}, ResourceVersion: 0, "
        f"AdditionalErrorMsg: Precondition failed: {failed}"
    )
    raise conflict("", "pods", name, why)


def _refused(name: str, why: str) -> StatusError:
    return StatusError(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on pods/binding "{name}": {why}',
        details_of("", "pods/binding", name),
    )


def _scheduled(status: Obj) -> Obj:
    condition = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(),
    }
    others = [item for item in status.get("conditions") or [] if item.get("type") != "PodScheduled"]
    return {**status, "conditions": [*others, condition]}


def evict(registry: Registry, pods: Resource, namespace: str, name: str, eviction: Obj) -> None:
    """Delete a pod on behalf of an evictor, if its disruption budget allows it."""
    meta = metadata.metadata_of(eviction)
    if meta.get("name") and meta["name"] != name:
        raise bad_request("name in URL does not match name in Eviction object")
    body = eviction.get("deleteOptions") or {}
    options: DeleteOptions = parse_options(body if isinstance(body, dict) else {}, {})
    pod = registry.get(pods, namespace, name)
    check_preconditions(pods, pod, options)
    disruptions.spend(registry, pod.obj, dry_run=options.dry_run)
    registry.delete(pods, namespace, name, options)
