"""E5, fair share between namespaces: a job of 60 pods in each of two namespaces of weights 3 and 1, room for 40 pods.

Weights are the key ``volcano.sh/namespace.weight`` in a ResourceQuota. With the switch ``enableNamespaceOrder`` of the
plugin `drf`, the namespaces run pods in the ratio 3 to 1. Without it, both run the same number.
"""

from benchmarks.article.report import Panel, Report
from volcano_py.simulator import Simulation, Timeline, Timing, Work
from volcano_py.testing import a_job, a_node, a_policy, a_queue, a_quota

WEIGHTS = {"heavy": 3, "light": 1}
PODS = 60
ROOM = 40
RUNTIME_S = 30.0
LOOK_S = 15.0


def run() -> Report:
    """Run both jobs with and without the switch."""
    rows: list[dict[str, object]] = []
    panels: list[Panel] = []
    for weighted in (True, False):
        timeline = once(weighted=weighted)
        running = timeline.running_at(LOOK_S)
        rows.append(
            {
                "by weight": "yes" if weighted else "no",
                **{f"{name} (weight {weight}) runs": running.get(name, 0) for name, weight in WEIGHTS.items()},
                **{f"{name} ended, seconds": timeline.ended(name) or "never" for name in WEIGHTS},
            }
        )
        panels.append(Panel("by weight" if weighted else "equal", lines=timeline.running()))
    return Report("E5", f"{PODS} pods in each of two namespaces, room for {ROOM}", rows, panels)


def once(*, weighted: bool) -> Timeline:
    """Run until both have ended."""
    drf = {"name": "drf", "enableNamespaceOrder": weighted}
    policy = a_policy("enqueue, allocate", ["gang", drf, "predicates", "nodeorder"])
    quotas = [a_quota(namespace=name, weight=weight) for name, weight in WEIGHTS.items()]
    nodes = [a_node(f"n{i}", cpu=10) for i in range(ROOM // 10)]
    sim = Simulation(policy, a_queue(), *quotas, *nodes, timing=Timing(period_s=5.0))
    for number, name in enumerate(WEIGHTS):
        job = a_job(name, namespace=name, tasks=PODS, min_available=1, cpu=1, created=number)
        sim.submit(Work(name, job.pods, job.group, RUNTIME_S, together=False))
    return sim.run(2 * PODS * RUNTIME_S)


if __name__ == "__main__":
    run().show()
