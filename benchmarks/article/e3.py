"""E3, binpack: jobs of 16 and of 24 pods of 200m CPU on two nodes of 4 CPU and 8 GiB.

With the plugin `binpack`, one node is filled before the next is used. Without it, the pods are spread.
"""

from benchmarks.article.report import Panel, Report
from volcano_py.simulator import Simulation, Work
from volcano_py.testing import a_job, a_node, a_policy, a_queue

WEIGHTS = {"binpack.weight": 10, "binpack.cpu": 5, "binpack.memory": 1}


def run() -> Report:
    """Place both jobs with and without the plugin."""
    rows: list[dict[str, object]] = []
    panels: list[Panel] = []
    for pods in (16, 24):
        bars: dict[str, dict[str, float]] = {}
        for packed in (True, False):
            on = placed(pods, packed=packed)
            rows.append({"pods": pods, "CPU": pods * 0.2, "binpack": "yes" if packed else "no", **on})
            bars["with binpack" if packed else "without"] = {name: float(count) for name, count in on.items()}
        panels.append(Panel(f"{pods} pods of 200m CPU", bars=bars, y="pods on the node"))
    return Report("E3", "two nodes of 4 CPU", rows, panels)


def placed(pods: int, *, packed: bool) -> dict[str, int]:
    """Return how many pods are on each node."""
    scores = {"name": "binpack", "arguments": WEIGHTS} if packed else "nodeorder"
    policy = a_policy("enqueue, allocate", ["gang", "predicates", scores])
    sim = Simulation(policy, a_queue(), *(a_node(f"node-{i}", cpu=4, memory="8Gi") for i in (1, 2)))
    job = a_job("packed", tasks=pods, cpu="200m")
    sim.submit(Work("packed", job.pods, job.group))
    nodes = [entry.node for entry in sim.run(10).of("bound")]
    return {f"node-{i}": nodes.count(f"node-{i}") for i in (1, 2)}


if __name__ == "__main__":
    run().show()
