"""Reads and writes of objects: the pipeline of every request, over HTTP or in-process.

A write has these steps: check names and preconditions, fill in metadata, let the kind's strategy default and admit the
object, validate, store. All steps are synchronous: two writes never interleave, so a patch needs no retry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from volcano_py.apiserver import metadata
from volcano_py.apiserver.apply.server_side import Applier, apply
from volcano_py.apiserver.apply.structure import structure_of
from volcano_py.apiserver.deletion import DeleteOptions, Deletion, begin_deletion, may_vanish
from volcano_py.apiserver.drafts import Draft, record_owners
from volcano_py.apiserver.identity import WRONG_NAMESPACE, check_name, check_type, place
from volcano_py.apiserver.kinds.generic import WriteContext
from volcano_py.apiserver.objects import Obj, copy_value, describe, object_key
from volcano_py.apiserver.resources import Resource, ResourceTable
from volcano_py.apiserver.selectors import Matcher
from volcano_py.apiserver.status import (
    MODIFIED,
    StatusError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    invalid_value,
    not_found,
)
from volcano_py.apiserver.store import Collection, Store, Stored

_NAME_ATTEMPTS = 8
_NO_OWNERS: tuple[list[Obj], ...] = ([], [{}])

PatchFunction = Callable[[Obj], Obj]
"""Makes the new object from a copy of the current one; it may change that copy."""


class Registry:
    """Objects of every resource, with the rules of their kinds."""

    def __init__(self, store: Store, resources: ResourceTable) -> None:
        self.store = store
        self.resources = resources

    # What admission may look up (kinds.generic.Reader).

    def peek(self, collection: str, key: str) -> Obj | None:
        """One object by collection name and key, or None."""
        stored = self.store.collection(collection).get(key)
        return stored.obj if stored else None

    def objects(self, collection: str) -> Iterable[Obj]:
        """All objects of a collection."""
        return (stored.obj for stored in self.store.collection(collection).items.values())

    def collection(self, resource: Resource) -> Collection:
        """The collection of a resource."""
        return self.store.collection(resource.collection)

    def get(self, resource: Resource, namespace: str | None, name: str) -> Stored:
        """One object; 404 when it does not exist."""
        stored = self.collection(resource).get(object_key(namespace, name))
        if stored is None:
            raise not_found(resource.group, resource.plural, name)
        return stored

    def create(
        self, resource: Resource, namespace: str | None, obj: Obj, context: WriteContext | None = None
    ) -> Stored:
        """Store a new object; the dictionary then belongs to the server."""
        return self.commit(self.draft_create(resource, namespace, obj, context))

    def draft_create(
        self, resource: Resource, namespace: str | None, obj: Obj, context: WriteContext | None = None
    ) -> Draft:
        """Prepare a new object: check its names, fill in metadata and defaults."""
        context = self._context(resource, context)
        check_type(resource, obj, context)
        meta = metadata.metadata_of(obj)
        if meta.get("resourceVersion"):
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        place(meta, namespace)
        if namespace:
            self._require_namespace(resource, namespace, meta.get("name", ""))
        if resource.custom:
            self._require_definition(resource, meta.get("name", ""))
        generated = not meta.get("name") and bool(meta.get("generateName"))
        if generated:
            meta["name"] = self._free_name(resource, namespace, meta["generateName"])
        obj["metadata"] = metadata.for_create(meta, resource.strategy.has_generation)
        if context.managed_fields:
            obj["metadata"]["managedFields"] = context.managed_fields
        resource.strategy.prepare_create(obj, context)
        return Draft(resource, namespace, obj["metadata"].get("name", ""), obj, None, context)

    def check(self, draft: Draft) -> None:
        """Validate a draft; StatusError lists what is wrong with it."""
        self._validate(draft.resource, draft.obj, draft.old.obj if draft.old is not None else None, draft.context)

    def commit(self, draft: Draft) -> Stored:
        """Validate a draft and store it; a draft equal to the current object is not written."""
        self.check(draft)
        resource, old, obj = draft.resource, draft.old, draft.obj
        if old is None:
            if self.collection(resource).get(draft.key) is not None:
                raise already_exists(resource.group, resource.plural, draft.name)
            return self._put(resource, draft.key, obj, draft.context)
        record_owners(draft)
        if obj == old.obj:
            return old
        strategy = resource.strategy
        if strategy.has_generation and strategy.bumps_generation(obj, old.obj):
            obj["metadata"]["generation"] = old.obj["metadata"].get("generation", 0) + 1
        return self.replace(resource, old, obj, draft.context)

    def _free_name(self, resource: Resource, namespace: str | None, prefix: str) -> str:
        name = metadata.new_name(prefix)
        for _ in range(_NAME_ATTEMPTS):
            if self.collection(resource).get(object_key(namespace, name)) is None:
                break
            name = metadata.new_name(prefix)
        return name

    def update(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        obj: Obj,
        context: WriteContext | None = None,
    ) -> tuple[Stored, bool]:
        """Replace an object (PUT); returns the revision, and whether it was created."""
        draft = self.draft_update(resource, namespace, name, obj, context)
        return self.commit(draft), draft.old is None

    def draft_update(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        obj: Obj,
        context: WriteContext | None = None,
    ) -> Draft:
        """Prepare the replacement of an object, or a new object if the kind lets PUT create one."""
        context = self._context(resource, context)
        check_type(resource, obj, context)
        meta = metadata.metadata_of(obj)
        place(meta, namespace)
        check_name(meta, name)
        old = self.collection(resource).get(object_key(namespace, name))
        if old is None:
            if resource.strategy.create_on_update and not context.subresource:
                return self.draft_create(resource, namespace, obj, context)
            raise not_found(resource.group, resource.plural, name)
        uid, old_uid = meta.get("uid"), old.obj["metadata"]["uid"]
        if uid and uid != old_uid:
            key = f"/registry/{resource.plural}/{old.key}"
            why = (
                f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
                f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old_uid}"
            )
            raise conflict(resource.group, resource.plural, name, why)
        if not meta.get("resourceVersion") and not resource.strategy.unconditional_update:
            errors = [invalid_value("metadata.resourceVersion", 0, "must be specified for an update")]
            raise invalid(resource.group, resource.plural, name, errors)
        return self._draft_revision(resource, old, obj, context)

    def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        change: PatchFunction,
        context: WriteContext | None = None,
    ) -> Stored:
        """Change an object by a function of its current state."""
        return self.commit(self.draft_patch(resource, namespace, name, change, context))

    def draft_patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        change: PatchFunction,
        context: WriteContext | None = None,
    ) -> Draft:
        """Prepare a change of an object."""
        context = self._context(resource, context)
        old = self.get(resource, namespace, name)
        current = copy_value(old.obj)
        current["apiVersion"] = resource.versions[context.version].api_version
        obj = change(current)
        if not isinstance(obj, dict):
            raise bad_request(f"the patch leaves no object of {describe(old.obj)}")
        check_type(resource, obj, context)
        meta = metadata.metadata_of(obj)
        check_name(meta, name)
        if (meta.get("namespace") or None) != namespace:
            raise bad_request(WRONG_NAMESPACE)
        if meta.get("uid") and meta["uid"] != old.obj["metadata"]["uid"]:
            errors = [invalid_value("metadata.uid", meta["uid"], "field is immutable")]
            raise invalid(resource.group, resource.kind, name, errors)
        return self._draft_revision(resource, old, obj, context)

    def draft_apply(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        config: Obj,
        applier: Applier,
        context: WriteContext | None = None,
    ) -> Draft:
        """Prepare a server-side apply of an existing or a new object."""
        context = self._context(resource, context)
        structure = structure_of(resource, context.version)
        old = self.collection(resource).get(object_key(namespace, name))
        if old is None:
            if context.subresource:
                raise not_found(resource.group, resource.plural, name)
            made, context.managed_fields = apply(None, config, structure, applier)
            return self.draft_create(resource, namespace, made, context)

        def change(current: Obj) -> Obj:
            made, context.managed_fields = apply(current, config, structure, applier)
            return made

        return self.draft_patch(resource, namespace, name, change, context)

    def _draft_revision(self, resource: Resource, old: Stored, obj: Obj, context: WriteContext) -> Draft:
        """The part that PUT and PATCH share: check the version, prepare the revision."""
        meta = obj["metadata"]
        asked = meta.get("resourceVersion")
        if asked and asked != str(old.rv):
            raise conflict(resource.group, resource.plural, meta["name"], MODIFIED)
        if meta.get("managedFields") in _NO_OWNERS and "managedFields" in meta:
            context.managed_fields = []  # an empty list clears the recorded owners
        obj["metadata"] = metadata.for_update(meta, old.obj["metadata"])
        obj = resource.strategy.prepare_update(obj, old.obj, context)
        obj["kind"], obj["apiVersion"] = resource.kind, resource.storage.api_version
        own = obj["metadata"]
        return Draft(resource, own.get("namespace"), own["name"], obj, old, context)

    def replace(self, resource: Resource, old: Stored, obj: Obj, context: WriteContext | None = None) -> Stored:
        """Store a finished revision; remove a terminating object if nothing holds it any more."""
        if may_vanish(obj):
            if context is None or not context.dry_run:
                collection = self.collection(resource)
                collection.items[old.key] = Stored(old.key, obj, old.rv)
                return collection.remove(old.key)
            return Stored(old.key, obj, old.rv)
        return self._put(resource, old.key, obj, context)

    def _put(self, resource: Resource, key: str, obj: Obj, context: WriteContext | None) -> Stored:
        if context is not None and context.dry_run:
            return Stored(key, obj, 0)
        return self.collection(resource).put(key, obj)

    def delete(
        self, resource: Resource, namespace: str | None, name: str, options: DeleteOptions | None = None
    ) -> Deletion:
        """Delete an object: at once, after its grace period, or after its last finalizer."""
        stored = self.get(resource, namespace, name)
        return begin_deletion(self.collection(resource), resource, stored, options or DeleteOptions())

    def delete_collection(
        self,
        resource: Resource,
        namespace: str | None,
        options: DeleteOptions | None = None,
        matcher: Matcher | None = None,
    ) -> list[Stored]:
        """Delete every matching object; returns the objects as they were."""
        prefix = f"{namespace}/" if namespace else ""
        collection = self.collection(resource)
        found = [stored for stored in collection.scan(prefix) if matcher is None or matcher(stored.obj)]
        for stored in found:
            if collection.get(stored.key) is stored:
                begin_deletion(collection, resource, stored, options or DeleteOptions())
        return found

    def inject(self, obj: Obj) -> Stored:
        """Store an object as it is, past defaults, admission and validation (for tests of bad objects)."""
        resource = self.resources.of_kind(str(obj.get("apiVersion")), str(obj.get("kind")))
        if resource is None:
            raise LookupError(
                f"{describe(obj)}: no resource of {obj.get('apiVersion')}, kind {obj.get('kind')} is served"
            )
        made = copy_value(obj)
        meta = made.setdefault("metadata", {})
        filled = metadata.for_create({"name": "injected"}, resource.strategy.has_generation)
        made["metadata"] = {**filled, **meta}
        if resource.namespaced:
            made["metadata"].setdefault("namespace", "default")
        key = object_key(made["metadata"].get("namespace"), made["metadata"]["name"])
        return self.collection(resource).put(key, made)

    def _context(self, resource: Resource, context: WriteContext | None) -> WriteContext:
        if context is None:
            return WriteContext(self, version=resource.storage.name)
        return context

    def _require_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        found = self.peek("namespaces", namespace)
        if found is None:
            raise not_found("", "namespaces", namespace)
        if "deletionTimestamp" in found["metadata"]:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            error = forbidden(resource.group, resource.plural, name, why)
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            error.details = {**(error.details or {}), "causes": [cause]}
            raise error

    def _require_definition(self, resource: Resource, name: str) -> None:
        """Refuse new objects of a definition that is being deleted: else its deletion might never end."""
        found = self.peek("customresourcedefinitions.apiextensions.k8s.io", resource.collection)
        if found is not None and "deletionTimestamp" in found["metadata"]:
            why = "create not allowed while custom resource definition is terminating"
            raise forbidden(resource.group, resource.plural, name, why)

    def _validate(self, resource: Resource, obj: Obj, old: Obj | None, context: WriteContext) -> None:
        meta, strategy = obj["metadata"], resource.strategy
        if old is None or meta is not old["metadata"]:
            errors = metadata.validate(meta, strategy.name_rule)
        else:
            errors = []
        errors.extend(strategy.validate(obj, context))
        if old is not None:
            errors.extend(metadata.validate_update(meta, old["metadata"]))
            errors.extend(strategy.validate_update(obj, old, context))
        if errors:
            raise invalid(resource.group, resource.kind, meta.get("name", ""), errors)
