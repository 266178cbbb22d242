"""Namespaces: a new one gets its default service account; a terminating one is emptied, then removed."""

from __future__ import annotations

from collections.abc import Hashable

from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.reconciler import Reconciler
from volcano_py.apiserver.store import Collection, Event, Stored


class NamespaceController(Reconciler):
    """Creates the service account `default`; empties terminating namespaces and removes their finalizer."""

    name = "namespaces"

    def observe(self, collection: Collection, event: Event) -> None:
        """Note namespaces that are new or terminating, and those from which an object was removed."""
        meta = event.stored.obj["metadata"]
        if collection.name == "namespaces":
            if event.type == "ADDED" or (event.type != "DELETED" and "deletionTimestamp" in meta):
                self.enqueue(meta["name"])
        elif event.type == "DELETED" and meta.get("namespace"):
            namespace = self.registry.peek("namespaces", meta["namespace"])
            if namespace is not None and "deletionTimestamp" in namespace["metadata"]:
                self.enqueue(meta["namespace"])

    def reconcile(self, item: Hashable) -> None:
        """Create the account of a new namespace; delete what is left in a terminating one, or its finalizer."""
        name = str(item)
        stored = self.registry.store.collection("namespaces").get(name)
        if stored is None:
            return
        if "deletionTimestamp" in stored.obj["metadata"]:
            self._end(name, stored)
        elif self.registry.peek("serviceaccounts", f"{name}/default") is None:
            accounts = self.registry.resources.named("serviceaccounts")
            self.registry.create(accounts, name, {"metadata": {"name": "default"}})

    def _end(self, name: str, stored: Stored) -> None:
        namespaces = self.registry.resources.named("namespaces")
        left = 0
        for resource in self.registry.resources:
            if resource.namespaced:
                self._empty(resource.collection, name)
                left += sum(1 for _ in self.registry.collection(resource).scan(f"{name}/"))
        if left:
            return
        spec: Obj = dict(stored.obj.get("spec") or {})
        spec["finalizers"] = [item for item in spec.get("finalizers") or [] if item != "kubernetes"]
        self.registry.replace(
            namespaces, stored, {**stored.obj, "metadata": dict(stored.obj["metadata"]), "spec": spec}
        )

    def _empty(self, collection: str, namespace: str) -> None:
        resource = self.registry.resources.named(collection)
        self.registry.delete_collection(
            resource, namespace, matcher=lambda obj: "deletionTimestamp" not in obj["metadata"]
        )
