"""Jobs of many kinds as they stand on an API server that Volcano's webhooks guard: every default is filled in.

Written from what Volcano documents and does, without the code of our controllers: what that misreads, this must not
misread in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

Obj = dict[str, Any]

BATCH: Final = "batch.volcano.sh/v1alpha1"
SCHEDULING: Final = "scheduling.volcano.sh/v1beta1"
FOR_EVER: Final = ("sleep", "infinity")
LONG: Final = "1h0m0s"
"""A timeout of policies that no test waits for."""


@dataclass(frozen=True)
class Pods:
    """What the pods of a job ask for and do."""

    cpu: str = "100m"
    memory: str = "64Mi"
    command: tuple[str, ...] = FOR_EVER
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Obj, ...] = ()

    def template(self, container: str = "main", **container_fields: Any) -> Obj:
        """Return a pod template with one container."""
        requests = {"cpu": self.cpu, "memory": self.memory}
        spec: Obj = {
            "restartPolicy": "Never",
            "containers": [
                {
                    "name": container,
                    "image": "busybox:1.36.1",
                    "command": list(self.command),
                    "resources": {"requests": requests},
                    **container_fields,
                }
            ],
        }
        if self.selector:
            spec["nodeSelector"] = dict(self.selector)
        if self.tolerations:
            spec["tolerations"] = [dict(one) for one in self.tolerations]
        return {"metadata": {}, "spec": spec}


def task(name: str, replicas: int, pods: Pods, minimum: int | None = None, **more: Any) -> Obj:
    """Return a task as the webhook leaves it: with its minimum and its retries."""
    return {
        "name": name,
        "replicas": replicas,
        "minAvailable": replicas if minimum is None else minimum,
        "maxRetry": 3,
        "template": pods.template(),
        **more,
    }


def job_spec(tasks: Sequence[Obj], **more: Any) -> Obj:
    """Return the spec of a job as the webhook leaves it."""
    return {
        "schedulerName": "volcano",
        "queue": "default",
        "maxRetry": 3,
        "minAvailable": sum(one["minAvailable"] for one in tasks),
        "tasks": list(tasks),
        **more,
    }


def on(event: str | int, action: str, timeout: str | None = None) -> Obj:
    """Return a policy for an event or an exit code."""
    found: Obj = {"action": action}
    found["exitCode" if isinstance(event, int) else "event"] = event
    return found if timeout is None else {**found, "timeout": timeout}


def plain(pods: Pods) -> Obj:
    """A task of three pods."""
    return job_spec([task("worker", 3, pods)])


def policies(pods: Pods) -> Obj:
    """Policies of the job and of a task, some of which wait."""
    return job_spec(
        [task("driver", 1, pods, policies=[on("TaskCompleted", "CompleteJob")]), task("worker", 2, pods)],
        policies=[on("PodEvicted", "RestartJob", LONG), on(3, "RestartJob"), on("PodPending", "AbortJob", LONG)],
        maxRetry=5,
    )


def restart_on_eviction(pods: Pods) -> Obj:
    """Every lost pod restarts the job."""
    return job_spec([task("worker", 2, pods)], policies=[on("PodEvicted", "RestartJob"), on("PodFailed", "RestartJob")])


def elastic(pods: Pods) -> Obj:
    """Two of four pods are enough."""
    return job_spec([task("worker", 4, pods, minimum=2)], minAvailable=2)


def services(pods: Pods) -> Obj:
    """The plugins svc, env and ssh."""
    tasks = [task("master", 1, pods), task("data-worker", 2, pods)]
    return job_spec(tasks, plugins={"svc": [], "env": [], "ssh": []})


def pytorch(pods: Pods) -> Obj:
    """The plugin pytorch; the webhook has added svc."""
    arguments = ["--master=master", "--worker=worker", "--port=23456"]
    return job_spec([task("master", 1, pods), task("worker", 2, pods)], plugins={"pytorch": arguments, "svc": []})


def tensorflow(pods: Pods) -> Obj:
    """The plugin tensorflow; the webhook has added svc."""
    arguments = ["--ps=ps", "--worker=worker", "--port=2222"]
    return job_spec([task("ps", 1, pods), task("worker", 2, pods)], plugins={"tensorflow": arguments, "svc": []})


def mpi(pods: Pods) -> Obj:
    """The plugin mpi; the webhook has added svc and ssh."""
    master = task("master", 1, pods, policies=[on("TaskCompleted", "CompleteJob")])
    plugins = {"mpi": ["--master=master", "--worker=worker", "--port=22"], "svc": [], "ssh": []}
    return job_spec([master, task("worker", 2, pods)], plugins=plugins)


def dependent(pods: Pods) -> Obj:
    """A task that waits for another one and does not count for the gang, since Volcano would never start it else."""
    waits = task("executor", 2, pods, minimum=0, dependsOn={"name": ["driver"], "iteration": "all"})
    return job_spec([task("driver", 1, pods), waits], minAvailable=1)


def with_claims(pods: Pods) -> Obj:
    """A claim that Volcano has named and created."""
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"mountPath": "/data", "volumeClaimName": "generated-pvc-0a1b2c3d4e5f", "volumeClaim": claim}
    return job_spec([task("worker", 2, pods)], volumes=[volume])


def partitions(pods: Pods) -> Obj:
    """Two partitions of two pods."""
    policy = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 2}
    restart = [on("PodFailed", "RestartPartition")]
    return job_spec([task("worker", 4, pods, partitionPolicy=policy, policies=restart)])


def with_ttl(pods: Pods) -> Obj:
    """A job that is deleted long after its end."""
    return job_spec([task("worker", 2, pods)], ttlSecondsAfterFinished=100_000)


def min_success(pods: Pods) -> Obj:
    """One success is enough."""
    return job_spec([task("worker", 3, pods)], minSuccess=1)


def limited(pods: Pods) -> Obj:
    """Limits as well as requests, in units that quantities are not kept in."""
    resources = {"requests": {"cpu": "0.25", "memory": "1024Mi"}, "limits": {"cpu": "1500m", "memory": "2048Mi"}}
    one = task("worker", 2, pods)
    one["template"] = pods.template(resources=resources)
    return job_spec([one])


KINDS: Final[Mapping[str, Callable[[Pods], Obj]]] = {
    "plain": plain,
    "policies": policies,
    "evictions": restart_on_eviction,
    "elastic": elastic,
    "services": services,
    "pytorch": pytorch,
    "tensorflow": tensorflow,
    "mpi": mpi,
    "dependent": dependent,
    "claims": with_claims,
    "partitions": partitions,
    "ttl": with_ttl,
    "success": min_success,
    "limited": limited,
}
"""Specs by name."""


def job(name: str, namespace: str, spec: Obj, annotations: Mapping[str, str] | None = None) -> Obj:
    """Return a job to create; the claim that Volcano generated for it has the name of the job in its own."""
    volumes = [
        {**one, "volumeClaimName": one["volumeClaimName"].replace("generated", name)} for one in spec.get("volumes", ())
    ]
    return {
        "apiVersion": BATCH,
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, "annotations": dict(annotations or {})},
        "spec": {**spec, **({"volumes": volumes} if volumes else {})},
    }


def owner(job: Obj) -> Obj:
    """Return the reference that all objects of a job carry."""
    meta = job["metadata"]
    return {
        "apiVersion": BATCH,
        "kind": "Job",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
