"""Random jobs in random states in which Volcano's controllers come to rest."""

from __future__ import annotations

import random
from typing import Any, Final

from tests.migration.volcano_job_kinds import KINDS, LONG, Obj, Pods, job, job_spec, on, task
from tests.migration.volcano_job_sync import acts
from tests.migration.volcano_workloads import STATES, Belongings, belongings

_EVENTS: Final = ("PodFailed", "PodEvicted", "Unknown", "TaskCompleted", "TaskFailed", "*", 1, 3, 137)
_ACTIONS: Final = (
    "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "AbortJob", "TerminateJob", "CompleteJob",
)  # fmt: skip


def random_spec(rng: random.Random) -> Obj:
    """Return a spec: one of the known kinds, or tasks, policies and plugins by chance."""
    pods = Pods(cpu=rng.choice(("100m", "0.5", "1")), memory=rng.choice(("64Mi", "1Gi")))
    if rng.random() < 0.3:
        return KINDS[rng.choice(list(KINDS))](pods)
    tasks = [
        _random_task(rng, name, pods) for name in rng.sample(("master", "worker", "data-loader"), rng.randint(1, 3))
    ]
    plugins: dict[str, list[str]] = {name: [] for name in ("svc", "env", "ssh") if rng.random() < 0.25}
    more: dict[str, Any] = {"plugins": plugins} if plugins else {}
    if rng.random() < 0.6:
        more["policies"] = _random_policies(rng)
    if rng.random() < 0.2:
        more["minSuccess"] = rng.randint(1, 2)
    spec = job_spec(tasks, maxRetry=rng.choice((1, 3, 6)), **more)
    total = sum(one["replicas"] for one in tasks)
    if rng.random() < 0.3:
        spec["minAvailable"] = rng.randint(1, total)
    return spec


def _random_task(rng: random.Random, name: str, pods: Pods) -> Obj:
    replicas = rng.randint(1, 4)
    found = task(name, replicas, pods, minimum=rng.choice((replicas, rng.randint(0, replicas))))
    if rng.random() < 0.3:
        found["template"]["spec"]["containers"].append({"name": "sidecar", "image": "busybox:1.36.1", "resources": {}})
    if rng.random() < 0.4:
        found["policies"] = _random_policies(rng)
    if replicas == 4 and rng.random() < 0.5:
        found["partitionPolicy"] = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 2}
        found["minAvailable"] = 4
    return found


def _random_policies(rng: random.Random) -> list[Obj]:
    chosen = rng.sample(_EVENTS, rng.randint(1, 3))
    if "*" in chosen:
        chosen = ["*"]
    return [on(event, rng.choice(_ACTIONS), rng.choice((None, None, LONG))) for event in chosen]


def random_codes(rng: random.Random, spec: Obj, name: str) -> dict[str, tuple[int, ...]]:
    """Return the exit codes of pods that have ended."""
    if rng.random() < 0.5:
        return {}
    found = {}
    for one in spec["tasks"]:
        for index in range(one["replicas"]):
            if rng.random() < 0.3:
                code = rng.choice(((0,), (0, 0), (1,), (3,), (0, 3), (0, 137)))
                found[f"{name}-{one['name']}-{index}"] = code
    return found


def rests(one: Obj, found: Belongings, phase: str) -> bool:
    """Say whether Volcano's controller would leave a job as it is."""
    looked = acts(one, [found.group] if found.group is not None else [], found.pods, {"default": {}})
    return not looked.restless and looked.phase == phase


def random_belongings(rng: random.Random, one: Obj, state: str | None = None) -> tuple[str, Belongings]:
    """Return a state and what belongs to a created job in it, such that Volcano would not go on by itself."""
    for _ in range(200):
        where = state or rng.choice(STATES)
        restarts = rng.choice((0, 0, 1, 2))
        found = belongings(
            one,
            where,
            lambda pod: "node-0",
            version=restarts,
            retries=min(restarts, one["spec"]["maxRetry"] - 1),
            ended=random_codes(rng, one["spec"], one["metadata"]["name"]) if where == "running" else None,
        )
        one = {**one, "status": found.status}
        if where != "running" or rests(one, found, "Running"):
            _vary(rng, found)
            return where, found
    raise AssertionError(f"no state of {one} in which Volcano rests")


def _vary(rng: random.Random, found: Belongings) -> None:
    """Add what Volcano's scheduler leaves behind by chance: an old condition, or the phase Unknown."""
    group = found.group
    if group is None or group["status"].get("phase") != "Running":
        return
    if rng.random() < 0.4:
        old = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "transitionID": "1",
               "message": "1/1 tasks in gang unschedulable", "lastTransitionTime": "2026-11-01T10:00:00Z"}  # fmt: skip
        group["status"]["conditions"].insert(0, old)


def random_job(rng: random.Random, name: str) -> Obj:
    """Return a job to create."""
    annotations = {"volcano.sh/preemptable": "true"} if rng.random() < 0.2 else {}
    return job(name, "default", random_spec(rng), annotations)
