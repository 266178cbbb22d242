"""Owner references: dependents follow their owners.

    owners of an object            what happens to it
    some still there               it stays; references to owners that are gone are removed
    none there                     it is deleted (Background)
    one waits for it (Foreground)  it is deleted; the owner goes once nothing blocks it any more
    being orphaned                 its reference is removed and it stays

An owner is there when an object of that kind and name exists with that UID. A reference to a kind that is not served is
acted on once it is served, and one from a cluster-wide object to a namespaced one never. Cycles do no harm: every step
looks at one object and its direct owners, and a foreground deletion that would wait for itself stops waiting.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import Final, Literal

from volcano_py.apiserver.deletion import FOREGROUND, ORPHAN, DeleteOptions, begin_deletion
from volcano_py.apiserver.objects import Obj, object_key
from volcano_py.apiserver.reconciler import Reconciler
from volcano_py.apiserver.registry import Registry
from volcano_py.apiserver.resources import Resource
from volcano_py.apiserver.store import Collection, Event, Stored

log = logging.getLogger(__name__)

OwnerState = Literal["present", "absent", "waiting", "unknown"]
_Place = tuple[str, str]  # collection, key
_NONE: list[Obj] = []
_DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"


def _owners(stored: Stored | None) -> list[Obj]:
    if stored is None:
        return _NONE
    return stored.obj["metadata"].get("ownerReferences") or _NONE


def _deletes_dependents(obj: Obj) -> bool:
    meta = obj["metadata"]
    return "deletionTimestamp" in meta and FOREGROUND in (meta.get("finalizers") or ())


class GarbageCollector(Reconciler):
    """Deletes, releases and orphans dependents."""

    name = "garbage-collector"

    def __init__(self, registry: Registry) -> None:
        super().__init__(registry)
        self._dependents: dict[str, dict[_Place, None]] = {}
        self._unknown: dict[_Place, None] = {}  # have owners of a kind that was not served when they were looked at
        self._told: set[str] = set()  # uids of objects that own themselves and were logged

    def observe(self, collection: Collection, event: Event) -> None:
        """Keep the index of dependents, and note what a change may have made collectable."""
        if collection.name == _DEFINITIONS and self._unknown:
            unknown, self._unknown = self._unknown, {}
            for dependent in unknown:
                self.enqueue(dependent)
        stored = event.stored
        meta = stored.obj["metadata"]
        gone = event.type == "DELETED"
        now = _NONE if gone else _owners(stored)
        before = _owners(event.prev)
        place = (collection.name, stored.key)
        if now or before:
            self._reindex(place, now, before)
            if now != before or event.type == "ADDED":
                self._note_owners(meta.get("namespace"), before)
                if now:
                    self.enqueue(place)
        if gone:
            self._unknown.pop(place, None)
            self._told.discard(meta["uid"])
            for dependent in self._dependents.get(meta["uid"], ()):
                self.enqueue(dependent)
        elif "deletionTimestamp" in meta and meta.get("finalizers"):
            self.enqueue(place)

    def _reindex(self, place: _Place, now: list[Obj], before: list[Obj]) -> None:
        kept = {owner.get("uid") for owner in now}
        for owner in before:
            uid = owner.get("uid", "")
            if uid not in kept and uid in self._dependents:
                self._dependents[uid].pop(place, None)
                if not self._dependents[uid]:
                    del self._dependents[uid]
        for owner in now:
            self._dependents.setdefault(owner.get("uid", ""), {})[place] = None

    def _note_owners(self, namespace: str | None, owners: list[Obj]) -> None:
        for owner in owners:
            found = self._find(namespace, owner)
            if isinstance(found, tuple) and _deletes_dependents(found[1].obj):
                self.enqueue((found[0].collection, found[1].key))

    def _find(self, namespace: str | None, owner: Obj) -> tuple[Resource, Stored] | OwnerState:
        resource = self.registry.resources.of_kind(str(owner.get("apiVersion")), str(owner.get("kind")))
        if resource is None or (resource.namespaced and not namespace):
            return "unknown"
        key = object_key(namespace if resource.namespaced else None, str(owner.get("name")))
        stored = self.registry.collection(resource).get(key)
        if stored is None or stored.obj["metadata"]["uid"] != owner.get("uid"):
            return "absent"
        return resource, stored

    def _state(self, namespace: str | None, owner: Obj) -> OwnerState:
        found = self._find(namespace, owner)
        if not isinstance(found, tuple):
            return found
        return "waiting" if _deletes_dependents(found[1].obj) else "present"

    def reconcile(self, item: Hashable) -> None:
        """Decide about one object."""
        assert isinstance(item, tuple), "only places are noted"
        collection, key = item
        stored = self.registry.store.collection(collection).get(key)
        if stored is None:
            return
        resource = self.registry.resources.named(collection)
        meta = stored.obj["metadata"]
        finalizers = meta.get("finalizers") or ()
        if "deletionTimestamp" in meta:
            if ORPHAN in finalizers:
                self._orphan(resource, stored)
            elif FOREGROUND in finalizers:
                self._foreground(resource, stored)
            return
        owners = _owners(stored)
        if owners:
            self._tell_cycle(resource, stored)
            self._judge(resource, stored, owners)

    def _tell_cycle(self, resource: Resource, stored: Stored) -> None:
        """Log, once per object, that it owns itself and is therefore never collected."""
        meta = stored.obj["metadata"]
        cycle = self._cycle(stored)
        if not cycle:
            self._told.discard(meta["uid"])
        elif meta["uid"] not in self._told:
            self._told.add(meta["uid"])
            log.warning(
                "metadata.ownerReferences of %s %s form a cycle: %s; these objects are never garbage-collected: "
                "remove one of the references",
                resource.kind,
                stored.key,
                " -> ".join([f"{resource.kind} {meta['name']}", *cycle]),
            )

    def _cycle(self, stored: Stored) -> list[str]:
        """Return the owners on a path from an object back to itself; empty if there is no such path."""
        start = stored.obj["metadata"]["uid"]
        seen: set[str] = set()
        ways: list[tuple[Stored, list[str]]] = [(stored, [])]
        while ways:
            at, passed = ways.pop()
            for owner in _owners(at):
                found = self._find(at.obj["metadata"].get("namespace"), owner)
                uid = str(owner.get("uid"))
                if not isinstance(found, tuple) or uid in seen:
                    continue
                seen.add(uid)
                way = [*passed, f"{owner['kind']} {owner['name']}"]
                if uid == start:
                    return way
                ways.append((found[1], way))
        return []

    def _judge(self, resource: Resource, stored: Stored, owners: list[Obj]) -> None:
        namespace = stored.obj["metadata"].get("namespace")
        states = {str(owner.get("uid")): self._state(namespace, owner) for owner in owners}
        if "unknown" in states.values():
            self._unknown[resource.collection, stored.key] = None
        if any(state in ("present", "unknown") for state in states.values()):
            left = {uid for uid, state in states.items() if state in ("absent", "waiting")}
            if left and "present" in states.values():
                self._release(resource, stored, left)
            return
        finalizers = stored.obj["metadata"].get("finalizers") or ()
        policy = "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else "Background"
        dependents = self._dependents_of(stored)
        if "waiting" in states.values() and dependents:
            if any(_deletes_dependents(dependent.obj) for _, dependent in dependents):
                stored = self._unblock(resource, stored)
            policy = "Foreground"
        begin_deletion(self.registry.collection(resource), resource, stored, DeleteOptions(propagation=policy))

    def _dependents_of(self, stored: Stored) -> list[tuple[Resource, Stored]]:
        found = []
        for collection, key in self._dependents.get(stored.obj["metadata"]["uid"], ()):
            dependent = self.registry.store.collection(collection).get(key)
            if dependent is not None:
                found.append((self.registry.resources.named(collection), dependent))
        return found

    def _foreground(self, resource: Resource, stored: Stored) -> None:
        uid = stored.obj["metadata"]["uid"]
        blocking = [
            (kind, dependent)
            for kind, dependent in self._dependents_of(stored)
            if any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") for owner in _owners(dependent))
        ]
        for kind, dependent in blocking:
            if not _deletes_dependents(dependent.obj):
                self.enqueue((kind.collection, dependent.key))
        if not blocking:
            self._drop_finalizer(resource, stored, FOREGROUND)

    def _orphan(self, resource: Resource, stored: Stored) -> None:
        uid = stored.obj["metadata"]["uid"]
        for kind, dependent in self._dependents_of(stored):
            self._release(kind, dependent, {uid})
        self._drop_finalizer(resource, stored, ORPHAN)

    def _release(self, resource: Resource, stored: Stored, uids: set[str]) -> None:
        kept = [owner for owner in _owners(stored) if owner.get("uid") not in uids]
        self._write_owners(resource, stored, kept)

    def _unblock(self, resource: Resource, stored: Stored) -> Stored:
        owners = [{**owner, "blockOwnerDeletion": False} for owner in _owners(stored)]
        return self._write_owners(resource, stored, owners)

    def _write_owners(self, resource: Resource, stored: Stored, owners: list[Obj]) -> Stored:
        meta = {**stored.obj["metadata"], "ownerReferences": owners}
        if not owners:
            del meta["ownerReferences"]
        return self.registry.replace(resource, stored, {**stored.obj, "metadata": meta})

    def _drop_finalizer(self, resource: Resource, stored: Stored, finalizer: str) -> None:
        meta = dict(stored.obj["metadata"])
        meta["finalizers"] = [name for name in meta.get("finalizers") or [] if name != finalizer]
        self.registry.replace(resource, stored, {**stored.obj, "metadata": meta})
