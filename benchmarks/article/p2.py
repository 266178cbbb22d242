"""P2, two consumers on one node of 2 CPU and 2 GiB.

T1: the first consumer alone uses the whole node. T2: the second arrives and requests as much. Each deserves a half, the
first is over by one pod of 1 CPU and 1 GiB, and one of its pods is evicted. T3: the second runs with its half.
"""

from benchmarks.article.report import Panel, Report
from volcano_py.simulator import Simulation, Timeline, Timing, Work
from volcano_py.testing import a_job, a_node, a_policy, a_queue

ARRIVES_S, UNTIL_S = 20.0, 60.0
TIERS = [["priority", "gang", "conformance"], ["predicates", "proportion", "nodeorder"]]
CONSUMERS = ("consumer-1", "consumer-2")


def run() -> Report:
    """Run the experiment and report its three moments."""
    timeline = once()
    rows: list[dict[str, object]] = []
    for moment, time in (("T1", ARRIVES_S - 0.1), ("T2", ARRIVES_S + 0.1), ("T3", UNTIL_S)):
        running = timeline.running_at(time)
        evicted = sum(entry.time <= time for entry in timeline.of("evicted"))
        rows.append({"moment": moment, **{name: running.get(name, 0) for name in CONSUMERS}, "evicted": evicted})
    return Report(
        "P2",
        "one node of 2 CPU and 2 GiB, pods of a half",
        rows,
        [Panel("pods", lines=timeline.running(), until=UNTIL_S)],
    )


def once() -> Timeline:
    """Run until some time after the second has arrived."""
    policy = a_policy("enqueue, allocate, backfill, reclaim", TIERS)
    queues = [a_queue(name) for name in CONSUMERS]
    sim = Simulation(policy, *queues, a_node("node", cpu=2, memory="2Gi"), timing=Timing(grace_s=2.0))
    for name, time in zip(CONSUMERS, (0.0, ARRIVES_S), strict=True):
        job = a_job(name, tasks=2, min_available=1, cpu=1, memory="1Gi", queue=name, created=time)
        sim.submit(Work(name, job.pods, job.group, None), at=time)
    return sim.run(UNTIL_S)


if __name__ == "__main__":
    run().show()
