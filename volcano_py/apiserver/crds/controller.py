"""Serve the resources that definitions define, and clean up after deleted definitions."""

from __future__ import annotations

from collections.abc import Hashable

from volcano_py.apiserver.crds.custom import custom_resource
from volcano_py.apiserver.kinds.definitions import CLEANUP_FINALIZER
from volcano_py.apiserver.reconciler import Reconciler
from volcano_py.apiserver.store import Collection, Event

_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


class DefinitionController(Reconciler):
    """Serves the resources of definitions at once, and removes the objects of one that is being deleted."""

    name = "definitions"

    def observe(self, collection: Collection, event: Event) -> None:
        """Start or stop serving within the write; note definitions whose objects must be deleted."""
        obj = event.stored.obj
        meta = obj["metadata"]
        if collection.name == _DEFINITIONS:
            if event.type == "DELETED":
                self.registry.resources.remove(obj["spec"]["group"], obj["spec"]["names"]["plural"])
                self.registry.store.drop(meta["name"])
            elif "deletionTimestamp" in meta:
                self.enqueue(meta["name"])
            else:
                self.registry.resources.add(custom_resource(obj))
        elif event.type == "DELETED" and "." in collection.name:
            definition = self.registry.peek(_DEFINITIONS, collection.name)
            if definition is not None and "deletionTimestamp" in definition["metadata"]:
                self.enqueue(collection.name)

    def reconcile(self, item: Hashable) -> None:
        """Delete the objects of a terminating definition; when none is left, take the finalizer away."""
        name = str(item)
        definitions = self.registry.resources.named(_DEFINITIONS)
        stored = self.registry.collection(definitions).get(name)
        if stored is None or "deletionTimestamp" not in stored.obj["metadata"]:
            return
        spec = stored.obj["spec"]
        resource = self.registry.resources.find(spec["group"], spec["names"]["plural"])
        if resource is not None:
            self.registry.delete_collection(
                resource, None, matcher=lambda obj: "deletionTimestamp" not in obj["metadata"]
            )
            if self.registry.collection(resource).items:
                return
        meta = dict(stored.obj["metadata"])
        meta["finalizers"] = [name for name in meta.get("finalizers") or [] if name != CLEANUP_FINALIZER]
        self.registry.replace(definitions, stored, {**stored.obj, "metadata": meta})
