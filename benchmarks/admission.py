"""Admission: jobs that many clients create, without webhooks and with all of them, on the real API server.

The halves are in the order A-B-B-A: the API server becomes slower while its store grows, and the machine is noisy.
"""

import asyncio
import itertools
import re
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from benchmarks.cluster import in_turns
from benchmarks.servers import cpu_seconds
from tests.controlplane.install import install
from tests.e2e.control_plane import ControlPlane
from tests.e2e.webhooks import Webhooks
from volcano_py.api import keys
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import load_credentials
from volcano_py.kube.resource import QUEUES, VCJOBS

_QUEUE = "admitted"
_WARM_UP = 200
_SETTLED_S = 3.0  # the webhooks wait a second before they believe their watches
_PATHS = {"/jobs/mutate": "mutatejob.volcano.sh", "/jobs/validate": "validatejob.volcano.sh"}
_BUCKET = re.compile(r"^(\w+)_bucket\{(.*)\} (\S+)$", re.MULTILINE)
_REVIEWS = "volcano_py_admission_review_seconds"
_CALLS = "apiserver_admission_webhook_admission_duration_seconds"

Edges = Counter[float]
"""How many took at most so many seconds."""


def run(workload: dict[str, Any]) -> list[dict[str, Any]]:
    """Measure the cases of the workload."""
    return [row for case in workload["cases"] for row in _case(case)]


def _case(case: dict[str, Any]) -> list[dict[str, Any]]:
    with ControlPlane() as plane:
        install(plane.cluster)
        hooks = Webhooks(plane, "--leader-elect=false")
        names = (f"job-{number}" for number in itertools.count())
        rates: dict[bool, list[float]] = {False: [], True: []}
        seen: dict[str, tuple[Edges, Edges]] = {path: (Counter(), Counter()) for path in _PATHS}
        spent_s = 0.0
        _open_queue(plane)
        _create(plane, names, _WARM_UP, case["clients"])
        for _ in range(case["rounds"]):
            for guarded in (False, True, True, False):
                count = case["jobs"] // case["rounds"] // 2
                if not guarded:
                    rates[False].append(_create(plane, names, count, case["clients"]))
                    continue
                hooks.start().install()
                time.sleep(_SETTLED_S)
                before, cpu = _edges(hooks, plane), cpu_seconds(hooks.pid())
                rates[True].append(_create(plane, names, count, case["clients"]))
                spent_s += cpu_seconds(hooks.pid()) - cpu
                for path, (reviews, calls) in _edges(hooks, plane).items():
                    seen[path][0].update(reviews - before[path][0])
                    seen[path][1].update(calls - before[path][1])
                hooks.uninstall()
                hooks.stop()
        return _rows(case, rates, seen, spent_s)


def _rows(
    case: dict[str, Any],
    rates: dict[bool, list[float]],
    seen: dict[str, tuple[Edges, Edges]],
    spent_s: float,
) -> list[dict[str, Any]]:
    without, with_ = statistics.mean(rates[False]), statistics.mean(rates[True])
    rows: list[dict[str, Any]] = [
        {
            "path": path,
            "p99_ms": _quantile_ms(reviews, 0.99),
            "within_10_ms": round(reviews[0.01] / reviews[float("inf")], 4),
            "within_100_ms": round(calls[0.1] / calls[float("inf")], 4),
        }
        for path, (reviews, calls) in seen.items()
    ]
    total = {
        "path": "all",
        "ratio": round(with_ / without, 2),
        "without": [round(rate) for rate in rates[False]],
        "with": [round(rate) for rate in rates[True]],
        "cpu_ms_per_job": round(spent_s / case["jobs"] * 1000, 2),
    }
    return [*rows, total]


def _quantile_ms(edges: Edges, share: float) -> float:
    """Return the upper edge of the bucket that holds this quantile, in milliseconds."""
    return min(edge for edge, count in edges.items() if count >= share * edges[float("inf")]) * 1000


def _open_queue(plane: ControlPlane) -> None:
    head = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "metadata": {"name": _QUEUE}}
    plane.request("POST", QUEUES.collection(""), {**head, "spec": {"weight": 1}})
    state = {"status": {"state": keys.QUEUE_OPEN}}
    path = QUEUES.item(_QUEUE, "", "status")
    plane.request("PATCH", path, state, content_type="application/merge-patch+json")


def _create(plane: ControlPlane, names: Iterator[str], count: int, clients: int) -> float:
    """Create jobs and return how many were created per second."""

    async def create() -> float:
        credentials = await load_credentials(kubeconfig=str(plane.kubeconfig))
        async with ApiClient(credentials, connections=clients) as client:

            async def one(name: str) -> None:
                await client.create(VCJOBS, _job(name), dict, namespace="default")

            started = time.perf_counter()
            await in_turns(itertools.islice(names, count), one, clients)
            return count / (time.perf_counter() - started)

    return asyncio.run(create())


def _job(name: str) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1"}]}}
    tasks = [{"name": "worker", "replicas": 1, "template": template}]
    head = {"apiVersion": VCJOBS.api_version, "kind": VCJOBS.kind, "metadata": {"name": name}}
    return {**head, "spec": {"queue": _QUEUE, "tasks": tasks}}


def _edges(hooks: Webhooks, plane: ControlPlane) -> dict[str, tuple[Edges, Edges]]:
    """Return what the webhooks and the API server have measured so far, by path."""
    ours, theirs = hooks.metrics(), plane.request("GET", "/metrics")
    return {
        path: (_buckets(ours, _REVIEWS, f'path="{path}"'), _buckets(theirs, _CALLS, f'name="{name}"'))
        for path, name in _PATHS.items()
    }


def _buckets(text: str, metric: str, label: str) -> Edges:
    found: Edges = Counter()
    for name, labels, value in _BUCKET.findall(text):
        if name == metric and label in labels:
            (edge,) = re.findall(r'le="(.*?)"', labels)
            found[float(edge)] += int(float(value))
    return found
