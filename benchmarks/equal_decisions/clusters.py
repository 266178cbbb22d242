"""Random clusters: nodes, queues, priorities, and what else there is before any work comes."""

import json
from dataclasses import dataclass, field

from benchmarks.equal_decisions.confs import Conf
from benchmarks.equal_decisions.draw import (
    APPS,
    EPOCH,
    FPGA,
    GIB,
    GPU,
    GROUPS,
    ZONES,
    Draw,
    Json,
    an_object,
    quantities,
)

FEATURES = {
    "": "selectors taints ports near away spread best-effort gates never annotation-gangs series complex "
    "oversubscription critical fifo odd shard few-places uniform",
    "nodeorder": "images preferred",
    "usage": "limits loads",
    "rescheduling": "loads",
    "resource-strategy-fit": "gpu strategy",
    "task-topology": "roles topology",
    "cdp": "cool-down",
    "tdm": "preemptable",
    "sla": "waiting-time",
    "overcommit": "minimum",
    "resourcequota": "quotas",
    "pdb": "budgets",
    "nodegroup": "groups",
}
"""What a cluster may have, by the plugin with which it mostly has it."""

PRIORITIES = {"low": 10, "mid": 100, "high": 1000, "system-cluster-critical": 2_000_000_000}
IMAGES = {"app:1": 900, "db:latest": 300, "tool:2": 60}  # MiB


@dataclass(slots=True)
class Setting:
    """What jobs and changes must know of a cluster."""

    draw: Draw
    conf: Conf
    features: frozenset[str]
    namespaces: list[str]
    nodes: dict[str, Json] = field(default_factory=dict)
    queues: dict[str, Json] = field(default_factory=dict)
    leaves: list[str] = field(default_factory=list)  # queues that jobs name

    def has(self, feature: str, probability: float = 1.0) -> bool:
        """Say whether the cluster has a feature, and whether it shows here."""
        return feature in self.features and self.draw.chance(probability)

    @property
    def total(self) -> tuple[float, float]:
        """What nodes have altogether: milli-cores and MiB."""
        amounts = [node["status"]["allocatable"] for node in self.nodes.values()]
        return tuple(sum(int(one[name].rstrip("mMi")) for one in amounts) for name in ("cpu", "memory"))


def a_setting(draw: Draw, conf: Conf) -> Setting:
    """Draw features, nodes and queues."""
    features = frozenset(
        name
        for plugin, names in FEATURES.items()
        for name in names.split()
        if draw.chance(0.8 if plugin in conf.plugins else 0.15)
    )
    setting = Setting(draw, conf, features, draw.choice((["ns"], ["ns", "team"], ["ns", "team", "kube-system"])))
    n_nodes = draw.weighted({3: 2, 4: 3, 5: 3, 6: 3, 8: 3, 12: 2, 20: 1, 40: 0.4})
    for number in range(1, n_nodes + 1):
        node = a_node(setting, f"n{number}", small=n_nodes > 10)
        setting.nodes[node["metadata"]["name"]] = node
    for queue in _tree(setting) if conf.tree or draw.chance(0.05) else _flat(setting):
        setting.queues[queue["metadata"]["name"]] = queue
    return setting


def facts(setting: Setting) -> list[Json]:
    """Return all objects but nodes, queues and work."""
    found = [
        an_object("PriorityClass", name, value=value, globalDefault=name == "mid" and setting.draw.chance(0.3))
        for name, value in PRIORITIES.items()
    ]
    for space in setting.namespaces:
        found.append(an_object("Namespace", space, labels={"kubernetes.io/metadata.name": space, "of": space[:1]}))
        if setting.has("quotas", 0.8) or ("drf" in setting.conf.plugins and setting.draw.chance(0.4)):
            found.append(a_quota(setting, space))
        if setting.has("budgets"):
            found += [a_budget(setting, space, f"budget{number}") for number in range(setting.draw.randint(1, 2))]
        if setting.has("series"):
            found += _series(space)
    if "shard" in setting.features:
        found += shards(setting)
    return found


def a_node(setting: Setting, name: str, *, small: bool = False) -> Json:
    """Draw a node."""
    draw = setting.draw
    cpu = draw.choice((1, 2, 4) if small else (2, 4, 8, 8)) if "uniform" not in setting.features else 4
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": draw.choice(ZONES)}
    labels["rank"] = str(draw.randint(1, 9))
    labels["disk"] = draw.choice(("ssd", "hdd"))
    if setting.has("groups", 0.85):
        labels["volcano.sh/nodegroup-name"] = draw.choice(GROUPS)
    if "tdm" in setting.conf.plugins and draw.chance(0.45):
        labels["volcano.sh/revocable-zone"] = draw.choice((*setting.conf.zones, *setting.conf.zones, *ZONES))
    annotations: Json = {}
    if setting.has("oversubscription", 0.5):
        annotations = {"volcano.sh/oversubscription-cpu": "500", "volcano.sh/oversubscription-memory": str(2**29)}
    resources = quantities(cpu * 1000, cpu * draw.choice((1, 2, 4)) * GIB, **{"ephemeral-storage": "20Gi"})
    resources["pods"] = str(draw.randint(2, 5) if setting.has("few-places", 0.9) else 110)
    if setting.has("gpu", 0.5):
        resources[GPU] = str(draw.choice((1, 2, 4)))
    if setting.has("gpu", 0.25):
        resources[FPGA] = "2"
    images = [
        {"names": [image, f"registry/{image}"], "sizeBytes": size * 2**20}
        for image, size in IMAGES.items()
        if setting.has("images", 0.4)
    ]
    spec: Json = {"taints": _taints(setting), "unschedulable": draw.chance(0.04)}
    ready = [{"type": "Ready", "status": "True"}]
    status = {"allocatable": resources, "capacity": resources, "images": images, "conditions": ready}
    if setting.has("odd", 0.04):
        status["allocatable"] = {**resources, "memory": "0Mi"}
    return an_object("Node", name, labels=labels, annotations=annotations, spec=spec, status=status)


def _taints(setting: Setting) -> list[Json]:
    if not setting.has("taints", 0.5):
        return []
    effects = setting.draw.some(("NoSchedule", "PreferNoSchedule", "NoExecute"), 1, 2)
    return [{"key": setting.draw.choice(("dedicated", "spot")), "value": "yes", "effect": effect} for effect in effects]


# Queues


def _flat(setting: Setting) -> list[Json]:
    names = [
        "default",
        *(f"q{number}" for number in range(1, setting.draw.weighted({1: 3, 2: 4, 3: 3, 4: 2, 8: 1}) + 1)),
    ]
    setting.leaves = names
    return [a_queue(setting, name, "", (0.5 if name == "default" else 1) / len(names)) for name in names]


def _tree(setting: Setting) -> list[Json]:
    draw = setting.draw
    queues = [an_object("Queue", "root", spec={"weight": 1})]
    teams = [f"t{number}" for number in range(1, draw.randint(1, 3) + 1)]
    setting.leaves = ["default"]
    queues.append(a_queue(setting, "default", "root", 0.5 / (len(teams) + 1)))
    for team in teams:
        queues.append(a_queue(setting, team, "root", 1 / (len(teams) + 1)))
        n_leaves = draw.choice((0, 1, 2, 2, 3))
        setting.leaves += [f"{team}{letter}" for letter in "abc"[:n_leaves]] or [team]
        share = 1 / (len(teams) + 1) / max(n_leaves, 1)
        often = 0.2 if draw.chance(0.4) else 0.8  # where leaves deserve nothing, the team speaks for them
        queues += [a_queue(setting, f"{team}{letter}", team, share, often) for letter in "abc"[:n_leaves]]
    if setting.has("odd", 0.3):
        queues.append(a_queue(setting, "lost", draw.choice(("nowhere", "lost")), 0.1))
        setting.leaves.append(draw.choice(("lost", "t1")))
    return queues


def a_queue(setting: Setting, name: str, parent: str, share: float, deserving: float = 0.8) -> Json:
    """Draw a queue that is meant to have this share of the cluster, and deserves so much of it so often."""
    draw = setting.draw
    uniform = "uniform" in setting.features
    spec: Json = {"weight": 1 if uniform else draw.weighted({1: 4, 2: 4, 3: 4, 5: 4, 0: 1})}
    if parent:
        spec["parent"] = parent
    if draw.chance(deserving if "capacity" in setting.conf.plugins else 0.2):
        spec["deserved"] = amounts(setting, share * (1 if uniform else draw.uniform(0.4, 1.3)))
    if draw.chance(0.25):
        spec["capability"] = amounts(setting, min(1.0, share * draw.uniform(0.7, 2.5)))
    if draw.chance(0.25):
        spec["guarantee"] = {"resource": amounts(setting, share * draw.uniform(0.1, 0.7))}
    if draw.chance(0.12):
        spec["reclaimable"] = draw.chance(0.3)
    if draw.chance(0.15):
        spec["priority"] = draw.randint(0, 5)
    if setting.has("fifo", 0.5):
        spec["dequeueStrategy"] = draw.choice(("fifo", "traverse"))
    annotations: Json = {}
    if setting.has("groups", 0.85):
        spec["affinity"] = _group_affinity(draw)
        if draw.chance(0.25):
            annotations["volcano.sh/nodegroup-resource-limits"] = json.dumps({draw.choice(GROUPS): {"cpu": "3"}})
    if setting.conf.drf_tree:
        branch = draw.choice(("root/sci", "root/eng", "root/eng/ops"))
        annotations["volcano.sh/hierarchy"] = f"{branch}/{name}"
        weights = [str(draw.randint(1, 5)) for _ in f"{branch}/{name}".split("/")]
        annotations["volcano.sh/hierarchy-weights"] = "/".join(weights)
    state = draw.weighted({"Open": 8, "": 1, "Closed": 0.3, "Closing": 0.2})
    created = EPOCH + draw.randint(0, 3)
    return an_object("Queue", name, "", created, annotations=annotations, spec=spec, status={"state": state})


def amounts(setting: Setting, part: float) -> Json:
    """Return a part of what all nodes have, of cpu, memory or both, and perhaps some devices."""
    cpu, memory = setting.total
    draw = setting.draw
    if "uniform" in setting.features:
        return quantities(max(cpu * part, 1), max(memory * part, 1))
    both = draw.weighted({(1, 1): 6, (1, 0): 1, (0, 1): 1})
    found = quantities(max(cpu * part, 1) * both[0], max(memory * part * draw.uniform(0.7, 1.3), 1) * both[1])
    if setting.has("gpu", 0.5):
        found[GPU] = str(draw.randint(0, 4))
    if draw.chance(0.1):
        found["pods"] = str(draw.randint(1, 12))
    return found


def _group_affinity(draw: Draw) -> Json:
    def groups(at_most: int) -> Json:
        kinds = ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution")
        return {kind: draw.some(GROUPS, 0, at_most) for kind in kinds}

    return {"nodeGroupAffinity": groups(3)} | ({"nodeGroupAntiAffinity": groups(1)} if draw.chance(0.3) else {})


# Other objects


def a_quota(setting: Setting, space: str) -> Json:
    """Draw a quota of a namespace."""
    draw = setting.draw
    cpu, memory = setting.total
    part = draw.uniform(0.3, 1.5)
    hard = quantities(cpu * part, memory * part) | {"requests.cpu": f"{round(cpu * part)}m", "count/pods": "30"}
    taken = draw.uniform(0.3, 1.0)
    used = quantities(cpu * part * taken, memory * part * taken) | {"requests.cpu": f"{round(cpu * part * taken)}m"}
    hard = {name: hard[name] for name in sorted(draw.some(list(hard), 1))}
    spec = {"hard": hard | {"volcano.sh/namespace.weight": str(draw.randint(1, 5))}}
    return an_object("ResourceQuota", "quota", space, spec=spec, status={"hard": hard, "used": used})


def a_budget(setting: Setting, space: str, name: str) -> Json:
    """Draw a budget for disruptions."""
    draw = setting.draw
    apps = draw.some(APPS, 1, 2)
    selector = draw.choice(
        (
            {"matchLabels": {"app": apps[0]}},
            {"matchExpressions": [{"key": "app", "operator": draw.choice(("In", "NotIn")), "values": apps}]},
            {"matchExpressions": [{"key": "app", "operator": draw.choice(("Exists", "DoesNotExist"))}]},
            {},
        )
    )
    if setting.has("odd", 0.2):
        selector = {"matchExpressions": [{"key": "app", "operator": draw.choice(("In", "Near"))}]}
    stale = draw.chance(0.1)
    status = {"disruptionsAllowed": draw.weighted({0: 2, 1: 3, 2: 2, 5: 1}), "observedGeneration": 1 if stale else 2}
    return an_object("PodDisruptionBudget", name, space, generation=2, spec={"selector": selector}, status=status)


def shards(setting: Setting) -> list[Json]:
    """Divide the nodes among this scheduler and another one."""
    mine = setting.draw.some(list(setting.nodes), max(1, len(setting.nodes) // 2))
    others = [name for name in setting.nodes if name not in mine]
    kept = setting.draw.some(mine, 0, 1)
    return [
        an_object("NodeShard", "mine", spec={"nodesDesired": sorted(mine)}),
        an_object("NodeShard", "other", spec={"nodesDesired": others}, status={"nodesInUse": others + kept}),
    ]


def _series(space: str) -> list[Json]:
    label = {"matchLabels": {"app": "web"}}
    return [
        an_object("Service", "web", space, spec={"selector": {"app": "web"}}),
        an_object("ReplicaSet", "web", space, spec={"selector": label}),
        an_object("StatefulSet", "db", space, spec={"selector": {"matchLabels": {"app": "db"}}}),
        an_object("ReplicationController", "batch", space, spec={"selector": {"app": "batch"}}),
    ]
