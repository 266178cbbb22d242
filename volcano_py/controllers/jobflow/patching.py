"""``flows[].patch.jobSpec``: changes to the spec of a job template, merged as a strategic merge patch.

Objects are merged field by field. Lists of named things (tasks, containers, environment variables, volumes, ...) are
merged item by item: an item of the patch changes the item with its key or is added. Other lists are replaced. A
custom resource cannot hold null, so a patch cannot remove a field.

Volcano ignores the patch. Its definition of job flows makes the API server add ``queue: default`` and ``maxRetry: 3``
to every patch that does not have them; ours does not. So a patch that has both fields may not be all the user's: of
these two fields, a default value changes nothing then.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_MERGE_KEYS: Final[Mapping[str, Sequence[str]]] = {
    "tasks": ("name",),
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name", "mountPath"),  # of a pod, and of a job
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "ports": ("containerPort",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey",),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
}
"""Lists that are merged by item, with the key of an item; the first one that the items of the patch have counts."""

_ADDED_BY_THE_SERVER: Final[Mapping[str, Any]] = {"queue": "default", "maxRetry": 3}


class PatchProblem(Exception):
    """A patch cannot be applied; the text says where and what to change."""


def patched(spec: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a job with the changes of a patch. Raises PatchProblem."""
    return _merge(spec, {name: patch[name] for name in patch if not _is_default(name, patch)}, "patch.jobSpec")


def without_effect(spec: Mapping[str, Any], patch: Mapping[str, Any]) -> list[str]:
    """Return the fields of a patch that differ from the spec but change nothing, since they are defaults."""
    return [name for name in patch if _is_default(name, patch) and spec.get(name, patch[name]) != patch[name]]


def _is_default(name: str, patch: Mapping[str, Any]) -> bool:
    """Say whether a field of a patch may have been added by the API server."""
    return _ADDED_BY_THE_SERVER.keys() <= patch.keys() and _ADDED_BY_THE_SERVER.get(name) == patch[name]


def _merge(target: Mapping[str, Any], patch: Mapping[str, Any], where: str) -> dict[str, Any]:
    merged = dict(target)
    for name, value in patch.items():
        former = merged.get(name)
        if isinstance(value, Mapping) and isinstance(former, Mapping):
            merged[name] = _merge(former, value, f"{where}.{name}")
        elif isinstance(value, list) and isinstance(former, list) and name in _MERGE_KEYS:
            merged[name] = _merge_list(former, value, _MERGE_KEYS[name], f"{where}.{name}")
        else:
            merged[name] = value
    return merged


def _merge_list(target: list[Any], patch: list[Any], candidates: Sequence[str], where: str) -> list[Any]:
    merged = list(target)
    places = {key: _places(target, key) for key in candidates}
    for index, item in enumerate(patch):
        key = next((name for name in candidates if isinstance(item, Mapping) and name in item), None)
        if key is None:
            raise PatchProblem(f"{where}[{index}] has no {' or '.join(candidates)}: name the item that it changes")
        at = places[key].get(_hashable(item[key]))
        before: Mapping[str, Any] = {}
        if at is None:
            at = len(merged)
            merged.append(item)
        else:
            before = merged[at]
            merged[at] = _merge(before, item, f"{where}[{item[key]}]")
        _note_place(places, before, merged[at], at)
    return merged


def _places(items: Sequence[Any], key: str) -> dict[Any, int]:
    """Return where the first item with each value of a key stands.

    Lists may have tens of thousands of items, and all controllers wait meanwhile: so no item is searched for.
    """
    found: dict[Any, int] = {}
    for at, item in enumerate(items):
        if isinstance(item, Mapping) and key in item:
            found.setdefault(_hashable(item[key]), at)
    return found


def _note_place(
    places: Mapping[str, dict[Any, int]], before: Mapping[str, Any], after: Mapping[str, Any], at: int
) -> None:
    """Note where an item stands that was added or changed."""
    for key, found in places.items():
        if key in before and found.get(_hashable(before[key])) == at:
            del found[_hashable(before[key])]
        if key in after:
            value = _hashable(after[key])
            found[value] = min(at, found.get(value, at))


def _hashable(value: Any) -> Any:
    """Return a value as the key of a dictionary; users may write anything as a name."""
    return repr(value) if isinstance(value, dict | list) else value
