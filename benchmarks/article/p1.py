"""P1, areas: services have 40 % of a cluster and big data 60 %, of which Spark and Hadoop have half each.

The plugin `capacity` runs a tree of queues. An idle area lends everything, so Spark alone uses the whole cluster. On
demand, each area gets its part back: Hadoop from its sibling, services from both.
"""

from benchmarks.article.report import Panel, Report
from volcano_py.simulator import Simulation, Timeline, Timing, Work
from volcano_py.testing import a_job, a_node, a_policy, a_queue

ROOM = 60
PARTS = {"services": 24, "bigdata": 36, "spark": 18, "hadoop": 18}
PARENTS = {"services": "root", "bigdata": "root", "spark": "bigdata", "hadoop": "bigdata"}
ARRIVALS = {"spark": 0.0, "hadoop": 30.0, "services": 60.0}
UNTIL_S = 90.0
ELASTIC = {"name": "gang", "enableJobStarving": False}
CAPACITY = {"name": "capacity", "enableHierarchy": True}
TIERS = [["priority", ELASTIC, "conformance"], [CAPACITY, "predicates", "nodeorder"]]


def run() -> Report:
    """Let the three arrive one after another; count pods before each arrival and at the end."""
    timeline = once()
    rows: list[dict[str, object]] = []
    times = [*ARRIVALS.values(), UNTIL_S]
    for name, start, end in zip(ARRIVALS, times, times[1:], strict=False):
        running = timeline.running_at(end - 0.1)
        rows.append(
            {
                "after the arrival of": name,
                **{f"{tenant} runs (part {PARTS[tenant]})": running.get(tenant, 0) for tenant in ARRIVALS},
                "evicted": sum(start <= entry.time < end for entry in timeline.of("evicted")),
            }
        )
    panel = Panel("pods", lines=timeline.running(), until=UNTIL_S)
    return Report("P1", f"a tree of queues over {ROOM} cores", rows, [panel])


def once() -> Timeline:
    """Run until some time after the last arrival."""
    policy = a_policy("enqueue, allocate, backfill, reclaim", TIERS)
    queues = [a_queue("root")] + [
        a_queue(name, parent=PARENTS[name], deserved={"cpu": part, "memory": f"{part}Gi", "pods": 1000})
        for name, part in PARTS.items()
    ]
    nodes = [a_node(f"n{i}", cpu=10, memory="10Gi") for i in range(ROOM // 10)]
    sim = Simulation(policy, *queues, *nodes, timing=Timing(grace_s=2.0))
    for name, time in ARRIVALS.items():
        job = a_job(name, tasks=ROOM, min_available=1, cpu=1, memory="1Gi", queue=name, created=time)
        sim.submit(Work(name, job.pods, job.group, None), at=time)
    return sim.run(UNTIL_S)


if __name__ == "__main__":
    run().show()
