"""Storage for tests on a real API server: claims, volumes, and a provisioner of another process's kind.

The provisioner does what external provisioners do: it looks for claims of its class with a selected node, and either
makes a volume for the claim that this node can reach, or refuses by removing the annotation.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from tests.controlplane.cluster import Cluster
from tests.controlplane.rest import ApiFailure
from volcano_py.api.storage import BIND_COMPLETED, SELECTED_NODE

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
MERGE = "application/merge-patch+json"
HOSTNAME = "kubernetes.io/hostname"


class Storage:
    """The claims of one namespace, and classes and volumes for them, which are removed at the end."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self.namespace = namespace
        self._claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        self._made: list[str] = []

    def close(self) -> None:
        """Remove classes and volumes; the claims go with their namespace."""
        owned = [volume["metadata"]["name"] for volume in self.volumes()]
        for path in (*self._made, *(f"{VOLUMES}/{name}" for name in owned)):
            self._try("DELETE", path)

    def make_class(self, provisioner: str = "kubernetes.io/no-provisioner") -> str:
        """Create a class whose claims wait for their first consumer."""
        name = f"e2e-{secrets.token_hex(3)}"
        body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        self._cluster.request("POST", CLASSES, body)
        self._made.append(f"{CLASSES}/{name}")
        return name

    def make_claim(self, name: str, storage_class: str) -> None:
        """Create a claim."""
        spec = {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
        self._cluster.request("POST", self._claims, {"metadata": {"name": name}, "spec": spec})

    def make_volume(self, storage_class: str, node: str, claim: dict[str, Any] | None = None) -> str:
        """Create a volume that one node can reach; with a claim, it is reserved for that."""
        name = f"{storage_class}-{secrets.token_hex(4)}"
        terms = [{"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}]
        spec: dict[str, Any] = {
            "storageClassName": storage_class,
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": f"/tmp/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        }
        if claim is not None:
            meta = claim["metadata"]
            spec["claimRef"] = {"namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
        self._cluster.request("POST", VOLUMES, {"metadata": {"name": name}, "spec": spec})
        self._made.append(f"{VOLUMES}/{name}")
        return name

    def claims(self) -> dict[str, dict[str, Any]]:
        """Return the claims by name."""
        return {one["metadata"]["name"]: one for one in self._cluster.request("GET", self._claims)["items"]}

    def volumes(self) -> list[dict[str, Any]]:
        """Return the volumes of the classes that were made here."""
        classes = {path.rpartition("/")[2] for path in self._made if path.startswith(CLASSES)}
        found = self._cluster.request("GET", VOLUMES)["items"]
        return [one for one in found if one["spec"].get("storageClassName") in classes]

    def bound(self) -> dict[str, str]:
        """Return the volumes of bound claims by the name of the claim."""
        return {
            name: one["spec"]["volumeName"] for name, one in self.claims().items() if BIND_COMPLETED in annotations(one)
        }

    def node_of(self, volume: str) -> str:
        """Return the node that can reach a volume."""
        (found,) = (one for one in self.volumes() if one["metadata"]["name"] == volume)
        (term,) = found["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        node: str = term["matchExpressions"][0]["values"][0]
        return node

    def promised(self) -> list[str]:
        """Return what is promised to claims that are not bound, and volumes whose claim is bound elsewhere."""
        claims = {one["metadata"]["uid"]: one for one in self.claims().values()}
        found = [
            f"claim {one['metadata']['name']} waits for a volume for node {annotations(one)[SELECTED_NODE]}"
            for one in claims.values()
            if SELECTED_NODE in annotations(one) and not one["spec"].get("volumeName")
        ]
        for volume in self.volumes():
            uid, name = volume["spec"].get("claimRef", {}).get("uid"), volume["metadata"]["name"]
            if uid and claims.get(uid, {}).get("spec", {}).get("volumeName") != name:
                found.append(f"volume {name} is promised to claim {volume['spec']['claimRef']['name']}")
        return found

    def patch_claim(self, name: str, body: dict[str, Any]) -> None:
        """Change a claim."""
        self._cluster.request("PATCH", f"{self._claims}/{name}", body, content_type=MERGE)

    def _try(self, verb: str, path: str) -> None:
        try:
            self._cluster.request(verb, path)
        except ApiFailure as failure:
            if failure.code != 404:
                raise


class Provisioner(AbstractContextManager["Provisioner"]):
    """Makes volumes for the claims of one class in a thread of its own, as long as the block lasts."""

    def __init__(self, storage: Storage, provisioner: str = "") -> None:
        self.storage_class = storage.make_class(provisioner or f"e2e.volcano-py/{secrets.token_hex(3)}")
        self.refuses: Callable[[str], bool] = lambda name: False
        """Says for the name of a claim whether to refuse."""
        self.refused: list[str] = []
        self.asked: set[str] = set()
        """Claims for which a node was selected."""
        self.works = threading.Event()
        """Without it, nothing is made or refused."""
        self.works.set()
        self._storage = storage
        self._made: set[str] = set()  # uids of claims
        self._end = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="provisioner", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join(10)
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._end.wait(0.05):
                for name, claim in sorted(self._storage.claims().items()):
                    self._look(name, claim)
        except BaseException as error:  # noqa: BLE001 - raised again when the block ends
            self._error = error

    def _look(self, name: str, claim: dict[str, Any]) -> None:
        node = annotations(claim).get(SELECTED_NODE)
        spec, uid = claim["spec"], claim["metadata"]["uid"]
        if spec["storageClassName"] != self.storage_class or not node or spec.get("volumeName") or uid in self._made:
            return
        self.asked.add(name)
        if not self.works.is_set():
            return
        if self.refuses(name):
            version = claim["metadata"]["resourceVersion"]
            body = {"metadata": {"resourceVersion": version, "annotations": {SELECTED_NODE: None}}}
            try:
                self._storage.patch_claim(name, body)
                self.refused.append(name)
            except ApiFailure as failure:
                if failure.code != 409:  # the claim has changed: it is looked at again, and refused then
                    raise
            return
        self._storage.make_volume(self.storage_class, node, claim)
        self._made.add(uid)


def annotations(obj: dict[str, Any]) -> dict[str, str]:
    """Return the annotations of an object."""
    found: dict[str, str] = obj["metadata"].get("annotations") or {}
    return found
