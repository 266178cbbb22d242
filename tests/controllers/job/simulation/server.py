"""An API server as far as the job controller sees it: versions, preconditions, uids, graceful deletion, a journal."""

from collections.abc import Mapping
from typing import Any, Final

from volcano_py.api import keys
from volcano_py.kube import errors
from volcano_py.kube.resource import PODS, VCJOBS, Resource
from volcano_py.runtime.clock import FakeClock

Obj = dict[str, Any]
Key = tuple[str, str, str]
"""Label of the resource, namespace, name."""

_STAMP: Final = "%Y-%m-%dT%H:%M:%SZ"
_ENDED: Final = ("Succeeded", "Failed")


class Server:
    """Objects by key, and all changes of each resource in order. A stored object is never changed in place."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.objects: dict[Key, Obj] = {}
        self.journal: dict[str, list[tuple[str, Obj]]] = {}
        self.version = 0
        self._uids = 0

    def stamp(self) -> str:
        """Return the time as it stands in objects."""
        return self._clock.now().strftime(_STAMP)

    def find(self, resource: Resource, name: str, namespace: str = "default") -> Obj | None:
        """Return an object, None if it does not exist."""
        return self.objects.get((resource.label, namespace if resource.namespaced else "", name))

    def all(self, resource: Resource) -> list[Obj]:
        """Return the objects of a resource by name."""
        return [obj for (label, *_), obj in sorted(self.objects.items()) if label == resource.label]

    # Requests

    def create(self, resource: Resource, namespace: str, body: Mapping[str, Any]) -> Obj:
        """Create an object; raise AlreadyExists."""
        key = (resource.label, namespace if resource.namespaced else "", body["metadata"]["name"])
        if key in self.objects:
            raise errors.AlreadyExists("create", resource.collection(namespace), f"{key[2]} exists")
        self._uids += 1
        meta = {
            **body["metadata"],
            "namespace": key[1],
            "uid": f"u{self._uids}",
            "creationTimestamp": self.stamp(),
            "generation": 1,
        }
        created = {**body, "metadata": meta}
        if resource is PODS:
            created["status"] = {"phase": "Pending"}
        return self._store(key, created, "ADDED")

    def merge(self, resource: Resource, namespace: str, name: str, body: Mapping[str, Any], subresource: str) -> Obj:
        """Apply a merge patch; raise NotFound, or Conflict if a uid or resourceVersion in it is another."""
        key, now = self._existing("patch", resource, namespace, name)
        given = dict(body.get("metadata") or {})
        for field in ("uid", "resourceVersion"):
            if field in given and given.pop(field) != now["metadata"][field]:
                raise errors.Conflict("patch", resource.item(name, namespace), f"its {field} is another")
        if subresource:
            changed = {**now, "status": merged(now.get("status") or {}, body.get("status") or {})}
        else:
            changed = merged(now, {**body, "metadata": given})
            if resource is VCJOBS:
                changed["status"] = now.get("status") or {}
        return self.put(key, changed)

    def json_patch(self, resource: Resource, namespace: str, name: str, operations: list[Mapping[str, Any]]) -> Obj:
        """Apply operations ``test`` and ``add`` on the paths that the job controller uses."""
        key, now = self._existing("patch", resource, namespace, name)
        changed = now
        for one in operations:
            path = one["path"].strip("/").split("/")
            if one["op"] == "test":
                if now["metadata"]["resourceVersion"] != one["value"]:
                    raise errors.Conflict("patch", resource.item(name, namespace), "test failed")
            else:
                _, volumes, index, field = path
                entries = list(changed["spec"][volumes])
                entries[int(index)] = {**entries[int(index)], field: one["value"]}
                changed = {**changed, "spec": {**changed["spec"], volumes: entries}}
        return self.put(key, changed)

    def delete(self, resource: Resource, namespace: str, name: str, uid: str, propagation: str = "") -> None:
        """Delete an object. A pod on a node terminates first, and a job in foreground waits for what it owns."""
        key, now = self._existing("delete", resource, namespace, name)
        if uid and uid != now["metadata"]["uid"]:
            raise errors.Conflict("delete", resource.item(name, namespace), "its uid is another")
        graceful = resource is PODS and now["spec"].get("nodeName") and now["status"]["phase"] not in _ENDED
        if graceful or propagation == "Foreground":
            if "deletionTimestamp" not in now["metadata"]:
                self.put(key, {**now, "metadata": {**now["metadata"], "deletionTimestamp": self.stamp()}})
        else:
            self.remove(key)

    def _existing(self, verb: str, resource: Resource, namespace: str, name: str) -> tuple[Key, Obj]:
        key = (resource.label, namespace if resource.namespaced else "", name)
        if key not in self.objects:
            raise errors.NotFound(verb, resource.item(name, namespace), f"{name} does not exist")
        return key, self.objects[key]

    # Changes

    def put(self, key: Key, obj: Obj) -> Obj:
        """Store a state of an object that exists, unless it is the same."""
        now = self.objects[key]
        if obj == now:
            return now
        if obj.get("spec") != now.get("spec"):
            meta = obj["metadata"]
            obj = {**obj, "metadata": {**meta, "generation": meta.get("generation", 1) + 1}}
        return self._store(key, obj, "MODIFIED")

    def remove(self, key: Key) -> None:
        """Take an object away at once."""
        gone = self.objects.pop(key)
        self._journal(key[0], "DELETED", gone)

    def set_status(self, resource: Resource, name: str, status: Mapping[str, Any]) -> None:
        """Merge into the status of an object, as the scheduler and kubelets do."""
        key = (resource.label, "default" if resource.namespaced else "", name)
        now = self.objects[key]
        self.put(key, {**now, "status": merged(now.get("status") or {}, status)})

    def _store(self, key: Key, obj: Obj, change: str) -> Obj:
        self.objects[key] = self._journal(key[0], change, obj)
        return self.objects[key]

    def _journal(self, label: str, change: str, obj: Obj) -> Obj:
        self.version += 1
        obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        self.journal.setdefault(label, []).append((change, obj))
        return obj


def merged(now: Mapping[str, Any], patch: Mapping[str, Any]) -> Obj:
    """Return an object after a merge patch (RFC 7386)."""
    found = dict(now)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        elif isinstance(value, Mapping):
            found[name] = merged(found.get(name) or {}, value)
        else:
            found[name] = value
    return found


def is_completed(pod: Obj) -> bool:
    """Say whether a pod has succeeded and nobody deletes it."""
    leaves = is_killed(pod) or "deletionTimestamp" in pod["metadata"]
    return bool(pod["status"]["phase"] == "Succeeded" and not leaves)


def is_killed(pod: Obj) -> bool:
    """Say whether a pod carries the mark of a pod that the controller kills."""
    return bool((pod["metadata"].get("annotations") or {}).get(keys.OUT_OF_SYNC) == "true")
