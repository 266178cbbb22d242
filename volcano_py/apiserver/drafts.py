"""Drafts: writes that are prepared but not yet stored, and the owners of the fields they change."""

from __future__ import annotations

from dataclasses import dataclass

from volcano_py.apiserver.apply.server_side import Applier, track
from volcano_py.apiserver.apply.structure import structure_of
from volcano_py.apiserver.kinds.generic import WriteContext
from volcano_py.apiserver.objects import Obj, object_key
from volcano_py.apiserver.resources import Resource
from volcano_py.apiserver.store import Stored

_UNKNOWN_MANAGER = "unknown"


@dataclass(slots=True)
class Draft:
    """A write that is prepared and not yet stored: the object with its defaults, and what it replaces."""

    resource: Resource
    namespace: str | None
    name: str
    obj: Obj
    old: Stored | None
    context: WriteContext

    @property
    def key(self) -> str:
        """Key of the object in its collection."""
        return object_key(self.namespace, self.name)


def record_owners(draft: Draft) -> None:
    """Record the owners of the changed fields, on objects that have owners recorded."""
    old, obj, context = draft.old, draft.obj, draft.context
    managed = old.obj["metadata"].get("managedFields") if old is not None else None
    if context.managed_fields is not None:
        if context.managed_fields:
            obj["metadata"]["managedFields"] = context.managed_fields
    elif managed and old is not None:
        obj["metadata"]["managedFields"] = managed
        if obj != old.obj:
            structure = structure_of(draft.resource, context.version)
            api_version = draft.resource.versions[context.version].api_version
            updater = Applier(
                (context.manager() if context.manager else "") or _UNKNOWN_MANAGER, api_version, context.subresource
            )
            obj["metadata"]["managedFields"] = track(old.obj, obj, structure, updater)
