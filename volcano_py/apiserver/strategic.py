"""Strategic merge patch for the built-in kinds: some lists are merged by key.

Directives: `$patch: replace|delete|merge` in objects and list items, `$deleteFromPrimitiveList/<field>`,
`$setElementOrder/<field>` (accepted, order follows the target), `$retainKeys` (accepted and applied).
"""

from __future__ import annotations

from typing import Any

from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.status import StatusError, bad_request

MERGE_KEYS: dict[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "conditions": "type",
    "addresses": "type",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "hostIPs": "ip",
    "secrets": "name",
}
"""Lists of objects that are merged, by field name, with the key that identifies an item. All others (taints and
tolerations among them) are replaced as a whole."""

PORT_KEYS = {"containers": "containerPort", "spec": "port"}
"""The key of `ports` depends on its parent: containerPort in a container, port in a service."""

SET_LISTS = frozenset({"finalizers"})
"""Lists of plain values that are merged as sets."""

_DIRECTIVE = "$patch"
_DELETE_ITEMS, _ORDER, _RETAIN = "$deleteFromPrimitiveList/", "$setElementOrder/", "$retainKeys"


def strategic_merge(target: Any, patch: Obj, parent: str = "") -> Any:
    """Apply a patch to an object; dictionaries of the target are changed in place."""
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"Unknown patch type: {directive} in {parent or 'the object'}")
    if not isinstance(target, dict):
        target = {}
    if _RETAIN in patch:
        for name in [name for name in target if name not in patch[_RETAIN]]:
            del target[name]
    for name, value in patch.items():
        _apply_field(target, name, value, parent)
    return target


def _apply_field(target: Obj, name: str, value: Any, parent: str) -> None:
    if name in (_DIRECTIVE, _RETAIN) or name.startswith(_ORDER):
        return
    if name.startswith(_DELETE_ITEMS):
        field = name.removeprefix(_DELETE_ITEMS)
        target[field] = [item for item in target.get(field) or [] if item not in value]
    elif value is None:
        target.pop(name, None)
    elif isinstance(value, dict):
        target[name] = strategic_merge(target.get(name), value, name)
    elif isinstance(value, list):
        target[name] = _merge_list(target.get(name), value, name, parent)
    else:
        target[name] = value


def _merge_list(target: Any, patch: list[Any], name: str, parent: str) -> list[Any]:
    current: list[Any] = target if isinstance(target, list) else []
    if name in SET_LISTS:
        return [*current, *(item for item in patch if item not in current)]
    key = PORT_KEYS.get(parent, "") if name == "ports" else MERGE_KEYS.get(name, "")
    if not key:
        return [item for item in patch if not (isinstance(item, dict) and item.get(_DIRECTIVE))]
    return _merge_keyed(current, patch, name, key)


def _merge_keyed(current: list[Any], patch: list[Any], name: str, key: str) -> list[Any]:
    replace = any(isinstance(item, dict) and item.get(_DIRECTIVE) == "replace" and key not in item for item in patch)
    merged: list[Any] = [] if replace else list(current)
    added: list[Any] = []
    for item in patch:
        if not isinstance(item, dict):
            raise bad_request(f"{name}: items of the patch must be objects")
        directive = item.get(_DIRECTIVE)
        if directive == "replace" and key not in item:
            continue
        if key not in item:
            raise StatusError(500, "", f"map: {item} does not contain declared merge key: {key}")
        index = next((i for i, old in enumerate(merged) if old.get(key) == item[key]), None)
        if directive == "delete":
            if index is not None:
                del merged[index]
        elif index is not None:
            merged[index] = strategic_merge(merged[index], item, name)
        else:
            added.append(strategic_merge({}, item, name))
    return [*added, *merged]  # new items come first, as on a real API server
