"""How owners change: by a server-side apply, or by any other write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from volcano_py.apiserver.apply.fieldsets import FieldSet, Path, fields_of
from volcano_py.apiserver.apply.managers import (
    APPLY,
    BEFORE_FIRST_APPLY,
    UPDATE,
    Manager,
    conflict_error,
    read_managers,
    write_managers,
)
from volcano_py.apiserver.apply.merging import merged, without
from volcano_py.apiserver.apply.structure import Structure
from volcano_py.apiserver.objects import Obj, decode, timestamp

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Applier:
    """Who applies, and how."""

    name: str
    api_version: str
    subresource: str = ""
    force: bool = False


def apply(live: Obj | None, config: Obj, structure: Structure, applier: Applier) -> tuple[Obj, list[Obj]]:
    """The object after an apply and its new managedFields; 409 when others own what would change."""
    base: Obj = live or {}
    managers = read_managers((base.get("metadata") or {}).get("managedFields"))
    before = fields_of(base, structure)
    if live is not None and not managers:
        managers = [Manager(BEFORE_FIRST_APPLY, UPDATE, applier.api_version, "", frozenset(before), timestamp())]
    wanted = frozenset(fields_of(config, structure))
    me = Manager(applier.name, APPLY, applier.api_version, applier.subresource, wanted)
    mine = next((manager for manager in managers if manager.identity == me.identity), None)
    others = [manager for manager in managers if manager is not mine]
    result = merged(base, config, structure)
    if mine is not None:
        gone = _unwanted(mine.fields - wanted, others, me)
        result = without(result, gone, structure) or {}
    after = fields_of(result, structure)
    changed = {path for path, value in after.items() if before.get(path, _MISSING) != value}
    _check(others, changed, applier, base, structure)
    lost = changed | (before.keys() - after.keys())
    others = [manager.losing(lost) for manager in others]
    if mine is not None and mine.fields == wanted and not lost:
        me = mine
    return result, write_managers([*others, me])


def _unwanted(fields: FieldSet, others: list[Manager], me: Manager) -> FieldSet:
    """The fields that an applier no longer names and of which no other manager owns any part."""
    held: set[Path] = set()
    for manager in [*others, me]:
        held.update(path[:length] for path in manager.fields for length in range(1, len(path) + 1))
    return frozenset(path for path in fields if path not in held)


def _check(others: list[Manager], changed: set[Path], applier: Applier, live: Obj, structure: Structure) -> None:
    if applier.force or not changed:
        return
    conflicts = [(manager, sorted(manager.fields & changed)) for manager in others]
    conflicts = [(manager, paths) for manager, paths in conflicts if paths]
    if conflicts and applier.name == "kubectl":
        allowed = _last_applied(live, structure)
        left = [(manager, [path for path in paths if path not in allowed]) for manager, paths in conflicts]
        conflicts = [(manager, paths) for manager, paths in left if paths]
    if conflicts:
        raise conflict_error(sorted(conflicts, key=lambda pair: pair[0].identity))


def _last_applied(live: Obj, structure: Structure) -> set[Path]:
    """The fields that kubectl's client-side apply owned, by its annotation, if they are unchanged since."""
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(_LAST_APPLIED)
    if not isinstance(text, str):
        return set()
    try:
        config: Any = decode(text.encode())
    except (msgspec.DecodeError, RecursionError):
        return set()  # the annotation is the user's; without it the conflicts stand
    if not isinstance(config, dict):
        return set()
    now = fields_of(live, structure)
    return {path for path, value in fields_of(config, structure).items() if now.get(path, _MISSING) == value}


def track(old: Obj, new: Obj, structure: Structure, updater: Applier) -> list[Obj]:
    """The managedFields after a write other than an apply: whoever changed a field owns it."""
    managers = read_managers(old["metadata"].get("managedFields"))
    before, after = fields_of(old, structure), fields_of(new, structure)
    changed = {path for path, value in after.items() if before.get(path, _MISSING) != value}
    removed = before.keys() - after.keys()
    me = Manager(updater.name, UPDATE, updater.api_version, updater.subresource, frozenset(changed))
    kept: list[Manager] = []
    for manager in managers:
        if manager.identity == me.identity:
            owned = (manager.fields - removed) | changed
            me = Manager(me.name, UPDATE, me.api_version, me.subresource, owned, "" if changed else manager.time)
        else:
            kept.append(manager.losing(changed | removed))
    return write_managers([*kept, me])
