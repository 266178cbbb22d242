"""Namespaces that are being deleted: empty them, then let them go."""

from __future__ import annotations

from collections.abc import Hashable

from volcano_py.apiserver.objects import Obj
from volcano_py.apiserver.reconciler import Reconciler
from volcano_py.apiserver.store import Collection, Event


class NamespaceController(Reconciler):
    """Deletes the content of a terminating namespace and takes its `kubernetes` finalizer away when it is empty."""

    name = "namespaces"

    def observe(self, collection: Collection, event: Event) -> None:
        """Note terminating namespaces, and namespaces out of which something vanished."""
        meta = event.stored.obj["metadata"]
        if collection.name == "namespaces":
            if event.type != "DELETED" and "deletionTimestamp" in meta:
                self.enqueue(meta["name"])
        elif event.type == "DELETED" and meta.get("namespace"):
            namespace = self.registry.peek("namespaces", meta["namespace"])
            if namespace is not None and "deletionTimestamp" in namespace["metadata"]:
                self.enqueue(meta["namespace"])

    def reconcile(self, item: Hashable) -> None:
        """Delete what is left; when nothing is, finish."""
        name = str(item)
        namespaces = self.registry.resources.named("namespaces")
        stored = self.registry.collection(namespaces).get(name)
        if stored is None or "deletionTimestamp" not in stored.obj["metadata"]:
            return
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
