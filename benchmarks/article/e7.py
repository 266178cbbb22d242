"""E7, priority: gangs of high priority on a full cluster.

A gang preempts jobs of lower priority only if the whole gang then fits. Critical pods stay, and no victim's job falls
below its minimum. The cluster of 40 cores runs 8 critical pods, a gang of 12 that needs all its pods, and 20 pods of a
job that needs 4. So at most 16 pods can be evicted, and a gang of 17 evicts none.
"""

from benchmarks.article.report import Panel, Report
from volcano_py.simulator import Simulation, Timing, Work
from volcano_py.testing import a_job, a_node, a_policy, a_priority_class, a_queue

ROOM = 40
CRITICAL, FIRM, ELASTIC, NEEDED = 8, 12, 20, 4
SIZES = (10, ELASTIC - NEEDED, ELASTIC - NEEDED + 1)
ARRIVES_S, UNTIL_S = 10.0, 60.0
TIERS = [["priority", "gang", "conformance"], ["predicates", "nodeorder"]]


def run() -> Report:
    """Let a gang of each size arrive on a separate cluster."""
    rows: list[dict[str, object]] = []
    panels: list[Panel] = []
    for size in SIZES:
        timeline = _simulation(size).run(UNTIL_S)
        evicted = [entry.work for entry in timeline.of("evicted")]
        running = timeline.running_at(UNTIL_S)
        rows.append(
            {
                "gang": size,
                "runs": running.get("gang", 0),
                **{f"evicted {name}": evicted.count(name) for name in ("critical", "firm", "elastic")},
                "elastic runs": running["elastic"],
            }
        )
        panels.append(Panel(f"a gang of {size}", lines=timeline.running(), until=UNTIL_S))
    return Report("E7", f"a gang of high priority on {ROOM} full cores", rows, panels)


def _simulation(size: int) -> Simulation:
    policy = a_policy("enqueue, allocate, backfill, preempt", TIERS)
    classes = [
        a_priority_class(name, value)
        for name, value in (("low", 1), ("high", 1000), ("system-cluster-critical", 2_000_000_000))
    ]
    nodes = [a_node(f"n{i}", cpu=10) for i in range(ROOM // 10)]
    sim = Simulation(policy, a_queue(), *classes, *nodes, timing=Timing(grace_s=2.0))
    jobs = {
        "critical": a_job(
            "critical",
            tasks=CRITICAL,
            min_available=1,
            cpu=1,
            priority_class="low",
            spec={"priorityClassName": "system-cluster-critical"},
        ),
        "firm": a_job("firm", tasks=FIRM, cpu=1, priority_class="low", created=1),
        "elastic": a_job("elastic", tasks=ELASTIC, min_available=NEEDED, cpu=1, priority_class="low", created=2),
    }
    for name, job in jobs.items():
        sim.submit(Work(name, job.pods, job.group, None))
    gang = a_job("gang", tasks=size, cpu=1, priority_class="high", created=ARRIVES_S)
    sim.submit(Work("gang", gang.pods, gang.group, None), at=ARRIVES_S)
    return sim


if __name__ == "__main__":
    run().show()
