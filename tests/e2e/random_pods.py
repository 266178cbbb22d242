"""Random pods for the API server; they use every rule of kube-scheduler's filters and scorers."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final, TypeVar

T = TypeVar("T")
Wire = dict[str, Any]

HOSTNAME, ZONE, RACK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rack"
REGION: Final = "topology.kubernetes.io/region"
DOMAINS: Final = (ZONE, ZONE, HOSTNAME, HOSTNAME, REGION, RACK)
GPU, FPGA, DISK = "nvidia.com/gpu", "example.com/fpga", "ephemeral-storage"
OVERHEAD: Final = "heavy"  # a RuntimeClass
OWNERS: Final = {"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicationController": "v1", "Job": "batch/v1"}
NAMESPACES: Final = {"green": {}, "red": {"team": "x", "tier": "gold"}, "blue": {"team": "y"}}
IMAGES: Final = {  # sizes in MiB; the second name of every other image is alias.io/NUMBER
    "small": 60,
    "r.io:5000/big": 900,
    "r.io/mid:1": 333.5,
    "digest@sha256:" + "a" * 64: 512,
    "huge:v1": 2500,
}
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_CORDON: Final = "node.kubernetes.io/unschedulable"


class Chance:
    """Random decisions."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def some(self, chance: float) -> bool:
        return self.random.random() < chance

    def one(self, *options: T) -> T:
        return self.random.choice(options)

    def few(self, options: Sequence[T], *counts: int) -> list[T]:
        return self.random.sample(options, self.one(*counts))


class Pods(Chance):
    """Makes pods: pods that already run have fewer constraints than pods to judge."""

    def pod(self, name: str, *, judged: bool) -> Wire:
        meta: Wire = {"name": name, "namespace": self.one(*NAMESPACES), "labels": self._labels()}
        spec: Wire = {"containers": [self._container(f"c{number}") for number in range(self.one(1, 1, 1, 2))]}
        if self.some(0.15):
            spec["initContainers"] = [
                self._container(f"i{number}") | ({"restartPolicy": "Always"} if self.some(0.5) else {})
                for number in range(self.one(1, 2, 3))
            ]
        if self.some(0.15):
            spec["resources"] = {"requests": self.one({"cpu": "4"}, {"cpu": "6", "memory": "6Gi"})}
        if self.some(0.1):
            spec["runtimeClassName"] = OVERHEAD
        if self.some(0.25):
            spec["tolerations"] = [self._toleration() for _ in range(self.one(1, 2, 3))]
        affinity = self._pod_affinity(judged)
        if judged:
            if self.some(0.1):  # the first pod of a series with affinity to itself
                meta["labels"]["app"] = "new"
                term = {"topologyKey": self.one(*DOMAINS), "labelSelector": {"matchLabels": {"app": "new"}}}
                affinity["podAffinity"] = {_REQUIRED: [term]}
            if self.some(0.2):
                spec["nodeSelector"] = self.one({"disk": "ssd"}, {ZONE: "a"}, {"kind": "worker"}, {"gen": "5"})
            if self.some(0.3):
                affinity["nodeAffinity"] = self._node_affinity()
            if self.some(0.4):
                spec["topologySpreadConstraints"] = self._spread()
            if self.some(0.1):
                spec["volumes"] = [{"name": "v", "image": {"reference": self.one(*IMAGES)}}]
        if affinity:
            spec["affinity"] = affinity
        if self.some(0.25):
            kind, owner = self.one(*OWNERS), {"name": "own", "uid": "own", "controller": self.some(0.9)}
            meta["ownerReferences"] = [{"apiVersion": OWNERS[kind], "kind": kind, **owner}]
        return {"metadata": meta, "spec": spec}

    def _labels(self) -> dict[str, str]:
        labels = {"app": self.one(*"abc")}
        if self.some(0.6):
            labels["rev"] = self.one("1", "2")
        if self.some(0.3):
            labels["track"] = self.one("canary", "stable")
        return labels

    def _container(self, name: str) -> Wire:
        requests: dict[str, str] = {}
        if self.some(0.6):
            requests["cpu"] = self.one("0", "100m", "250m", "0.5", "1", "1500m", "1500u", "333m")
        if self.some(0.6):
            requests["memory"] = self.one("0", "64Mi", "1Gi", "1.5G", "123456789", "2Gi", "700M")
        if self.some(0.08):
            requests[DISK] = self.one("1Gi", "4Gi", "500M")
        limits = {}
        if self.some(0.12):
            limits[GPU] = self.one("1", "2")
        if self.some(0.05):
            limits[FPGA] = self.one("1", "0")
        image = self.one(*IMAGES, "alias.io/1", "alias.io/3:latest", "nobody/has-it")
        made: Wire = {"name": name, "image": image, "resources": {"requests": requests | limits, "limits": limits}}
        if self.some(0.08):
            port = {"hostPort": self.one(8080, 9090), "containerPort": 80, "protocol": self.one("TCP", "UDP")}
            address = self.one("", "127.0.0.1", "127.0.0.2", "0.0.0.0", "::")
            made["ports"] = [port | ({"hostIP": address} if address else {})]
        return made

    def _selector(self) -> Wire | None:
        if self.some(0.2):
            return self.one({}, None)
        if self.some(0.4):
            return {"matchLabels": {"app": self.one(*"abc")} | ({"rev": self.one("1", "2")} if self.some(0.2) else {})}
        wanted = self.one(
            {"key": "app", "operator": "In", "values": self.few("abc", 2)},
            {"key": "rev", "operator": "NotIn", "values": [self.one("1", "2")]},
            {"key": "track", "operator": "Exists"},
            {"key": "track", "operator": "DoesNotExist"},
        )
        more = [{"key": "app", "operator": "NotIn", "values": ["a"]}] if self.some(0.2) else []
        return {"matchExpressions": [wanted, *more]}

    def _folded(self, selector: Wire, *fields: str) -> Wire:
        """Return a field of label keys that the selector does not name."""
        keys = [key for key in ("rev", "track") if key not in str(selector)]
        return {self.one(*fields): [self.one(*keys)]} if keys and self.some(0.25) else {}

    def _pod_term(self, judged: bool) -> Wire:
        selector = self._selector()
        term: Wire = {"topologyKey": self.one(*DOMAINS)}
        if selector is not None:
            term |= {"labelSelector": selector} | self._folded(selector, "matchLabelKeys", "mismatchLabelKeys")
        if self.some(0.2):
            term["namespaces"] = self.few(list(NAMESPACES), 1, 2)
        if self.some(0.25):
            label = {"matchLabels": {"team": self.one("x", "y")}}
            gold = {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}
            others = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}
            # In a pod's own terms, kube-scheduler reads an unsatisfiable namespace selector as every namespace.
            term["namespaceSelector"] = self.one({}, label, gold, *([] if judged else [others]))
        return term

    def _pod_affinity(self, judged: bool) -> Wire:
        made: Wire = {}
        for name in ("podAffinity", "podAntiAffinity"):
            side: Wire = {}
            if self.some(0.17 if judged else 0.04):
                side[_REQUIRED] = [self._pod_term(judged) for _ in range(self.one(1, 1, 2))]
            if self.some(0.25 if judged else 0.12):
                side[_PREFERRED] = [
                    {"weight": self.one(1, 7, 29, 100), "podAffinityTerm": self._pod_term(judged)}
                    for _ in range(self.one(1, 2))
                ]
            if side:
                made[name] = side
        return made

    def _node_term(self) -> Wire:
        expressions = [
            self.one(
                {"key": "disk", "operator": "In", "values": self.few(["ssd", "hdd", "nvme"], 2)},
                {"key": "disk", "operator": "NotIn", "values": ["ssd"]},
                {"key": self.one("disk", "gen", RACK), "operator": self.one("Exists", "DoesNotExist")},
                {"key": "gen", "operator": "Gt", "values": [self.one("5", "06", "0", "12")]},
                {"key": "gen", "operator": "Lt", "values": [self.one("12", "6", "5", "9223372036854775807")]},
                {"key": ZONE, "operator": "In", "values": [self.one(*"abc")]},
            )
            for _ in range(self.one(0, 1, 1, 2))
        ]
        term: Wire = {"matchExpressions": expressions} if expressions else {}
        if not expressions or self.some(0.15):
            names = {"operator": self.one("In", "NotIn", "NotIn"), "values": [f"w{self.random.randrange(9)}"]}
            term["matchFields"] = [{"key": "metadata.name", **names}]
        return term

    def _node_affinity(self) -> Wire:
        made: Wire = {}
        if self.some(0.5):
            terms = [self._node_term() for _ in range(self.one(1, 2, 3))]
            if all("'In', 'values': ['w" in str(term) for term in terms):
                # If all terms name nodes, kube-scheduler filters only those; Volcano filters all nodes.
                terms.append({"matchExpressions": [{"key": "disk", "operator": "Exists"}]})
            made[_REQUIRED] = {"nodeSelectorTerms": terms}
        if self.some(0.7):
            made[_PREFERRED] = [
                {"weight": self.one(1, 10, 33, 100), "preference": self._node_term()} for _ in range(self.one(1, 2, 3))
            ]
        return made

    def _toleration(self) -> Wire:
        return self.one(
            {"operator": "Exists"},
            {"operator": "Exists", "effect": self.one("PreferNoSchedule", "NoSchedule")},
            {"key": "k", "operator": "Exists"},
            {"key": "k", "operator": "Equal", "value": "v"},
            {"key": "k", "value": "v", "effect": "NoSchedule"},
            {"key": "n", "operator": "Equal", "value": "5", "effect": "NoExecute"},
            {"key": "p", "operator": "Exists", "effect": "PreferNoSchedule"},
            {"key": "q", "value": "v"},
            {"key": "r", "operator": "Exists", "effect": "NoSchedule"},
            {"key": _CORDON, "operator": "Exists", "effect": "NoSchedule"},
        )

    def _spread(self) -> list[Wire]:
        made: dict[tuple[str, str], Wire] = {}
        for _ in range(self.one(1, 1, 2, 3)):
            key, what = self.one(*DOMAINS), self.one("DoNotSchedule", "ScheduleAnyway")
            one: Wire = {"topologyKey": key, "whenUnsatisfiable": what, "maxSkew": self.one(1, 1, 1, 2, 3)}
            selector = self._selector()
            if selector is not None:
                one |= {"labelSelector": selector} | self._folded(selector, "matchLabelKeys")
            if what == "DoNotSchedule" and self.some(0.5):
                one["minDomains"] = self.one(1, 2, 3, 5)
            for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
                if self.some(0.4):
                    one[policy] = self.one("Honor", "Ignore")
            made[key, what] = one
        return list(made.values())
