"""Stand-ins on the embedded server: a volume controller, a provisioner that can refuse, and a watch that lags."""

import asyncio
import copy
import random
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

import msgspec

from volcano_py.api import storage as wire
from volcano_py.apiserver import ApiServer
from volcano_py.apiserver.store import Collection as Kind
from volcano_py.apiserver.store import Event
from volcano_py.effects.storage import ClaimState, VolumeState, WireClaim, WireVolume

CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"
CLASSES = "storageclasses.storage.k8s.io"
STATIC = "static"
DYNAMIC = "dynamic"


def put_classes(server: ApiServer) -> None:
    for name, provisioner in ((STATIC, "kubernetes.io/no-provisioner"), (DYNAMIC, "example.com/stand-in")):
        server.create(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": name},
                "provisioner": provisioner,
                "volumeBindingMode": "WaitForFirstConsumer",
            }
        )


def put_claim(server: ApiServer, name: str, storage_class: str = STATIC, **spec: Any) -> str:
    """Create a claim and return its uid."""
    made = server.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {
                "storageClassName": storage_class,
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                **spec,
            },
        }
    )
    uid: str = made["metadata"]["uid"]
    return uid


def put_volume(server: ApiServer, name: str, node: str = "", storage_class: str = STATIC, **spec: Any) -> None:
    server.create(a_volume(name, node, storage_class, **spec))


def a_volume(name: str, node: str = "", storage_class: str = STATIC, **spec: Any) -> dict[str, Any]:
    volume: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": storage_class,
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/tmp"},
            **spec,
        },
    }
    if node:
        terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
        volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return volume


def claim(server: ApiServer, name: str) -> dict[str, Any] | None:
    return server.get(CLAIMS, name, "default")


def is_bound(server: ApiServer, name: str) -> bool:
    found = claim(server, name)
    return found is not None and wire.BIND_COMPLETED in _annotations(found)


def promised(server: ApiServer, once_bound: Collection[str] = ()) -> list[str]:
    """Return what is promised to claims that are not bound, and what is wrong with bound ones.

    ``once_bound`` are the uids of claims that were bound before they were deleted: their volumes are released.
    """
    found = []
    claims = {one["metadata"]["uid"]: one for one in server.list(CLAIMS)}
    for uid, one in claims.items():
        bound = one["spec"].get("volumeName")
        if wire.SELECTED_NODE in _annotations(one) and not bound:
            found.append(f"claim {one['metadata']['name']} waits for a volume")
        if bound:
            volume = server.get(VOLUMES, bound)
            if volume is None or volume["spec"].get("claimRef", {}).get("uid") != uid:
                found.append(f"claim {one['metadata']['name']} is bound to {bound}, which is not bound to it")
    for volume in server.list(VOLUMES):
        ref = volume["spec"].get("claimRef")
        if ref and ref.get("uid") and (ref["uid"] in claims or ref["uid"] not in once_bound):
            owner = claims.get(ref["uid"])
            if owner is None or owner["spec"].get("volumeName") != volume["metadata"]["name"]:
                found.append(f"volume {volume['metadata']['name']} is promised to {ref['name']}")
    return found


class VolumeControllers:
    """What kube-controller-manager and a provisioner do, each change as a turn of its own, a little later."""

    def __init__(self, server: ApiServer, rng: random.Random, slowest_s: float = 0.01) -> None:
        self._server = server
        self._rng = rng
        self._slowest_s = slowest_s
        self.refuses: Callable[[dict[str, Any], str], bool] = lambda claim, node: False
        self.provisions: Callable[[dict[str, Any]], bool] = lambda claim: True
        self.refused: list[str] = []
        self.completed: set[str] = set()  # uids of claims that were bound at some time
        self.paused = False
        server.store.listeners.append(self._observe)

    def look_again(self) -> None:
        """Look at everything, as controllers do when they start."""
        for kind in (CLAIMS, VOLUMES):
            for stored in tuple(self._server.store.collection(kind).scan("")):
                self._later(kind, stored.key)

    def _observe(self, collection: Kind, event: Event) -> None:
        if collection.name not in (CLAIMS, VOLUMES):
            return
        self._later(collection.name, event.stored.key)
        if collection.name == CLAIMS and event.type == "DELETED":
            for volume in self._server.list(VOLUMES):
                self._later(VOLUMES, volume["metadata"]["name"])

    def _later(self, kind: str, key: str) -> None:
        turn = self._claim_turn if kind == CLAIMS else self._volume_turn
        asyncio.get_running_loop().call_later(self._rng.uniform(0, self._slowest_s), turn, key)

    def _read(self, kind: str, key: str) -> dict[str, Any] | None:
        stored = None if self.paused else self._server.store.collection(kind).get(key)
        return None if stored is None else copy.deepcopy({**stored.obj, **_TYPES[kind]})

    def _write(self, obj: dict[str, Any]) -> None:
        self._server.registry.inject(obj)

    # Claims

    def _claim_turn(self, key: str) -> None:
        found = self._read(CLAIMS, key)
        if found is None or found["spec"].get("volumeName"):
            return
        volume = self._volume_for(found)
        if volume is not None:
            self._bind(found, volume)
            return
        node = _annotations(found).get(wire.SELECTED_NODE)
        if node and found["spec"]["storageClassName"] == DYNAMIC and self.provisions(found):
            self._provision(found, node)

    def _volume_for(self, found: dict[str, Any]) -> dict[str, Any] | None:
        meta = found["metadata"]
        for volume in self._server.list(VOLUMES):
            ref = volume["spec"].get("claimRef")
            if ref and ref["name"] == meta["name"] and ref.get("uid", meta["uid"]) == meta["uid"]:
                return copy.deepcopy({**volume, **_TYPES[VOLUMES]})
        return None

    def _bind(self, found: dict[str, Any], volume: dict[str, Any]) -> None:
        """Bind in two turns, the volume first, as the volume controller does."""
        ref = volume["spec"]["claimRef"]
        if volume.get("status", {}).get("phase") != "Bound" or not ref.get("uid"):
            ref["uid"] = found["metadata"]["uid"]
            volume["status"] = {"phase": "Bound"}
            self._write(volume)
            self._later(CLAIMS, f"default/{found['metadata']['name']}")
            return
        found["spec"]["volumeName"] = volume["metadata"]["name"]
        found["status"] = {"phase": "Bound"}
        annotations = {**_annotations(found), wire.BIND_COMPLETED: "yes", wire.BOUND_BY_CONTROLLER: "yes"}
        found["metadata"]["annotations"] = annotations
        self._write(found)
        self.completed.add(found["metadata"]["uid"])

    def _provision(self, found: dict[str, Any], node: str) -> None:
        if self.refuses(found, node):
            self.refused.append(found["metadata"]["name"])
            del found["metadata"]["annotations"][wire.SELECTED_NODE]
            self._write(found)
            return
        meta = found["metadata"]
        ref = {"namespace": "default", "name": meta["name"], "uid": meta["uid"]}
        name = f"pvc-{meta['uid']}"
        if self._server.get(VOLUMES, name) is None:
            put_volume(self._server, name, node, DYNAMIC, claimRef=ref, persistentVolumeReclaimPolicy="Delete")

    # Volumes

    def _volume_turn(self, key: str) -> None:
        volume = self._read(VOLUMES, key)
        if volume is None:
            return
        ref, phase = volume["spec"].get("claimRef"), volume.get("status", {}).get("phase")
        if not ref or not ref.get("uid"):
            self._set_phase(volume, "Available")
            return
        owner = claim(self._server, ref["name"])
        if owner is None or owner["metadata"]["uid"] != ref["uid"]:
            if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                resource = self._server.resources.named(VOLUMES)
                self._server.registry.delete(resource, None, key)
            else:
                self._set_phase(volume, "Released")
        elif not owner["spec"].get("volumeName"):
            if phase != "Bound":
                self._set_phase(volume, "Available")
            self._later(CLAIMS, f"default/{ref['name']}")
        elif owner["spec"]["volumeName"] != key:
            if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
                self._server.registry.delete(self._server.resources.named(VOLUMES), None, key)
                return
            del volume["spec"]["claimRef"]
            self._write(volume)
        elif phase != "Bound":
            self._set_phase(volume, "Bound")

    def _set_phase(self, volume: dict[str, Any], phase: str) -> None:
        if volume.get("status", {}).get("phase") != phase:
            volume["status"] = {"phase": phase}
            self._write(volume)


_TYPES = {
    CLAIMS: {"apiVersion": "v1", "kind": "PersistentVolumeClaim"},
    VOLUMES: {"apiVersion": "v1", "kind": "PersistentVolume"},
}


class LaggingWatch:
    """Claims and volumes as a watch shows them: every change, in order, some time later."""

    def __init__(self, server: ApiServer, rng: random.Random, slowest_s: float = 0.005) -> None:
        self._rng = rng
        self._slowest_s = slowest_s
        self._events: deque[tuple[str, Event]] = deque()
        self.claims: dict[str, ClaimState] = {}
        self.volumes: dict[str, VolumeState] = {}
        self._hosts: dict[str, list[str] | None] = {}
        self._callbacks: list[Callable[[str], None]] = []
        for kind in (CLAIMS, VOLUMES):
            for stored in server.store.collection(kind).scan(""):
                self._show(kind, stored.key, stored.obj)
        server.store.listeners.append(self._observe)

    @property
    def up_to_date(self) -> bool:
        return not self._events

    def on_change(self, callback: Callable[[str], None]) -> None:
        self._callbacks.append(callback)

    def claim(self, namespace: str, name: str) -> ClaimState | None:
        return self.claims.get(f"{namespace}/{name}")

    def volume(self, name: str) -> VolumeState | None:
        return self.volumes.get(name)

    def reaches(self, volume: str, node: str) -> bool | None:
        if volume not in self._hosts:
            return None
        hosts = self._hosts[volume]
        return hosts is None or node in hosts

    def _observe(self, collection: Kind, event: Event) -> None:
        if collection.name in (CLAIMS, VOLUMES):
            self._events.append((collection.name, event))
            asyncio.get_running_loop().call_later(self._rng.uniform(0, self._slowest_s), self._deliver)

    def _deliver(self) -> None:
        kind, event = self._events.popleft()
        self._show(kind, event.stored.key, None if event.type == "DELETED" else event.stored.obj)
        for callback in self._callbacks:
            callback(event.stored.key)

    def _show(self, kind: str, key: str, obj: dict[str, Any] | None) -> None:
        shown: dict[str, Any] = self.claims if kind == CLAIMS else self.volumes
        if obj is None:
            shown.pop(key, None)
            self._hosts.pop(key, None)
            return
        shown[key] = msgspec.convert(obj, WireClaim if kind == CLAIMS else WireVolume).state()
        if kind == VOLUMES:
            affinity = obj["spec"].get("nodeAffinity")
            terms = affinity["required"]["nodeSelectorTerms"] if affinity else []
            self._hosts[key] = terms[0]["matchExpressions"][0]["values"] if terms else None


def _annotations(obj: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = obj["metadata"].get("annotations") or {}
    return found
