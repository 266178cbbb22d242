"""Random storage for the API server, one per seed, and pods with claims to judge: every rule of the volume filters."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.e2e.random_pods import HOSTNAME, REGION, ZONE, Chance, Wire

NAMESPACE: Final = "green"
CLAIMS: Final = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
VOLUMES: Final = "/api/v1/persistentvolumes"
STORAGE: Final = "/apis/storage.k8s.io/v1"
CLASSES, DRIVERS, CSI_NODES = f"{STORAGE}/storageclasses", f"{STORAGE}/csidrivers", f"{STORAGE}/csinodes"
CAPACITIES: Final = f"{STORAGE}/namespaces/{NAMESPACE}/csistoragecapacities"
ATTACHMENTS: Final = f"{STORAGE}/volumeattachments"
_BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
_LIMITED, _ROOMY, _PLAIN = "limited.example.com", "roomy.example.com", "plain.example.com"
_SIZES: Final = ("1Gi", "2Gi", "5Gi", "1500Mi")
_ZONES: Final = ("a", "b", "c")


@dataclass
class RandomStorage:
    """What to create: collections and objects in order, statuses to write afterwards, and the pods to judge."""

    nodes: list[Wire] = field(default_factory=list)
    objects: list[tuple[str, Wire]] = field(default_factory=list)
    statuses: list[tuple[str, Wire]] = field(default_factory=list)
    standing: list[Wire] = field(default_factory=list)
    judged: list[Wire] = field(default_factory=list)
    deleting: list[str] = field(default_factory=list)  # paths of objects that have a finalizer


class _Storage(Chance):
    def __init__(self, random: Random, n_judged: int) -> None:
        super().__init__(random)
        self.made = RandomStorage()
        self._names = [f"w{number}" for number in range(self.random.randrange(6, 16))]
        self.made.nodes = [self._node(name) for name in self._names]
        self._classes()
        self._drivers()
        self._volumes = [self._volume(f"v{number}") for number in range(self.random.randrange(15, 40))]
        self._claims = [self._claim(f"c{number}") for number in range(self.random.randrange(30, 50))]
        self.made.objects += [(VOLUMES, one) for one in self._volumes]
        self.made.objects += [(CLAIMS, one) for one in self._claims]
        for volume in self._volumes:
            phase = "Bound" if "claimRef" in volume["spec"] else self.one(*["Available"] * 12, "Released", "Pending")
            self.made.statuses.append((f"{VOLUMES}/{volume['metadata']['name']}", {"phase": phase}))
        self._attachments()
        self.made.standing = [self._pod(f"e{number}", at=self.one(*self._names)) for number in range(12)]
        self.made.judged = [self._pod(f"p{number}", at="") for number in range(n_judged)]

    def _node(self, name: str) -> Wire:
        labels = {HOSTNAME: name}
        if self.some(0.85):
            labels[self.one(ZONE, ZONE, ZONE, _BETA_ZONE)] = self.one(*_ZONES)
        if self.some(0.5):
            labels[REGION] = self.one("N", "S")
        has = {"cpu": "64", "memory": "64Gi", "pods": "110"}
        return {
            "metadata": {"name": name, "labels": labels},
            "status": {
                "allocatable": has,
                "capacity": has,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }

    def _classes(self) -> None:
        waits, now = {"volumeBindingMode": "WaitForFirstConsumer"}, {"volumeBindingMode": "Immediate"}
        zones = [{"matchLabelExpressions": [{"key": ZONE, "values": self.few(_ZONES, 1, 2)}]}]
        both = [*zones, {"matchLabelExpressions": [{"key": REGION, "values": ["N"]}, {"key": ZONE, "values": ["c"]}]}]
        for name, provisioner, more in (
            ("local", "kubernetes.io/no-provisioner", waits),
            ("fast", _LIMITED, waits),
            ("near", _PLAIN, waits | {"allowedTopologies": self.one(zones, both)}),
            ("roomy", _ROOMY, waits),
            ("now", _PLAIN, now),
        ):
            self.made.objects.append((CLASSES, {"metadata": {"name": name}, "provisioner": provisioner, **more}))

    def _drivers(self) -> None:
        for name, says in ((_LIMITED, False), (_ROOMY, True)):
            self.made.objects.append((DRIVERS, {"metadata": {"name": name}, "spec": {"storageCapacity": says}}))
        for number in range(self.one(0, 2, 4)):
            topology = self.one(
                {"matchLabels": {ZONE: self.one(*_ZONES)}},
                {"matchExpressions": [{"key": REGION, "operator": "DoesNotExist"}]},
                {"matchLabels": {HOSTNAME: self.one(*self._names)}},
                {},
            )
            room = {"metadata": {"name": f"r{number}"}, "storageClassName": "roomy", "nodeTopology": topology}
            room |= {"capacity": self.one("1Gi", "3Gi", "10Gi")}
            if self.some(0.4):
                room["maximumVolumeSize"] = self.one("1Gi", "2Gi", "5Gi")
            self.made.objects.append((CAPACITIES, room))
        for name in self._names:
            if self.some(0.7):
                driver: Wire = {"name": _LIMITED, "nodeID": name}
                if self.some(0.85):
                    driver["allocatable"] = {"count": self.one(1, 2, 3)}
                self.made.objects.append((CSI_NODES, {"metadata": {"name": name}, "spec": {"drivers": [driver]}}))

    def _volume(self, name: str) -> Wire:
        labels = {"tier": self.one("gold", "tin")}
        if self.some(0.25):
            labels[self.one(ZONE, _BETA_ZONE)] = self.one("a", "b", "b__c", "b____c")
        size = self.one(1024, 1536, 2048, 5120) + int(name[1:])  # no two are equal: kube-scheduler's choice is random
        modes = self.few(("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany"), 1, 1, 2, 3)
        spec: Wire = {
            "capacity": {"storage": f"{size}Mi"},
            "accessModes": self.one(modes, modes, modes, ["ReadWriteOncePod"]),
            "storageClassName": self.one("local", "local", "local", "fast", "near", "now"),
        }
        if self.some(0.5):
            spec["csi"] = {"driver": self.one(_LIMITED, _LIMITED, _PLAIN), "volumeHandle": f"h-{name}"}
        else:
            spec["local"] = {"path": f"/{name}"}
        if self.some(0.1):
            spec["volumeMode"] = "Block"
        if "local" in spec or self.some(0.4):
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": self._terms()}}
        return {"metadata": {"name": name, "labels": labels}, "spec": spec}

    def _terms(self) -> list[Wire]:
        def here(key: str, *values: str) -> Wire:
            return {"key": key, "operator": "In", "values": list(values)}

        return self.one(
            [{"matchExpressions": [here(HOSTNAME, self.one(*self._names))]}],
            [{"matchExpressions": [here(HOSTNAME, self.one(*self._names))]}],
            [{"matchExpressions": [here(ZONE, self.one(*_ZONES))]}],
            [{"matchExpressions": [here(ZONE, *self.few(_ZONES, 2))]}],
            [{"matchExpressions": [here(ZONE, "a")]}, {"matchExpressions": [here(REGION, "S")]}],
            [{"matchExpressions": [{"key": REGION, "operator": "Exists"}, here(ZONE, *_ZONES)]}],
            [{"matchExpressions": [here(HOSTNAME, "nowhere")]}],
        )

    def _claim(self, name: str) -> Wire:
        meta: Wire = {"name": name, "namespace": NAMESPACE, "annotations": {}}
        storage_class = self.one("local", "local", "local", "fast", "fast", "near", "roomy", "roomy", "now", "unknown")
        spec: Wire = {
            "accessModes": [self.one("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")],
            "resources": {"requests": {"storage": self.one(*_SIZES)}},
            "storageClassName": storage_class,
        }
        status: Wire = {"phase": "Pending"}
        if self.some(0.08):
            spec["volumeMode"] = "Block"
        if self.some(0.15):
            spec["selector"] = {"matchLabels": {"tier": "gold"}}
        free = [one for one in self._volumes if "claimRef" not in one["spec"]]
        if self.some(0.4) and free:
            self._join(meta, spec, status, self.one(*free))
        elif self.some(0.1):
            meta["annotations"]["volume.kubernetes.io/selected-node"] = self.one(*self._names, "gone")
        elif self.some(0.08) and free:  # a user has reserved the volume for the claim
            volume = self.one(*free)
            volume["spec"]["claimRef"] = {"namespace": NAMESPACE, "name": name}
            if self.some(0.7):
                volume["spec"]["storageClassName"] = storage_class
        if self.some(0.04):
            meta["finalizers"] = ["example.com/stays"]
            self.made.deleting.append(f"{CLAIMS}/{name}")
        self.made.statuses.append((f"{CLAIMS}/{name}", status))
        return {"metadata": meta, "spec": spec}

    def _join(self, meta: Wire, spec: Wire, status: Wire, volume: Wire) -> None:
        """Bind a claim to a volume, or to one that does not exist, or only begin to."""
        spec["volumeName"] = "missing" if self.some(0.06) else volume["metadata"]["name"]
        if self.some(0.9):
            meta["annotations"]["pv.kubernetes.io/bind-completed"] = "yes"
            status["phase"] = "Lost" if self.some(0.05) else "Bound"
        if spec["volumeName"] != "missing":
            volume["spec"]["claimRef"] = {"namespace": NAMESPACE, "name": meta["name"]}

    def _attachments(self) -> None:
        for volume in self._volumes:
            if "csi" in volume["spec"] and self.some(0.3):
                name = volume["metadata"]["name"]
                source = {"persistentVolumeName": name}
                spec = {"attacher": _LIMITED, "nodeName": self.one(*self._names), "source": source}
                self.made.objects.append((ATTACHMENTS, {"metadata": {"name": f"a-{name}"}, "spec": spec}))

    def _pod(self, name: str, *, at: str) -> Wire:
        claims = [one["metadata"]["name"] for one in self._claims]
        if self.some(0.03):
            claims = [*claims, *["absent"] * 10]
        used = list(dict.fromkeys(self.one(*claims) for _ in range(self.one(1, 1, 1, 2, 2, 3))))
        volumes: list[Wire] = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in used]
        if self.some(0.25):
            volumes.append({"name": "disk", **self._disk()})
        spec: Wire = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
        if at:
            spec["nodeName"] = at
        return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}

    def _disk(self) -> Wire:
        """Return a disk that a pod names itself."""
        read_only = {"readOnly": True} if self.some(0.5) else {}
        number = self.one("1", "2")
        return self.one(
            {"gcePersistentDisk": {"pdName": number, **read_only}},
            {"awsElasticBlockStore": {"volumeID": number}},
            {"iscsi": {"iqn": f"iqn.2001-04.com.example:{number}", "targetPortal": "1.2.3.4", "lun": 0, **read_only}},
            {"rbd": {"monitors": self.few(("m1", "m2", "m3"), 1, 2), "image": number, **read_only}},
        )


def random_storage(seed: int, n_judged: int) -> RandomStorage:
    """Return nodes with storage, pods on them, and pods to judge."""
    return _Storage(Random(seed), n_judged).made
