"""Random work: PodGroups and their pods, gangs by annotations, pods of nobody and of other schedulers."""

import json
from dataclasses import dataclass
from typing import Any

from benchmarks.equal_decisions.clusters import Setting
from benchmarks.equal_decisions.draw import APPS, EPOCH, FPGA, GPU, ZONES, Json, an_object, at, quantities

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
QUEUE_GATE = "scheduling.volcano.sh/queue-allocation-gate"


@dataclass(slots=True)
class Job:
    """A PodGroup, if there is one, and its pods."""

    group: Json | None
    pods: list[Json]

    @property
    def objects(self) -> list[Json]:
        """Everything, the PodGroup first."""
        return [*([self.group] if self.group is not None else ()), *self.pods]


def a_job(
    setting: Setting, name: str, priority: str, created: float = EPOCH, *, at_most: int = 12, elastic: bool = False
) -> Job:
    """Draw a job whose pods wait; an ``elastic`` one needs few of them."""
    draw = setting.draw
    space = draw.choice(setting.namespaces)
    size = min(at_most, draw.weighted({0: 0.2, 1: 2, 2: 3, 3: 3, 4: 3, 6: 2, 8: 1, 12: 0.5}))
    roles = draw.some(("ps", "worker", "chief"), 1, 3) if setting.has("roles", 0.6) or size > 4 else ["task"]
    annotations = _preemptability(setting)
    by_annotations = setting.has("annotation-gangs", 0.4)
    minimum = draw.choice((size, size, size, size - 1, size // 2, 1, 0, size + draw.choice((0, 0, 1))))
    minimum = max(0, draw.choice((0, 1, 1, size // 2)) if elastic else minimum)
    if by_annotations:
        annotations["scheduling.k8s.io/group-pod-num"] = str(max(minimum, 1))
    style = draw.weighted({"numbered": 4, "lettered": 1, "mixed": 1})
    templates = {role: _template(setting, role, priority, annotations) for role in roles}
    pods: list[Json] = []
    for number in range(size):
        role = roles[number % len(roles)]
        pod = json.loads(json.dumps(templates[role]))
        if by_annotations and setting.has("odd", 0.1):
            pod["metadata"]["annotations"]["scheduling.k8s.io/group-pod-num"] = draw.choice(("7", "many"))
        end = "xyzuvwrstopq"[number] if style == "lettered" or (style == "mixed" and number % 2) else number
        pods.append(_named(pod, f"{name}-{role}-{end}", space, created + number // 4, group=name))
        if draw.chance(0.05):
            pods[-1]["metadata"]["annotations"]["volcano.sh/task-priority"] = str(draw.randint(0, 9))
    if pods and setting.has("odd", 0.08):
        resources = {"requests": {"cpu": draw.choice(("much", "-1"))}}
        pods[-1]["spec"]["containers"].append({"name": "unreadable", "resources": resources})
    if by_annotations:
        return Job(None, pods)
    counts = {role: sum(1 for number in range(size) if roles[number % len(roles)] == role) for role in roles}
    queues = setting.leaves[1:] if draw.chance(0.5) and len(setting.leaves) > 1 else setting.leaves
    spec: Json = {"minMember": minimum, "queue": draw.choice(queues), "priorityClassName": priority}
    if setting.has("odd", 0.05):
        spec["queue"] = "missing"
    if setting.has("roles", 0.5):
        spec["minTaskMember"] = {role: max(0, counts[role] - draw.choice((0, 0, 1))) for role in draw.some(roles, 1)}
    if setting.has("minimum", 0.7) or setting.has("quotas", 0.7):
        spec["minResources"] = _minimum(pods[: max(minimum, 1)], draw.chance(0.3))
    phase = draw.weighted({"Pending": 5, "Inqueue": 2, "": 1})
    texts = _group_annotations(setting, roles, annotations)
    return Job(an_object("PodGroup", name, space, created, annotations=texts, spec=spec, status={"phase": phase}), pods)


def _group_annotations(setting: Setting, roles: list[str], preemptability: Json) -> Json:
    draw = setting.draw
    found: Json = {}
    if setting.has("waiting-time", 0.6):
        key = draw.choice(("volcano.sh/sla-waiting-time", "sla-waiting-time"))
        found[key] = draw.choice(("5s", "1m", "10m", "soon"))
    if setting.has("topology", 0.7):
        pair = ",".join(draw.some(roles, 1))
        found["volcano.sh/task-topology-affinity"] = pair
        if draw.chance(0.5):
            found["volcano.sh/task-topology-anti-affinity"] = draw.choice(roles)
        if draw.chance(0.5):
            found["volcano.sh/task-topology-task-order"] = ",".join(draw.some(roles, 1))
    if "volcano.sh/preemptable" in preemptability:
        found["volcano.sh/preemptable"] = preemptability["volcano.sh/preemptable"]
    if setting.has("preemptable", 0.4):
        key = draw.choice(("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"))
        found[key] = draw.choice(("1", "2", "50%"))
    return found


def _preemptability(setting: Setting) -> Json:
    draw = setting.draw
    found: Json = {}
    if setting.has("preemptable", 0.6):
        found["volcano.sh/preemptable"] = draw.choice(("true", "true", "false"))
    if setting.has("preemptable", 0.3):
        found["volcano.sh/revocable-zone"] = "*"
    if setting.has("cool-down", 0.6):
        found["volcano.sh/cooldown-time"] = draw.choice(("20s", "5m", "1h"))
    return found


def _minimum(pods: list[Json], with_quota: bool) -> Json:
    requests = [one["spec"]["containers"][0]["resources"]["requests"] for one in pods]
    cpu, memory = (sum(int(one.get(name, "0").rstrip("mMi")) for one in requests) for name in ("cpu", "memory"))
    found = quantities(cpu, memory)
    return found | ({"requests.cpu": f"{cpu}m", "count/pods": str(len(pods))} if with_quota else {})


# Pods


def _named(pod: Json, name: str, space: str, created: float, group: str | None) -> Json:
    pod["metadata"] |= {"name": name, "namespace": space, "uid": name, "creationTimestamp": at(created)}
    if group is not None:
        pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = group
    return pod


def _template(setting: Setting, role: str, priority: str, annotations: Json) -> Json:
    draw = setting.draw
    app = draw.choice(APPS)
    metadata: Json = {"labels": {"app": app, "role": role}, "annotations": {**annotations}}
    if role != "task":
        metadata["annotations"]["volcano.sh/task-spec"] = role
    requests = quantities(draw.choice((100, 250, 500, 1000, 1500, 2000)), draw.choice((0, 128, 512, 1024, 2048)))
    if "uniform" in setting.features:  # all alike, so that much is equal
        requests = quantities(500, 512)
    if setting.has("gpu", 0.4):
        requests[draw.choice((GPU, GPU, FPGA))] = str(draw.randint(1, 2))
    if setting.has("best-effort", 0.25):
        requests = {}
    container: Json = {"name": "main", "resources": {"requests": requests}}
    if setting.has("limits", 0.6):
        limits = quantities(draw.choice((1000, 3000)), draw.choice((2048, 4096)))
        container["resources"]["limits"] = limits
    spec: Json = {"schedulerName": "volcano", "containers": [container]}
    if draw.chance(0.7):
        spec["priority"] = {"low": 10, "mid": 100, "high": 1000}.get(priority, 0) + draw.choice((0, 0, 0, 5, -5))
    if setting.has("never", 0.4):
        spec["preemptionPolicy"] = draw.choice(("Never", "PreemptLowerPriority"))
    if setting.has("critical", 0.2):
        spec["priorityClassName"] = "system-cluster-critical"
    if setting.has("strategy", 0.4):
        kind = draw.choice(("LeastAllocated", "MostAllocated", "Other"))
        weights = json.dumps({"cpu": draw.randint(0, 3), "memory": 1})
        metadata["annotations"] |= {
            "volcano.sh/resource-strategy-scoring-type": kind,
            "volcano.sh/resource-strategy-weight": weights,
        }
    if setting.has("series", 0.6):
        kind, version = draw.choice((("ReplicaSet", "apps/v1"), ("StatefulSet", "apps/v1"), ("Job", "batch/v1")))
        owner = {"apiVersion": version, "kind": kind, "name": {"StatefulSet": "db"}.get(kind, "web"), "uid": kind}
        metadata["ownerReferences"] = [owner | {"controller": True}]
    _place(setting, app, spec)
    _complicate(setting, spec, container)
    qos = "BestEffort" if not requests and "limits" not in container["resources"] else "Burstable"
    status: Json = {"phase": "Pending", "qosClass": qos}
    if setting.has("complex", 0.15):  # it is being resized
        had = {"requests": requests | quantities(draw.choice((50, 1200)), 96)}
        status["containerStatuses"] = [{"name": "main", "resources": had}]
        if draw.chance(0.3):
            status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def _place(setting: Setting, app: str, spec: Json) -> None:
    """Draw what a pod says of where it stands."""
    draw = setting.draw
    if setting.has("selectors", 0.3):
        spec["nodeSelector"] = {"disk": draw.choice(("ssd", "hdd"))}
    affinity: Json = {}
    if setting.has("selectors", 0.3):
        affinity.setdefault("nodeAffinity", {})[REQUIRED] = {"nodeSelectorTerms": [_node_term(setting)]}
    if setting.has("preferred", 0.4):
        terms = [{"weight": draw.randint(1, 100), "preference": _node_term(setting)} for _ in range(draw.randint(1, 2))]
        affinity.setdefault("nodeAffinity", {})[PREFERRED] = terms
    for feature, side in (("near", "podAffinity"), ("away", "podAntiAffinity")):
        if setting.has(feature, 0.3):
            terms = [_pod_term(setting, app, side)]
            affinity.setdefault(side, {})[REQUIRED] = terms
        if setting.has(feature, 0.3):
            weighed = {"weight": draw.randint(1, 100), "podAffinityTerm": _pod_term(setting, app, side)}
            affinity.setdefault(side, {})[PREFERRED] = [weighed]
    if affinity:
        spec["affinity"] = affinity
    if setting.has("spread", 0.4):
        spec["topologySpreadConstraints"] = [_spread(setting, app) for _ in range(draw.randint(1, 2))]
    if setting.has("taints", 0.6):
        tolerations = (
            {"operator": "Exists"},
            {"key": "spot", "operator": "Exists"},
            {"key": "dedicated", "value": "yes"},
        )
        spec["tolerations"] = [{**draw.choice(tolerations), **draw.choice(({}, {"effect": "NoSchedule"}))}]


def _node_term(setting: Setting) -> Json:
    draw = setting.draw
    zones: Json = {"key": "topology.kubernetes.io/zone", "operator": draw.choice(("In", "NotIn"))}
    zones["values"] = draw.some(ZONES, 1, 2)
    rank = {"key": "rank", "operator": draw.choice(("Gt", "Lt")), "values": [str(draw.randint(1, 9))]}
    if setting.has("odd", 0.1):
        rank = {"key": "rank", "operator": "Above", "values": ["1"]}
    name = {"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}
    there = {"key": "volcano.sh/nodegroup-name", "operator": draw.choice(("Exists", "DoesNotExist"))}
    expressions = draw.choice(([zones], [rank], [zones, there], []))
    return {"matchExpressions": expressions} if expressions else {"matchFields": [name]}


def _pod_term(setting: Setting, app: str, side: str) -> Json:
    draw = setting.draw
    other = app if side == "podAntiAffinity" or draw.chance(0.5) else draw.choice(APPS)
    term: Json = {"labelSelector": {"matchLabels": {"app": other}}}
    term["topologyKey"] = draw.choice(("kubernetes.io/hostname", "topology.kubernetes.io/zone"))
    if draw.chance(0.2):
        term["namespaceSelector"] = draw.choice(({}, {"matchLabels": {"of": "t"}}))
    if draw.chance(0.15):
        term[draw.choice(("matchLabelKeys", "mismatchLabelKeys"))] = ["role"]
    if draw.chance(0.3):
        operator = draw.choice(("Exists", "DoesNotExist", "NotIn"))
        values = ["ps"] if operator == "NotIn" or setting.has("odd", 0.1) else []
        term["labelSelector"] = {"matchExpressions": [{"key": "role", "operator": operator, "values": values}]}
    return term


def _spread(setting: Setting, app: str) -> Json:
    draw = setting.draw
    key = draw.choice(("kubernetes.io/hostname", "topology.kubernetes.io/zone"))
    hard = draw.choice(("DoNotSchedule", "ScheduleAnyway"))
    found: Json = {"maxSkew": draw.randint(1, 2), "topologyKey": key, "whenUnsatisfiable": hard}
    found["labelSelector"] = {"matchLabels": {"app": app}}
    if draw.chance(0.2):
        found |= {"nodeAffinityPolicy": "Ignore", "nodeTaintsPolicy": "Honor"}
    if hard == "DoNotSchedule" and draw.chance(0.25):
        found["minDomains"] = draw.choice((2, 4))
    return found


def _complicate(setting: Setting, spec: Json, container: Json) -> None:
    draw = setting.draw
    if setting.has("images", 0.6):
        container["image"] = draw.choice(("app:1", "db", "tool:2", "registry/app:1", "nobody/has:it"))
    if setting.has("ports", 0.3):
        port: Json = {"containerPort": 80, "hostPort": draw.choice((8080, 9090))}
        container["ports"] = [port | draw.choice(({}, {"hostIP": "10.0.0.1"}, {"protocol": "UDP"}))]
    if setting.has("complex", 0.3):
        init: Json = {"name": "init", "resources": {"requests": quantities(draw.choice((100, 1800)), 64)}}
        spec["initContainers"] = [init | draw.choice(({}, {"restartPolicy": "Always"}))]
    if setting.has("complex", 0.2):
        spec["overhead"] = quantities(50, 32)
    if setting.has("complex", 0.1):
        spec["resources"] = {"requests": quantities(700, 256)}
    gates = [{"name": QUEUE_GATE}] if setting.has("gates", 0.5) else []
    if gates and draw.chance(0.1):
        gates.append({"name": "example.com/wait"})
    if gates:
        spec["schedulingGates"] = gates
    if setting.has("odd", 0.06):
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


def a_pod(setting: Setting, name: str, priority: str, created: float = EPOCH, **fields: Any) -> Json:
    """Draw a pod of no group; ``scheduler`` makes it another scheduler's."""
    pod = _template(setting, "task", priority, {})
    pod["spec"].pop("schedulingGates", None)
    if "scheduler" in fields:
        pod["spec"]["schedulerName"] = fields["scheduler"]
    return _named(pod, name, setting.draw.choice(setting.namespaces), created, fields.get("group"))
