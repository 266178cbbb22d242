"""What happens to a cluster between two cycles beside what the scheduler does: the script of a case."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.equal_decisions import clusters
from benchmarks.equal_decisions.clusters import Setting
from benchmarks.equal_decisions.draw import GROUPS, ZONES, Json
from benchmarks.equal_decisions.jobs import Job, a_job, a_pod


@dataclass(slots=True)
class Story:
    """What the script knows of what there is; it does not know what was decided."""

    setting: Setting
    now: float
    jobs: list[Job]
    room: int  # pods that may still come
    made: int = 0

    def name(self, prefix: str) -> str:
        """Return a name that nothing has had yet."""
        self.made += 1
        return f"{prefix}{self.made}"


def happenings(story: Story) -> list[Json]:
    """Return the changes before one cycle."""
    draw = story.setting.draw
    count = draw.weighted({0: 2, 1: 3, 2: 3, 3: 1})
    found: list[Json] = []
    for _ in range(count):
        found += draw.weighted(_HAPPENINGS)(story)
    return found


def put(obj: Json) -> Json:
    """Return the change that makes or replaces an object."""
    return {"do": "put", "object": obj}


def gone(obj: Json, do: str = "delete") -> Json:
    """Return the change that takes an object away; ``leave`` lets a pod terminate first."""
    return {"do": do, "kind": obj["kind"], "namespace": obj["metadata"].get("namespace", ""), **_named(obj)}


def patched(obj: Json, patch: Json, **only: bool) -> Json:
    """Return the change of some fields; ``standing`` says whether the pod must have a node for it."""
    return gone(obj, "patch") | {"patch": patch} | only


def _named(obj: Json) -> Json:
    return {"name": obj["metadata"]["name"]}


# Work


def _more_work(story: Story) -> list[Json]:
    draw = story.setting.draw
    if story.room <= 0:
        return _less_work(story)
    priority = draw.weighted({"high": 4, "mid": 3, "low": 2, "": 1})
    job = a_job(story.setting, story.name("late"), priority, story.now, at_most=story.room)
    story.jobs.append(job)
    story.room -= len(job.pods)
    objects = job.objects
    if job.group is not None and draw.chance(0.15):
        objects = [*job.pods, job.group]  # a watch of its own may be slower
    return [put(obj) for obj in objects]


def _less_work(story: Story) -> list[Json]:
    if not story.jobs:
        return []
    job = story.jobs.pop(story.setting.draw.randrange(len(story.jobs)))
    story.room += len(job.pods)
    found = [gone(pod, story.setting.draw.choice(("delete", "leave"))) for pod in job.pods]
    return found + ([gone(job.group)] if job.group is not None else [])


def _end(story: Story) -> list[Json]:
    draw = story.setting.draw
    if not story.jobs:
        return []
    pods = draw.some(draw.choice(story.jobs).pods, 1)
    phase = draw.weighted({"Succeeded": 3, "Failed": 1})
    return [patched(pod, {"status": {"phase": phase}}, standing=True) for pod in pods]


def _changed_work(story: Story) -> list[Json]:
    draw = story.setting.draw
    job = draw.choice(story.jobs) if story.jobs else None
    if job is None or not job.pods:
        return []
    pod = draw.choice(job.pods)
    kind = draw.choice(("preemptability", "labels", "minimum", "queue", "priority", "terminate"))
    if kind == "preemptability":
        return [patched(pod, {"metadata": {"annotations": {"volcano.sh/preemptable": draw.choice(("true", "false"))}}})]
    if kind == "labels":
        return [patched(pod, {"metadata": {"labels": {"app": draw.choice(("web", "db"))}}})]
    if kind == "terminate":
        return [gone(pod, "leave")]
    if job.group is None:
        return []
    change: Json = {"minMember": draw.randint(0, len(job.pods))}
    if kind == "queue":
        change = {"queue": draw.choice(story.setting.leaves)}
    if kind == "priority":
        change = {"priorityClassName": draw.choice(("low", "mid", "high"))}
    return [patched(job.group, {"spec": change})]


def _others(story: Story) -> list[Json]:
    """Let a pod of another scheduler appear, on a node or promised one, or a pod of no group or of a missing one."""
    setting, draw = story.setting, story.setting.draw
    name = story.name("other")
    kind = draw.weighted({"foreign": 4, "nominated": 2, "no-group": 1, "missing-group": 1, "claims": 1})
    if kind in ("no-group", "missing-group"):
        return [put(a_pod(setting, name, "mid", story.now, group=None if kind == "no-group" else "nobody"))]
    group = None
    if kind == "claims":  # it takes a whole PodGroup away from this scheduler
        groups = [job.group for job in story.jobs if job.group is not None]
        group = draw.choice(groups)["metadata"]["name"] if groups else None
    pod = a_pod(setting, name, "mid", story.now, scheduler="default-scheduler", group=group)
    if kind == "nominated":
        pod["status"]["nominatedNodeName"] = draw.choice(list(setting.nodes))
    elif kind == "foreign":
        pod["spec"]["nodeName"] = draw.choice(list(setting.nodes))
        pod["status"]["phase"] = "Running"
    if draw.chance(0.5):
        story.jobs.append(Job(None, [pod]))
    return [put(pod)]


# Nodes


def _nodes(story: Story) -> list[Json]:
    setting, draw = story.setting, story.setting.draw
    kind = draw.weighted({"more": 2, "cordon": 2, "taint": 1, "less": 1, "resize": 1, "label": 1, "shard": 1})
    if kind == "more" or len(setting.nodes) < 3:
        node = clusters.a_node(setting, story.name("late-node"))
        setting.nodes[node["metadata"]["name"]] = node
        return [put(node)]
    node = draw.choice(list(setting.nodes.values()))
    if kind == "shard":
        return [put(shard) for shard in clusters.shards(setting)] if "shard" in setting.features else []
    if kind == "cordon":
        return [patched(node, {"spec": {"unschedulable": draw.chance(0.6)}})]
    if kind == "taint":
        return [
            patched(node, {"spec": {"taints": [{"key": "spot", "effect": "NoSchedule"}] if draw.chance(0.6) else []}})
        ]
    if kind == "resize":
        return [patched(node, {"status": {"allocatable": {"cpu": draw.choice(("1000m", "6000m"))}}})]
    if kind == "label":
        labels = {"topology.kubernetes.io/zone": draw.choice(ZONES), "volcano.sh/nodegroup-name": draw.choice(GROUPS)}
        return [patched(node, {"metadata": {"labels": labels}})]
    del setting.nodes[node["metadata"]["name"]]
    return [gone(node)]


# What is said about work


def _queues(story: Story) -> list[Json]:
    setting, draw = story.setting, story.setting.draw
    name = draw.choice(list(setting.queues))
    queue = setting.queues[name]
    spec = {"weight": draw.randint(1, 6), "deserved": clusters.amounts(setting, draw.uniform(0.05, 0.7))}
    kind = draw.weighted({"spec": 5, "state": 1, "new": 1, "gone": 0.5})
    if kind == "state":
        return [patched(queue, {"status": {"state": draw.choice(("Open", "Closed", "Closing"))}})]
    if kind == "gone":
        return [gone(queue)] if name != "root" else []
    if kind == "new":
        fresh = clusters.a_queue(setting, story.name("late-queue"), queue["spec"].get("parent", ""), 0.3)
        setting.queues[fresh["metadata"]["name"]] = fresh
        setting.leaves.append(fresh["metadata"]["name"])
        return [put(fresh)]
    chosen = {key: spec[key] for key in draw.some(list(spec), 1)}
    if draw.chance(0.3):
        chosen["capability"] = clusters.amounts(setting, draw.uniform(0.2, 1.0))
    return [patched(queue, {"spec": chosen})]


def _said(story: Story) -> list[Json]:
    """Change a budget, a quota, a namespace or a priority."""
    setting, draw = story.setting, story.setting.draw
    space = draw.choice(setting.namespaces)
    kind = draw.choice(("budget", "quota", "priority", "namespace"))
    if draw.chance(0.25):
        names = {"budget": "PodDisruptionBudget/budget0", "quota": "ResourceQuota/quota", "namespace": "Service/web"}
        what, _, name = names.get(kind, "StatefulSet/db").partition("/")
        return [gone({"kind": what, "metadata": {"name": name, "namespace": space}})]
    if kind == "budget":
        return [put(clusters.a_budget(setting, space, "budget0"))] if "budgets" in setting.features else []
    if kind == "quota":
        return [put(clusters.a_quota(setting, space))] if "quotas" in setting.features else []
    if kind == "namespace":
        namespace = {"kind": "Namespace", "metadata": {"name": space}}
        return [patched(namespace, {"metadata": {"labels": {"of": draw.choice("tn")}}})]
    level = {"kind": "PriorityClass", "metadata": {"name": draw.choice(("low", "mid"))}}
    return [patched(level, {"value": draw.choice((5, 500))})]


def loads(story: Story) -> Json | None:
    """Return what is measured of nodes before a cycle, None for nothing."""
    setting, draw = story.setting, story.setting.draw
    if not setting.has("loads", 0.7):
        return None
    measured = {
        name: [draw.choice((5, 30, 55, 70, 95)) + draw.random(), draw.uniform(5, 95), draw.choice((0, 10, 400))]
        for name in setting.nodes
        if draw.chance(0.9)
    }
    return {"interval": draw.choice((5, 30, 120)), "nodes": measured}


_HAPPENINGS: dict[Callable[[Story], list[Json]], float] = {
    _more_work: 6,
    _less_work: 1,
    _end: 2,
    _changed_work: 1.5,
    _others: 1,
    _nodes: 2,
    _queues: 1.5,
    _said: 1,
}
