"""Make cases: from a seed a configuration, a cluster and ten cycles of what happens to it, as plain JSON.

Nothing of volcano_py is used, so that two versions of it are asked about the very same thing.
"""

from benchmarks.equal_decisions.changes import Story, happenings, loads
from benchmarks.equal_decisions.clusters import Setting, a_setting, facts
from benchmarks.equal_decisions.confs import a_conf
from benchmarks.equal_decisions.draw import EPOCH, Draw, Json
from benchmarks.equal_decisions.jobs import Job, a_job

CYCLES = 10
MOST_PODS = 54

_NOON = 12 * 3600  # windows of tdm begin and end around it


def a_case(seed: int) -> Json:
    """Return the case of a seed."""
    draw = Draw(seed)
    conf = a_conf(draw)
    setting = a_setting(draw, conf)
    start = EPOCH + _NOON + draw.choice((-3600, -60, -3, 0, 290, 3600))
    running = _running(setting, start - draw.choice((5, 100, 4000)))
    waiting = _waiting(setting, start, MOST_PODS - sum(len(job.pods) for job in running))
    objects = [*setting.queues.values(), *facts(setting), *setting.nodes.values()]
    objects += [obj for job in (*running, *waiting) for obj in job.objects]
    if draw.chance(0.2):
        draw.shuffle(objects)  # watches start in any order
    jobs = [*running, *waiting]
    story = Story(setting, start, jobs, MOST_PODS + 16 - sum(len(job.pods) for job in jobs))
    cycles = [_cycle(story, number) for number in range(CYCLES)]
    options = _options(setting)
    return {"seed": seed, "conf": conf.text, "start": start, "options": options, "objects": objects, "cycles": cycles}


def used(conf: str) -> tuple[list[str], list[str]]:
    """Return the actions and the plugins that the text of a configuration names."""
    lines = conf.splitlines()
    actions = [name.strip() for name in lines[0].partition('"')[2].rstrip('"').split(",")]
    return actions, [line.partition('"')[2].rstrip('"') for line in lines if line.startswith("  - name:")]


def _options(setting: Setting) -> Json:
    draw = setting.draw
    return {
        "seed": draw.randint(0, 9),  # breaks ties between nodes
        "queue_admission": "gates" in setting.features and draw.chance(0.8),
        "shard": "mine" if "shard" in setting.features else None,
        "strict_shard": draw.chance(0.4),
        "utc_offset": draw.choice((0, 0, 3600)),
        "grace": draw.choice((0, 1, 1, 2)),  # cycles that see an evicted pod terminating, beside the next one
        "starts_in": draw.choice((0, 0, 1)),  # cycles until a bound pod runs
        "binds_late": draw.choice((0, 0, 1)),  # cycles until the watch shows what was written
        "statuses_late": draw.choice((0, 0, 1)),
    }


def _cycle(story: Story, number: int) -> Json:
    draw = story.setting.draw
    wait = draw.weighted({0.2: 1, 1: 6, 30: 3, 310: 1, 2000: 0.3})
    story.now += wait
    return {
        "wait": wait,
        "changes": happenings(story) if number else [],
        "meanwhile": happenings(story) if draw.chance(0.1) else [],  # while the cycle runs
        "loads": loads(story),
        "bind_fails": draw.weighted({0: 12, 4: 1, 2: 0.5}),
        "evict_fails": draw.weighted({0: 12, 3: 1}),
    }


def _running(setting: Setting, created: float) -> list[Job]:
    """Draw jobs that stand on nodes already, until these are about as full as they are meant to be."""
    draw = setting.draw
    free = {name: _room(node) for name, node in setting.nodes.items()}
    wanted = draw.choice((0.3, 0.7, 0.9, 1.0, 1.1)) * sum(cpu for cpu, _, _ in free.values())
    jobs: list[Job] = []
    n_pods = 0
    while wanted > 0 and n_pods < MOST_PODS * 0.6 and len(jobs) < 20:
        priority = draw.weighted({"low": 6, "mid": 3, "high": 1})
        job = a_job(setting, f"old{len(jobs)}", priority, created + len(jobs) % 4, elastic=draw.chance(0.6))
        if job.group is not None and draw.chance(0.6):
            job.group["spec"]["queue"] = setting.leaves[0]  # it has more than its part, which others take back
        for pod in job.pods:
            wanted -= _stand(setting, pod, free)
        n_pods += len(job.pods)
        _start(setting, job)
        jobs.append(job)
    return jobs


def _waiting(setting: Setting, start: float, room: int) -> list[Job]:
    draw = setting.draw
    many = len(setting.leaves) > 7  # queues, of which each gets a small job
    jobs = []
    for number in range(draw.randint(8, 12) if many else draw.randint(1, 6)):
        priority = draw.weighted({"high": 4, "mid": 3, "low": 2, "": 1})
        created = start - draw.choice((0, 1, 60, 900)) - number % 3
        job = a_job(setting, f"job{number}", priority, created, at_most=min(max(room, 0), 2 if many else 12))
        if many and job.group is not None:
            job.group["spec"]["queue"] = setting.leaves[number % len(setting.leaves)]
        room -= len(job.pods)
        jobs.append(job)
    return jobs


def _room(node: Json) -> tuple[float, float, int]:
    amounts = node["status"]["allocatable"]
    return float(amounts["cpu"].rstrip("m")), float(amounts["memory"].rstrip("Mi")), int(amounts["pods"])


def _stand(setting: Setting, pod: Json, free: dict[str, tuple[float, float, int]]) -> float:
    """Put a pod on some node that has room for it; return the milli-cores that it takes."""
    requests = pod["spec"]["containers"][0]["resources"]["requests"]
    cpu = float(requests.get("cpu", "0m").rstrip("m"))
    memory = float(requests.get("memory", "0Mi").rstrip("Mi"))
    fitting = [name for name, left in free.items() if left[0] >= cpu and left[1] >= memory and left[2] > 0]
    if not fitting or setting.draw.chance(0.05):
        return 0.0
    node = setting.draw.choice(fitting)
    left = free[node]
    free[node] = (left[0] - cpu, left[1] - memory, left[2] - 1)
    pod["spec"]["nodeName"] = node
    pod["spec"].pop("schedulingGates", None)
    since = {"lastTransitionTime": pod["metadata"]["creationTimestamp"]}
    pod["status"] |= {"phase": setting.draw.weighted({"Running": 12, "Pending": 1, "Succeeded": 0.5})}
    pod["status"]["startTime"] = pod["metadata"]["creationTimestamp"]
    pod["status"]["conditions"] = [{"type": "PodScheduled", "status": "True", **since}]
    return cpu


def _start(setting: Setting, job: Job) -> None:
    """Give a PodGroup of pods that stand the status that it has then."""
    if job.group is not None:
        standing = sum("nodeName" in pod["spec"] for pod in job.pods)
        ready = bool(standing) and standing >= job.group["spec"]["minMember"]
        phase = "Running" if ready else setting.draw.choice(("Inqueue", "Pending"))
        job.group["status"] = {"phase": phase, "running": standing if ready else 0}
