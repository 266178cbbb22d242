"""Random jobs, as users write them and as the webhook would let them pass."""

import random
from typing import Any, Final

Obj = dict[str, Any]

EVENTS: Final = ("PodFailed", "PodFailed", "PodEvicted", "PodEvicted", "TaskCompleted", "TaskFailed", "Unknown", "*")
ACTIONS: Final = (
    *("RestartJob", "RestartJob", "RestartTask", "RestartTask", "RestartPod", "RestartPod", "RestartPartition"),
    *("AbortJob", "TerminateJob", "CompleteJob", "SyncJob"),
)
EXIT_CODES: Final = (1, 2, 137)
NAME: Final = "j"


def a_random_job(rng: random.Random) -> Obj:
    """Return a job."""
    names = ("w", "ps", "m-1")[: rng.choice((1, 1, 2, 2, 3))]
    tasks = [_task(rng, name, names[:number]) for number, name in enumerate(names)]
    total = sum(task["replicas"] for task in tasks)
    spec: Obj = {"queue": "default", "schedulerName": "volcano", "tasks": tasks, "maxRetry": rng.choice((1, 2, 3, 5))}
    if rng.random() < 0.6:
        spec["minAvailable"] = rng.randint(1, max(1, total))
    if rng.random() < 0.2:
        spec["minSuccess"] = rng.randint(1, max(1, total))
    if rng.random() < 0.8:
        spec["policies"] = [_policy(rng) for _ in range(rng.choice((1, 1, 2)))]
    if rng.random() < 0.3:
        spec["plugins"] = {"svc": [], "env": []}
    if rng.random() < 0.1:
        spec["volumes"] = [{"mountPath": "/data", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}}]
    kind = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
    return {**kind, "metadata": {"name": NAME, "namespace": "default"}, "spec": spec, "status": {}}


def _task(rng: random.Random, name: str, before: tuple[str, ...]) -> Obj:
    task: Obj = {"name": name, "replicas": rng.choice((0, 1, 2, 2, 3, 4)), "template": a_template()}
    if rng.random() < 0.25:
        size, number = rng.choice((1, 2)), rng.choice((1, 2))
        task["replicas"] = size * number
        task["partitionPolicy"] = {"totalPartitions": number, "partitionSize": size, "minPartitions": number}
    elif rng.random() < 0.5:
        task["minAvailable"] = rng.randint(0, task["replicas"])
    if rng.random() < 0.5:
        task["policies"] = [_policy(rng) for _ in range(rng.choice((1, 1, 2)))]
    if rng.random() < 0.4:
        task["maxRetry"] = rng.choice((-1, 1, 2, 3))
    if before and rng.random() < 0.3:
        task["dependsOn"] = {"name": list(before), "iteration": rng.choice(("any", "all"))}
    return task


def _policy(rng: random.Random) -> Obj:
    policy: Obj = {"action": rng.choice(ACTIONS)}
    if rng.random() < 0.2:
        return {**policy, "exitCode": rng.choice(EXIT_CODES)}
    if rng.random() < 0.15:
        return {**policy, "event": "PodPending", "timeout": rng.choice(("5s", "30s"))}
    if rng.random() < 0.3:
        policy["events"] = sorted({rng.choice(EVENTS[:-1]) for _ in range(2)})
    else:
        policy["event"] = rng.choice(EVENTS)
    if rng.random() < 0.2:
        policy["timeout"] = rng.choice(("3s", "20s"))
    return policy


def a_template() -> Obj:
    """Return a pod template."""
    return {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}
