"""E2, task topology: three TensorFlow-like jobs of 2 ps + 4 workers at once, where several layouts are possible.

The annotations of `task-topology` ask for servers together with workers, and for the two servers of a job apart. With
the plugin, each server shares its node with two workers, and the two servers of a job are on different nodes, in all of
20 runs with different orders of nodes and pods. Without it, workers talk to servers on other nodes.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import mean

from benchmarks.article.report import Panel, Report
from volcano_py.simulator import Simulation, Work
from volcano_py.testing import a_job, a_node, a_policy, a_queue

RUNS = 20
JOBS = 3
ROLES = {"ps": 2, "worker": 4}
CLUSTERS = {"6 nodes of 4": (6, 4), "3 nodes of 8": (3, 8)}  # nodes, cores of each; a pod wants one core
ANNOTATIONS = {
    "volcano.sh/task-topology-affinity": "ps,worker",
    "volcano.sh/task-topology-anti-affinity": "ps",
    "volcano.sh/task-topology-task-order": "ps,worker",
}
TOPOLOGY = {"name": "task-topology", "arguments": {"task-topology.weight": 10}}
PLUGINS: Sequence[str] = ("priority", "gang", "predicates", "nodeorder")
BEST = JOBS * 4  # in the best layout, 4 of the 8 pairs of a job are on different nodes

Layout = Mapping[str, Counter[str]]
"""Node -> role and job, such as ``ps of tf-0``, -> pods."""


def run(runs: int = RUNS, clusters: Sequence[str] = tuple(CLUSTERS)) -> Report:
    """Place the jobs on each cluster, with and without the plugin."""
    rows: list[dict[str, object]] = []
    panels: list[Panel] = []
    for name in clusters:
        bars: dict[str, dict[str, float]] = {}
        for topology in (True, False):
            layouts = [once(name, topology=topology, seed=seed) for seed in range(runs)]
            split = [split_pairs(layout) for layout in layouts]
            rows.append(
                {
                    "cluster": name,
                    "task-topology": "yes" if topology else "no",
                    "runs": runs,
                    "runs with the requested layout": sum(as_wanted(layout) for layout in layouts),
                    "pairs of ps and worker": JOBS * 8,
                    "on different nodes, mean": float(mean(split)),
                    "least": min(split),
                    "most": max(split),
                }
            )
            bars["with task-topology" if topology else "without"] = {"mean": float(mean(split)), "most": max(split)}
        panels.append(Panel(name, bars=bars, y="pairs of ps and worker on different nodes"))
    return Report("E2", f"3 jobs of 2 ps + 4 workers; {BEST} pairs must be on different nodes", rows, panels)


def once(cluster: str, *, topology: bool, seed: int) -> Layout:
    """Run one random order of nodes and pods."""
    chance = random.Random(seed)
    count, cores = CLUSTERS[cluster]
    names = [f"node-{number}" for number in range(count)]
    chance.shuffle(names)
    policy = a_policy("enqueue, allocate", [*PLUGINS, TOPOLOGY] if topology else PLUGINS)
    sim = Simulation(policy, a_queue(), *(a_node(name, cpu=cores) for name in names), seed=seed)
    jobs = [a_job(f"tf-{number}", tasks=ROLES, cpu=1, group_annotations=ANNOTATIONS) for number in range(JOBS)]
    chance.shuffle(jobs)
    for job in jobs:
        pods = chance.sample(job.pods, len(job.pods))
        times = [chance.uniform(0, 1) for _ in pods]
        sim.submit(Work(job.group.metadata.name, tuple(pods), job.group, created_s=times))
    layout: dict[str, Counter[str]] = {name: Counter() for name in names}
    for entry in sim.run(10).of("bound"):
        role = entry.pod.rsplit("-", 2)[1]
        layout[entry.node][f"{role} of {entry.work}"] += 1
    return layout


def split_pairs(layout: Layout) -> int:
    """Return how many pairs of a server and a worker of one job are on different nodes."""
    together = sum(
        pods[f"ps of tf-{number}"] * pods[f"worker of tf-{number}"]
        for pods in layout.values()
        for number in range(JOBS)
    )
    return JOBS * ROLES["ps"] * ROLES["worker"] - together


def as_wanted(layout: Layout) -> bool:
    """Say whether every server is on a node with two workers and no other server of its job."""
    shares = [
        (pods[f"ps of tf-{number}"], pods[f"worker of tf-{number}"])
        for pods in layout.values()
        for number in range(JOBS)
    ]
    return all(share in ((0, 0), (1, 2)) for share in shares) and shares.count((1, 2)) == JOBS * ROLES["ps"]


if __name__ == "__main__":
    run().show()
