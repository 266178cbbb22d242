"""An embedded API server that is full from the start: nodes, and gangs that run on them.

python -m benchmarks.populated NODES PODS SHAPES                  with room for more
python -m benchmarks.populated NODES PODS SHAPES JOBS K QUEUES    without room; JOBS gangs of K pods wait in QUEUES

It prints "serving on URL" when it serves.
"""

import asyncio
import sys
from typing import Any

from benchmarks.cluster import node_name, pod_body
from volcano_py.api import keys
from volcano_py.apiserver.options import ApiServerOptions
from volcano_py.apiserver.server import ApiServer
from volcano_py.local.manifests import definitions
from volcano_py.runtime.loop import loop_factory
from volcano_py.runtime.signals import Shutdown, shutdown_on_signals

GANG = 100
_SETTLES_S = 900.0
NAMESPACE = "running"
WAITING = "waiting"
PER_NODE = 16
"""Pods that fill a node, if gangs wait."""
_NODE_CPU = 64
API_VERSION = f"{keys.SCHEDULING_GROUP}/{keys.SCHEDULING_VERSION}"


def fill(server: ApiServer, nodes: int, pods: int, shapes: int) -> None:
    """Create all objects; pods have a realistic size of 3 KB and more, and ``shapes`` different requests."""
    for definition in definitions():
        server.create(definition)
    server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for number in range(nodes):
        server.create(_node(node_name(number)))
    for gang in range(-(-pods // GANG)):
        server.create(_group(f"gang-{gang}", NAMESPACE, keys.DEFAULT_QUEUE, GANG, "Running"))
    for number in range(pods):
        server.create(_pod(number, node_name(number % nodes), number % shapes))


def fill_queues(server: ApiServer, nodes: int, pods: int, shapes: int, jobs: int, k: int, queues: int) -> None:
    """Create nodes that gangs of k fill, and gangs of k that wait in turn in all queues."""
    for definition in definitions():
        server.create(definition)
    for namespace in (NAMESPACE, WAITING):
        server.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for number in range(nodes):
        server.create(_node(node_name(number)))
    names = [f"q{number}" for number in range(queues)] if queues > 1 else [keys.DEFAULT_QUEUE]
    for name in names:
        server.create(_queue(name))
    for gang in range(pods // k):
        server.create(_group(f"gang-{gang}", NAMESPACE, names[gang % queues], k, "Running"))
        for i in range(k):
            place = node_name((gang * k + i) // PER_NODE)
            server.create(_with_request(_pod(gang * k + i, place, 0, k), NAMESPACE, 0))
    for gang in range(jobs):
        server.create(_group(f"gang-{gang}", WAITING, names[gang % queues], k, "Inqueue"))
        for i in range(k):
            server.create(_with_request(_pod(gang * k + i, "", 0, k), WAITING, gang % shapes))


def _queue(name: str) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": {"weight": 1}}


def _with_request(pod: dict[str, Any], namespace: str, shape: int) -> dict[str, Any]:
    pod["metadata"]["namespace"] = namespace
    del pod["metadata"]["ownerReferences"]  # to an owner that is missing: the garbage collector would delete the pod
    requests = {"cpu": f"{_NODE_CPU * 1000 // PER_NODE - 5 * shape}m", "memory": "1Gi"}
    pod["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": {"memory": "2Gi"}}
    if not pod["spec"].get("nodeName"):
        pod["status"] = {"phase": "Pending"}
    return pod


def _node(name: str) -> dict[str, Any]:
    has = {"cpu": str(_NODE_CPU), "memory": "512Gi", "pods": "110", "ephemeral-storage": "100Gi"}
    conditions = [
        _condition(kind, "True" if kind == "Ready" else "False")
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [
        {"names": [f"registry.example/team/image-{i}@sha256:{i:064x}", f"registry.example/team/image-{i}:v1"]}
        | {"sizeBytes": 10**8 + i}
        for i in range(10)
    ]
    labels = {keys.LABEL_HOSTNAME: name, "topology.kubernetes.io/zone": f"zone-{int(name[-1]) % 3}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": f"cloud:///{name}"},
        "status": {"capacity": has, "allocatable": has, "conditions": conditions, "images": images},
    }


def _condition(kind: str, status: str) -> dict[str, str]:
    since = "2026-01-01T00:00:00Z"
    return {"type": kind, "status": status, "reason": f"Kubelet{kind}", "message": "", "lastTransitionTime": since}


def _group(name: str, namespace: str, queue: str, k: int, phase: str) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minMember": k, "queue": queue},
        "status": {"phase": phase, "running": k if phase == "Running" else 0},
    }


def _pod(number: int, node: str, shape: int, k: int = GANG) -> dict[str, Any]:
    gang, name = f"gang-{number // k}", f"gang-{number // k}-worker-{number % k}"
    body = pod_body(name, gang, node)
    body["apiVersion"], body["kind"] = "v1", "Pod"
    body["metadata"] |= {
        "namespace": NAMESPACE,
        "labels": {"app": gang, "volcano.sh/task-spec": "worker", "volcano.sh/job-name": gang},
        "ownerReferences": [
            {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": gang, "uid": f"{number // k:036d}"}
            | {"controller": True, "blockOwnerDeletion": True}
        ],
    }
    body["metadata"]["annotations"] |= {
        "volcano.sh/job-version": "0",
        "volcano.sh/template-uid": f"{gang}-worker",
        "volcano.sh/task-spec": "worker",
    }
    container = body["spec"]["containers"][0]
    # At most 1.1 CPU: ten or twenty of them on a node of 64 leave room for the gang that waits.
    requests = {"cpu": f"{100 + shape % 1000}m", "memory": f"{1024 + shape // 1000}Mi"}
    container["resources"] = {"requests": requests, "limits": {"memory": "2Gi"}}
    container |= {
        "command": ["python", "/workspace/train.py", "--data=/data", "--epochs=90", f"--rank={number % k}"],
        "env": [{"name": f"SETTING_{i}", "value": f"value-{i}"} for i in range(8)],
        "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
    }
    body["spec"] |= {
        "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
        "restartPolicy": "Never",
        "serviceAccountName": "default",
        "tolerations": [
            {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for what in ("not-ready", "unreachable")
        ],
    }
    body["status"] = {
        "phase": "Running",
        "conditions": [_condition(kind, "True") for kind in ("PodScheduled", "Initialized", "Ready")],
        "hostIP": "10.1.0.1",
        "podIP": f"10.2.{number // 250 % 250}.{number % 250}",
        "startTime": "2026-01-01T00:00:00Z",
        "containerStatuses": [
            {"name": "main", "ready": True, "restartCount": 0, "image": "none", "imageID": "sha256:" + "0" * 64}
            | {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
        ],
    }
    return body


async def _serve(nodes: int, pods: int, shapes: int, *waiting: int) -> None:
    shutdown = Shutdown()
    with shutdown_on_signals(shutdown):
        async with ApiServer(ApiServerOptions()) as server:
            if waiting:
                fill_queues(server, nodes, pods, shapes, *waiting)
            else:
                fill(server, nodes, pods, shapes)
            async with asyncio.timeout(_SETTLES_S):
                # The server processes each new object once in the background; that is not part of the measurement.
                while not server.settled:  # noqa: ASYNC110 - it has no event to wait for
                    await asyncio.sleep(0.1)
            print(f"serving on {server.url}", flush=True)
            await shutdown.graceful.wait()


def main() -> int:
    """Serve until a signal ends the process."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(*(int(argument) for argument in sys.argv[1:])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
