"""Random clusters for the API server, one per seed, and pods to judge on them."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from tests.e2e.control_plane import ControlPlane
from tests.e2e.random_pods import (
    DISK,
    FPGA,
    GPU,
    HOSTNAME,
    IMAGES,
    NAMESPACES,
    OVERHEAD,
    RACK,
    REGION,
    ZONE,
    Chance,
    Pods,
    Wire,
)
from volcano_py.api.quantity import parse_quantity

MIB: Final = 2**20
PODS: Final = "/api/v1/namespaces/{}/pods"
SERIES: Final = {
    "services": "/api/v1/namespaces/{}/services",
    "replicationcontrollers": "/api/v1/namespaces/{}/replicationcontrollers",
    "replicasets": "/apis/apps/v1/namespaces/{}/replicasets",
    "statefulsets": "/apis/apps/v1/namespaces/{}/statefulsets",
}
RUNTIME_CLASS: Final = {
    "metadata": {"name": OVERHEAD},
    "handler": "any",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "64Mi"}},
}
_MORE: Final = {"cpu": parse_quantity("1050m"), "memory": parse_quantity("164Mi"), "pods": 1}


@dataclass(frozen=True)
class RandomCluster:
    """What to create (paths and objects), later changes of some pods, and the pods to judge."""

    nodes: list[Wire]
    series: list[tuple[str, Wire]]
    standing: list[Wire]
    leaving: set[str]  # names of pods
    statuses: dict[str, Wire]
    judged: list[Wire]


def random_cluster(seed: int, n_judged: int) -> RandomCluster:
    """Return a cluster of 8 to 25 nodes, none of them overcommitted: Volcano would close an overcommitted node."""
    chance = Chance(Random(seed))
    pods = Pods(chance.random)
    nodes = [_node(f"w{number}", chance) for number in range(chance.random.randrange(8, 26))]
    room = {one["metadata"]["name"]: _amounts(one["status"]["allocatable"]) for one in nodes}
    standing, leaving, statuses = [], set(), {}
    for number in range(chance.random.randrange(10, 60)):
        pod = pods.pod(f"e{number}", judged=False)
        claims = _claims(pod)
        fitting = [name for name, has in room.items() if all(has.get(key, 0) >= claims[key] for key in claims)]
        if not fitting:
            continue
        node = chance.one(*fitting)
        room[node] = {key: amount - claims.get(key, 0) for key, amount in room[node].items()}
        pod["spec"]["nodeName"] = "gone" if chance.some(0.03) else node
        standing.append(pod)
        if chance.some(0.08):
            leaving.add(f"e{number}")
        elif chance.some(0.15):
            statuses[f"e{number}"] = chance.one({"phase": "Succeeded"}, _resized("Deferred"), _resized("Infeasible"))
    judged = [pods.pod(f"p{number}", judged=True) for number in range(n_judged)]
    return RandomCluster(nodes, _series(chance), standing, leaving, statuses, judged)


def create(plane: ControlPlane, cluster: RandomCluster) -> None:
    """Create a cluster's objects, except the pods to judge."""
    plane.cluster.create_all("/api/v1/nodes", cluster.nodes)
    for path, one in cluster.series:
        plane.request("POST", path, one)
    for namespace in NAMESPACES:
        pods = [pod for pod in cluster.standing if pod["metadata"]["namespace"] == namespace]
        plane.cluster.create_all(PODS.format(namespace), pods)
    for pod in cluster.standing:
        name = pod["metadata"]["name"]
        path = f"{PODS.format(pod['metadata']['namespace'])}/{name}"
        if name in cluster.leaving:
            plane.request("DELETE", path)
        if name in cluster.statuses:
            status, patch = {"status": cluster.statuses[name]}, "application/strategic-merge-patch+json"
            plane.request("PATCH", f"{path}/status", status, content_type=patch)


def remove(plane: ControlPlane) -> None:
    """Remove every node, and every pod and series of the namespaces."""
    plane.request("DELETE", "/api/v1/nodes")
    for namespace in NAMESPACES:
        plane.request("DELETE", f"{PODS.format(namespace)}?gracePeriodSeconds=0")
        for path in SERIES.values():
            plane.request("DELETE", f"{path.format(namespace)}?propagationPolicy=Background")


def _node(name: str, chance: Chance) -> Wire:
    labels = {"kind": "worker"}
    for share, key, *values in (
        (0.95, HOSTNAME, *[name] * 20, "w0"),
        (0.9, ZONE, *"abc"),
        (0.8, REGION, "N", "S"),
        (0.3, RACK, "1", "2", ""),
        (0.7, "disk", "ssd", "hdd", "nvme"),
        (0.8, "gen", "5", "12", "06", "abc", "", "9223372036854775807", "9223372036854775808", "7.0"),
    ):
        if chance.some(share):
            labels[key] = chance.one(*values)
    has = {
        "cpu": chance.one("4", "7900m", "16", "2", "3"),
        "memory": chance.one("8Gi", "16Gi", "15.5G", "33333333333", "3Gi", "64Gi"),
        "pods": chance.one("2", "5", "20", "110", "110", "110"),
    }
    for share, key, *values in ((0.4, GPU, "8", "4", "1"), (0.3, FPGA, "5"), (0.5, DISK, "10Gi")):
        if chance.some(share):
            has[key] = chance.one(*values)
    if chance.some(0.04):
        has[chance.one("cpu", "memory", "pods")] = "0"
    taints = [
        *((0.07, "k", "NoSchedule"), (0.07, "k", "NoExecute"), (0.07, "n", "NoExecute")),
        *((0.25, key, "PreferNoSchedule") for key in "pqrs"),
    ]
    images = list(IMAGES.items())
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "unschedulable": chance.some(0.07),
            "taints": [
                {"key": key, "value": chance.one("v", "5", ""), "effect": effect}
                for share, key, effect in taints
                if chance.some(share)
            ],
        },
        "status": {
            "allocatable": has,
            "capacity": has,
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [
                {"names": _names(number, image), "sizeBytes": int(size * MIB)}
                for number, (image, size) in enumerate(images)
                if chance.some(0.4)
            ],
        },
    }


def _names(number: int, image: str) -> list[str]:
    tagged = image if ":" in image.rpartition("/")[2] else f"{image}:latest"
    return [tagged, f"alias.io/{number}:latest"] if number % 2 else [tagged]


def _resized(reason: str) -> Wire:
    """Return the status of a pod with an in-place resize of its first container and of the whole pod."""
    has: dict[str, Any] = {
        "resources": {"requests": {"cpu": "700m", "memory": "100Mi"}},
        "allocatedResources": {"cpu": "800m", "memory": "50Mi"},
    }
    container = {"name": "c0", "image": "any", "imageID": "", "ready": True, "restartCount": 0}
    condition = {"type": "PodResizePending", "status": "True", "reason": reason}
    return {"phase": "Running", "containerStatuses": [container | has], "conditions": [condition], **has}


def _series(chance: Chance) -> list[tuple[str, Wire]]:
    made: list[tuple[str, Wire]] = []
    for namespace in NAMESPACES:
        for number in range(chance.one(0, 1, 2)):
            selector = chance.one({"app": "a"}, {"app": "b"}, {"track": "canary"})
            spec = {"clusterIP": "None", "selector": selector}
            made.append((SERIES["services"].format(namespace), {"metadata": {"name": f"s{number}"}, "spec": spec}))
        pod = {"metadata": {"labels": {"app": "a", "rev": "1"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        some = {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "rev", "operator": "Exists"}]}
        for kind, spec in (
            ("replicationcontrollers", {"selector": {"app": "a"}}),
            ("replicasets", {"selector": some}),
            ("statefulsets", {"selector": {"matchLabels": {"rev": "1"}}, "serviceName": "any"}),
        ):
            if chance.some(0.7):
                body = {"metadata": {"name": "own"}, "spec": {**spec, "template": pod}}
                made.append((SERIES[kind].format(namespace), body))
    return made


def _amounts(quantities: dict[str, str]) -> dict[str, Any]:
    return {name: parse_quantity(amount) for name, amount in quantities.items()}


def _claims(pod: Wire) -> dict[str, Any]:
    """Return an upper bound of what a pod requests at any time."""
    spec, total = pod["spec"], dict(_MORE)
    containers = [*spec["containers"], *spec.get("initContainers", ())]
    for one in (*(container["resources"] for container in containers), spec.get("resources", {"requests": {}})):
        for name, amount in _amounts(one["requests"]).items():
            total[name] = total.get(name, 0) + amount
    return total
