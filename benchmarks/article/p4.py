"""P4, no oscillation: after an eviction, no pod is evicted again unless requests change.

All tenants have equal weight. The second arrives on a full cluster, and the third ten minutes later. Evicted pods come
back and wait again, and cycles go on. Evictions follow each arrival and then stop.
"""

from benchmarks.article.report import Panel, Report
from volcano_py.simulator import Simulation, Timeline, Timing, Work
from volcano_py.testing import a_job, a_node, a_policy, a_queue

ROOM = 60
ARRIVALS = {"first": 0.0, "second": 30.0, "third": 630.0}
SETTLED_S = 10.0
UNTIL_S = 1230.0
ELASTIC = {"name": "gang", "enableJobStarving": False}
TIERS = [["priority", ELASTIC, "conformance"], ["drf", "predicates", "proportion", "nodeorder"]]


def run() -> Report:
    """Run the experiment and count evictions right after each arrival and in the time that follows."""
    timeline = once()
    rows: list[dict[str, object]] = []
    times = [*ARRIVALS.values(), UNTIL_S]
    for name, start, end in zip(ARRIVALS, times, times[1:], strict=False):
        for stage, since, until in (("arrives", start, start + SETTLED_S), ("nothing changes", start + SETTLED_S, end)):
            running = timeline.running_at(until - 0.1)
            rows.append(
                {
                    "stage": f"{name} {stage}" if since == start else stage,
                    "seconds": until - since,
                    **{f"{tenant} runs": running.get(tenant, 0) for tenant in ARRIVALS},
                    "evicted": sum(since <= entry.time < until for entry in timeline.of("evicted")),
                }
            )
    return Report(
        "P4", f"tenants arrive, room for {ROOM}", rows, [Panel("pods", lines=timeline.running(), until=UNTIL_S)]
    )


def once() -> Timeline:
    """Run for twenty minutes."""
    policy = a_policy("enqueue, allocate, backfill, preempt, reclaim", TIERS)
    queues = [a_queue(name) for name in ARRIVALS]
    nodes = [a_node(f"n{i}", cpu=10) for i in range(ROOM // 10)]
    sim = Simulation(policy, *queues, *nodes, timing=Timing(grace_s=2.0, period_s=5.0))
    for name, time in ARRIVALS.items():
        job = a_job(name, tasks=ROOM, min_available=1, cpu=1, queue=name, created=time)
        sim.submit(Work(name, job.pods, job.group, None), at=time)
    return sim.run(UNTIL_S)


if __name__ == "__main__":
    run().show()
