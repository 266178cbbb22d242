"""What belongs to a job, as Volcano's controllers and scheduler leave it: status, PodGroup, pods, objects of plugins.

`belongings` is for every state in which Volcano may be stopped. Nothing here uses the code of our own controllers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Final

from tests.migration.volcano_job_kinds import SCHEDULING, Obj, owner
from tests.migration.volcano_plugin_objects import plugin_objects

STATES: Final = (
    "pending-without-pods",
    "pending-with-pods",
    "running",
    "restarting",
    "aborting",
    "aborted",
    "terminating",
    "terminated",
    "completing",
    "completed",
    "failed",
)
"""Where Volcano's controllers may leave a job."""

FINISHED: Final = ("completed", "failed", "terminated")
_DYING: Final = ("restarting", "aborting", "terminating", "completing")
_OUT_OF_SYNC: Final = "volcano.sh/controller-out-of-sync"
_MEBI: Final = 1024 * 1024
Node = Callable[[Obj], str]
Codes = tuple[int, ...]


@dataclass
class Belongings:
    """What exists because of a job, besides the job."""

    status: Obj
    group: Obj | None = None
    pods: list[Obj] = field(default_factory=list)
    """With their status; those in `dying` are to be deleted after they were created."""
    objects: list[Obj] = field(default_factory=list)
    """Of plugins, and claims."""
    dying: frozenset[str] = frozenset()


def time_text(moment: datetime) -> str:
    """Return a time as Go's metav1.Time writes it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def group_name(job: Obj) -> str:
    """Return the name of the PodGroup of a job."""
    return f"{job['metadata']['name']}-{job['metadata']['uid']}"


def belongings(
    job: Obj,
    state: str,
    node: Node,
    *,
    version: int = 0,
    retries: int = 0,
    ended: Mapping[str, Codes] | None = None,
    now: datetime | None = None,
) -> Belongings:
    """Return what belongs to a created job in a state of `STATES`.

    ``version`` and ``retries`` are what the job counted before it came into this state. ``ended`` has the exit codes
    of the containers of pods that have ended, by name of the pod. ``node`` chooses the node of a pod.
    """
    if state in _DYING or state in FINISHED or state == "aborted":
        version += 1
    if state == "restarting":
        retries += 1
    since = (now or datetime.now(UTC)) - timedelta(minutes=5)
    makes = _Maker(job, state, node, version, retries, dict(ended or {}), since)
    return makes.all()


@dataclass
class _Maker:
    job: Obj
    state: str
    node: Node
    version: int
    retries: int
    ended: dict[str, Codes]
    since: datetime

    def all(self) -> Belongings:
        pods = list(self._pods())
        dying = frozenset(pod["metadata"]["name"] for pod in pods) if self.state in _DYING else frozenset()
        found = Belongings(self._status(pods), pods=pods, dying=dying)
        if self.state in ("pending-without-pods", "pending-with-pods", "running"):
            found.group = self._group(pods)
            found.objects = list(plugin_objects(self.job))
        found.objects += list(self._claims())
        return found

    # Pods

    def _pods(self) -> Iterator[Obj]:
        if self.state in ("pending-without-pods", "aborted", "terminated"):
            return
        for task in self.job["spec"]["tasks"]:
            if self.state == "pending-with-pods" and task.get("dependsOn"):
                continue
            for index in range(task["replicas"]):
                yield self._pod(task, index)

    def _pod(self, task: Obj, index: int) -> Obj:
        pod = pod_of(self.job, task, index, self._version_of_pods(), self.retries)
        name = pod["metadata"]["name"]
        if self.state in _DYING:
            pod["metadata"]["annotations"][_OUT_OF_SYNC] = "true"
        if self.state == "pending-with-pods":
            pod["status"] = _unschedulable(self.since)
            return pod
        pod["spec"]["nodeName"] = self.node(pod)
        codes = self.ended.get(name, {"completed": (0,), "failed": (1,)}.get(self.state))
        pod["status"] = _running(pod, self.since) if codes is None else _ended(pod, codes, self.since)
        return pod

    def _version_of_pods(self) -> int:
        return self.version - 1 if self.state in _DYING or self.state in FINISHED else self.version

    # Status

    def _status(self, pods: list[Obj]) -> Obj:
        phase = "Pending" if self.state.startswith("pending") else self.state.capitalize()
        moment = time_text(self.since)
        before = {"Pending": [], "Running": ["Pending"]}.get(phase, ["Pending", "Running"])
        if phase in ("Aborted", "Terminated"):
            before = [*before, {"Aborted": "Aborting", "Terminated": "Terminating"}[phase]]
        status: Obj = {
            "state": {"phase": phase, "lastTransitionTime": moment},
            "minAvailable": self.job["spec"]["minAvailable"],
            "conditions": [{"status": one, "lastTransitionTime": moment} for one in (*before, phase)],
        }
        status |= {name: value for name, value in (("version", self.version), ("retryCount", self.retries)) if value}
        if self.state in _DYING:
            status["terminating"] = len(pods)
        if phase not in ("Pending", "Running"):
            status["runningDuration"] = "5m0s"
        if phase in ("Pending", "Running"):
            status |= counters(pods)
            notes = {f"plugin-{name}": name for name in self.job["spec"].get("plugins", {}) if name != "hcclrank"}
            notes |= {f"volume-pvc-{name}": name for name in _claim_names(self.job)}
        else:  # a kill takes the counters of all pods and the notes of plugins away
            notes = {f"volume-pvc-{name}": name for name in _claim_names(self.job)}
        return {**status, **({"controlledResources": notes} if notes else {})}

    # PodGroup

    def _group(self, pods: list[Obj]) -> Obj:
        group = group_of(self.job)
        if self.state == "running":
            group["status"] = {
                "phase": "Running",
                "conditions": [_condition("Scheduled", "tasks in gang are ready to be scheduled", "", self.since)],
                **{name: count for name, count in counters(pods).items() if name in ("running", "succeeded", "failed")},
            }
        elif self.state == "pending-with-pods":
            text = f"{len(pods)}/{len(pods)} tasks in gang unschedulable: pod group is not ready, {len(pods)} Pending."
            group["status"] = {
                "phase": "Inqueue",
                "conditions": [_condition("Unschedulable", "NotEnoughResources", text, self.since)],
            }
        else:
            group["status"] = {"phase": "Pending"}
        return group

    def _claims(self) -> Iterator[Obj]:
        for volume in self.job["spec"].get("volumes", ()):
            yield {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {**_meta(self.job, volume["volumeClaimName"]), "ownerReferences": [owner(self.job)]},
                "spec": volume["volumeClaim"],
            }


def counters(pods: list[Obj]) -> Obj:
    """Return the counters of a status that was written by a sync of the job."""
    found: Obj = {}
    by_task: dict[str, Obj] = {}
    for pod in pods:
        phase = pod["status"]["phase"]
        found[phase.lower()] = found.get(phase.lower(), 0) + 1
        phases = by_task.setdefault(pod["metadata"]["annotations"]["volcano.sh/task-spec"], {"phase": {}})["phase"]
        phases[phase] = phases.get(phase, 0) + 1
    return {**found, **({"taskStatusCount": by_task} if by_task else {})}


def _claim_names(job: Obj) -> list[str]:
    return [one["volumeClaimName"] for one in job["spec"].get("volumes", ())]


def _meta(job: Obj, name: str) -> Obj:
    return {"name": name, "namespace": job["metadata"]["namespace"]}


def _condition(kind: str, reason: str, message: str, since: datetime) -> Obj:
    found = {
        "type": kind,
        "status": "True",
        "transitionID": "8f6f3f0e-5a35-4b6b-9a7e-3f6d0b1f7c11",
        "lastTransitionTime": time_text(since),
        "reason": reason,
    }
    return {**found, "message": message} if message else found


# Pods


def pod_of(job: Obj, task: Obj, index: int, version: int, retries: int) -> Obj:
    """Return a pod as Volcano's job controller and its plugins create it."""
    meta, spec, name = job["metadata"], job["spec"], task["name"]
    given = task["template"].get("metadata") or {}
    body = json.loads(json.dumps(task["template"]["spec"]))
    body.setdefault("schedulerName", spec["schedulerName"])
    if spec.get("priorityClassName"):
        body.setdefault("priorityClassName", spec["priorityClassName"])
    both = {
        "volcano.sh/job-name": meta["name"],
        "volcano.sh/task-spec": name,
        "volcano.sh/task-index": str(index),
        "volcano.sh/queue-name": spec["queue"],
    }
    only = {
        "scheduling.k8s.io/group-name": group_name(job),
        "volcano.sh/job-version": str(version),
        "volcano.sh/job-retry-count": str(retries),
        "volcano.sh/template-uid": f"{meta['name']}-{name}",
    }
    annotations = {**(given.get("annotations") or {}), **both, **only}
    if (preemptable := (meta.get("annotations") or {}).get("volcano.sh/preemptable")) is not None:
        annotations["volcano.sh/preemptable"] = preemptable
    labels = {**(given.get("labels") or {}), **both, "volcano.sh/job-namespace": meta["namespace"]}
    if policy := task.get("partitionPolicy"):
        labels["volcano.sh/partition-id"] = str(index // policy["partitionSize"])
    for volume in spec.get("volumes", ()):
        claim, inner = volume["volumeClaimName"], f"{meta['name']}-7h2k9q4m1x0z"
        body.setdefault("volumes", []).append({"name": inner, "persistentVolumeClaim": {"claimName": claim}})
        for container in body["containers"]:
            container.setdefault("volumeMounts", []).append({"name": inner, "mountPath": volume["mountPath"]})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **_meta(job, f"{meta['name']}-{name}-{index}"),
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner(job)],
        },
        "spec": body,
    }
    _customize(pod, job, task, index)
    return pod


def _customize(pod: Obj, job: Obj, task: Obj, index: int) -> None:
    name, spec = job["metadata"]["name"], job["spec"]
    plugins = spec.get("plugins") or {}
    body = pod["spec"]
    hosts = {one["name"]: [f"{name}-{one['name']}-{i}.{name}" for i in range(one["replicas"])] for one in spec["tasks"]}
    env: list[Obj] = []
    if "env" in plugins:
        env += [{"name": key, "value": str(index)} for key in ("VK_TASK_INDEX", "VC_TASK_INDEX")]
    if "svc" in plugins:
        body["hostname"], body["subdomain"] = pod["metadata"]["name"], name
        for one in spec["tasks"]:
            for suffix in ("HOSTS", "NUM"):
                key = f"VC_{one['name'].upper().replace('-', '_')}_{suffix}"
                env.append({"name": key, "valueFrom": {"configMapKeyRef": {"name": f"{name}-svc", "key": key}}})
        _mount(body, {"name": f"{name}-svc", "configMap": {"name": f"{name}-svc"}}, {"mountPath": "/etc/volcano"})
    if "ssh" in plugins:
        files = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
        items = [{"key": one, "path": f".ssh/{one}"} for one in files]
        secret = {"secretName": f"{name}-ssh", "items": items, "defaultMode": 0o600}
        _mount(body, {"name": f"{name}-ssh", "secret": secret}, {"mountPath": "/root/.ssh", "subPath": ".ssh"})
    if "pytorch" in plugins:
        rank = 0 if task["name"] == "master" else index + 1
        size = sum(one["replicas"] for one in spec["tasks"])
        values = {"MASTER_ADDR": hosts["master"][0], "MASTER_PORT": 23456, "WORLD_SIZE": size, "RANK": rank}
        env += [{"name": key, "value": str(value)} for key, value in values.items()]
    if "tensorflow" in plugins:
        cluster = {role: [f"{host}:2222" for host in hosts[role]] for role in ("ps", "worker")}
        value = json.dumps({"cluster": cluster, "task": {"type": task["name"], "index": index}})
        env.append({"name": "TF_CONFIG", "value": value})
    if "mpi" in plugins and task["name"] == "master":
        env.append({"name": "MPI_HOST", "value": ",".join(hosts["worker"])})
    if env:
        for container in body["containers"]:
            container["env"] = [*container.get("env", ()), *env]


def _mount(body: Obj, volume: Obj, mount: Obj) -> None:
    body.setdefault("volumes", []).append(volume)
    for container in body["containers"]:
        container.setdefault("volumeMounts", []).append({"name": volume["name"], **mount})


def _unschedulable(since: datetime) -> Obj:
    text = "0/4 nodes are unavailable: 4 Insufficient cpu."
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": time_text(since),
        "reason": "Unschedulable",
        "message": text,
    }
    return {"phase": "Pending", "conditions": [condition], "qosClass": "Burstable"}


def _running(pod: Obj, since: datetime) -> Obj:
    moment = time_text(since)
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "conditions": [{"type": one, "status": "True", "lastTransitionTime": moment} for one in kinds],
        "startTime": moment,
        "podIP": "10.244.0.7",
        "podIPs": [{"ip": "10.244.0.7"}],
        "qosClass": "Burstable",
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "containerID": "containerd://0",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": moment}},
            }
            for container in pod["spec"]["containers"]
        ],
    }


def _ended(pod: Obj, codes: Codes, since: datetime) -> Obj:
    """Return the status of a pod whose containers ended with these codes; those without one ended well."""
    status = _running(pod, since)
    status["phase"] = "Failed" if any(codes) else "Succeeded"
    moment = time_text(since)
    for container, code in zip_longest(status["containerStatuses"], codes[: len(status["containerStatuses"])]):
        ended = {
            "exitCode": code or 0,
            "reason": "Error" if code else "Completed",
            "startedAt": moment,
            "finishedAt": moment,
        }
        container |= {"ready": False, "started": False, "state": {"terminated": ended}}
    for condition in status["conditions"]:
        if condition["type"].endswith("Ready"):
            condition |= {"status": "False", "reason": "PodCompleted"}
    return status


# PodGroups


def group_of(job: Obj) -> Obj:
    """Return the PodGroup of a job as Volcano's job controller creates it."""
    meta, spec = job["metadata"], job["spec"]
    body: Obj = {
        "minMember": spec["minAvailable"],
        "minTaskMember": {task["name"]: _least(task) for task in spec["tasks"]},
        "queue": spec["queue"],
        "minResources": _min_resources(spec),
    }
    if spec.get("priorityClassName"):
        body["priorityClassName"] = spec["priorityClassName"]
    policies = [_sub_group(task) for task in spec["tasks"] if task.get("partitionPolicy")]
    if policies:
        body["subGroupPolicy"] = policies
    return {
        "apiVersion": SCHEDULING,
        "kind": "PodGroup",
        "metadata": {
            **_meta(job, group_name(job)),
            "annotations": dict(meta.get("annotations") or {}),
            "labels": dict(meta.get("labels") or {}),
            "ownerReferences": [owner(job)],
        },
        "spec": body,
        "status": {},
    }


def _least(task: Obj) -> int:
    minimum = task.get("minAvailable")
    return int(task["replicas"] if minimum is None else minimum)


def _sub_group(task: Obj) -> Obj:
    policy = task["partitionPolicy"]
    return {
        "name": task["name"],
        "subGroupSize": policy["partitionSize"],
        "minSubGroups": policy["minPartitions"],
        "labelSelector": {"matchLabels": {"volcano.sh/task-spec": task["name"]}},
        "matchLabelKeys": ["volcano.sh/partition-id"],
    }


def _min_resources(spec: Obj) -> Obj:
    """Return what the least number of pods needs, in Go's canonical quantities."""
    left, taken = spec["minAvailable"], {}
    below = left < sum(_least(task) for task in spec["tasks"])
    for task in spec["tasks"]:
        taken[task["name"]] = min(task["replicas"] if below else _least(task), left)
        left -= taken[task["name"]]
    for task in spec["tasks"]:
        more = min(task["replicas"] - taken[task["name"]], left)
        taken[task["name"]] += more
        left -= more
    total: dict[str, int] = {}
    for task in spec["tasks"]:
        for key, amount in _usage(task["template"]["spec"]).items():
            total[key] = total.get(key, 0) + amount * taken[task["name"]]
    return {key: _canonical(key, amount) for key, amount in sorted(total.items()) if any(taken.values())}


def _usage(pod: Obj) -> dict[str, int]:
    found = {"pods": 1, "count/pods": 1}
    for container in pod["containers"]:
        resources = container.get("resources") or {}
        for kind, prefixes in (("requests", ("", "requests.")), ("limits", ("limits.",))):
            for name, text in (resources.get(kind) or {}).items():
                for prefix in prefixes:
                    found[prefix + name] = found.get(prefix + name, 0) + _amount(text)
    return found


def _amount(text: str) -> int:
    """Return cpu in thousandths and memory in bytes."""
    if text.endswith("Gi"):
        return int(text[:-2]) * 1024 * _MEBI
    if text.endswith("Mi"):
        return int(text[:-2]) * _MEBI
    if text.endswith("M"):
        return int(text[:-1]) * 1000_000
    return int(text[:-1]) if text.endswith("m") else round(float(text) * 1000)


def _canonical(key: str, amount: int) -> str:
    if key.endswith("cpu"):
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if key.endswith("memory"):
        if amount % 1000_000 == 0:
            return f"{amount // 1000_000}M"
        whole = amount // _MEBI
        return f"{whole // 1024}Gi" if whole % 1024 == 0 else f"{whole}Mi"
    return str(amount)
