"""P3, protected pods: two tenants fill 40 cores, and a newcomer requests more than its share.

``steady`` runs 16 pods, all reserved by its guarantee. ``large`` deserves a third and runs 24 pods, of which a
PodDisruptionBudget protects 6. The newcomer reclaims only from ``large``, the tenant furthest above its share, and
never from protected pods. Every victim has its grace period before a pod of the newcomer starts in its place. The 16
reserved cores leave less than a third of 40 for each of the other two, so both end with 12.
"""

from benchmarks.article.report import Panel, Report
from volcano_py.simulator import Simulation, Timeline, Timing, Work
from volcano_py.testing import a_budget, a_job, a_node, a_pod, a_policy, a_queue

ROOM, RESERVED, LARGE, PROTECTED, ASKED = 40, 16, 24, 6, 20
GRACE_S, ARRIVES_S, UNTIL_S = 5.0, 10.0, 60.0
LABELS = {"app": "protected"}
ELASTIC = {"name": "gang", "enableJobStarving": False}
TIERS = [["priority", ELASTIC, "conformance", "pdb"], ["predicates", "proportion", "nodeorder"]]
TENANTS = ("steady", "large", "newcomer")


def run() -> Report:
    """Run the experiment and report the state before and after."""
    timeline = once()
    before, after = timeline.running_at(ARRIVES_S), timeline.running_at(UNTIL_S)
    evicted = timeline.of("evicted")
    rows: list[dict[str, object]] = [
        {
            "tenant": name,
            "reserved": RESERVED if name == "steady" else 0,
            "runs before": before.get(name, 0),
            "runs after": after.get(name, 0),
            "evicted": sum(entry.work == name for entry in evicted),
            "protected evicted": sum(entry.work == name and "protected" in entry.pod for entry in evicted),
        }
        for name in TENANTS
    ]
    return Report(
        "P3",
        f"{ROOM} cores, a newcomer asks for {ASKED}",
        rows,
        [Panel("pods", lines=timeline.running(), until=UNTIL_S)],
    )


def once() -> Timeline:
    """Run until some time after the newcomer."""
    policy = a_policy("enqueue, allocate, backfill, reclaim", TIERS)
    queues = [a_queue(name, guarantee={"cpu": RESERVED} if name == "steady" else None) for name in TENANTS]
    nodes = [a_node(f"n{i}", cpu=10) for i in range(ROOM // 10)]
    sim = Simulation(policy, *queues, *nodes, a_budget(labels=LABELS, allowed=0), timing=Timing(grace_s=GRACE_S))
    steady = a_job("steady", tasks=RESERVED, min_available=1, cpu=1, queue="steady")
    sim.submit(Work("steady", steady.pods, steady.group, None))
    large = a_job("large", tasks=LARGE - PROTECTED, min_available=1, cpu=1, queue="large")
    guarded = [a_pod(f"large-protected-{i}", group="large", cpu=1, labels=LABELS) for i in range(PROTECTED)]
    sim.submit(Work("large", [*large.pods, *guarded], large.group, None))
    new = a_job("newcomer", tasks=ASKED, min_available=1, cpu=1, queue="newcomer", created=ARRIVES_S)
    sim.submit(Work("newcomer", new.pods, new.group, None), at=ARRIVES_S)
    return sim.run(UNTIL_S)


if __name__ == "__main__":
    run().show()
