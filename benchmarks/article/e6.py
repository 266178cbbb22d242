"""E6, queues: two queues fill the cluster, and a third of equal weight arrives.

One queue alone uses the whole cluster, and two share it. Then `reclaim` evicts for the newcomer until each queue is
within a pod of a third. It evicts no pod of a queue below its share, breaks no gang, and then stops.
"""

from benchmarks.article.report import Panel, Report
from volcano_py.simulator import Simulation, Timeline, Timing, Work
from volcano_py.testing import a_job, a_node, a_policy, a_queue

QUEUES = {"first": 0.0, "second": 20.0, "third": 60.0}  # when each arrives, seconds
ROOM = 60
GANG = 5  # pods of each queue's job that must run together
UNTIL_S = 120.0
ELASTIC = {"name": "gang", "enableJobStarving": False}  # jobs want all their pods, not only their minimum
TIERS = [["priority", ELASTIC, "conformance"], ["predicates", "proportion", "nodeorder"]]


def run() -> Report:
    """Let the queues arrive one after another; count pods before each arrival and at the end."""
    timeline = once()
    looks = [*(time - 0.1 for time in [*QUEUES.values()][1:]), UNTIL_S]
    rows: list[dict[str, object]] = []
    for before, look in zip([0.0, *looks], looks, strict=False):
        evicted = [entry for entry in timeline.of("evicted") if before < entry.time <= look]
        running = timeline.running_at(look)
        rows.append(
            {
                "seconds": look,
                **{f"{name} runs": running.get(name, 0) for name in QUEUES},
                "evicted since": len(evicted),
                "last eviction, seconds": max((entry.time for entry in evicted), default="none"),
            }
        )
    panel = Panel("pods by queue", lines=timeline.running(), until=UNTIL_S)
    return Report("E6", f"three queues of equal weight, room for {ROOM}", rows, [panel])


def once() -> Timeline:
    """Run until some time after the last arrival; jobs never end."""
    policy = a_policy("enqueue, allocate, backfill, reclaim", TIERS)
    queues = [a_queue(name) for name in QUEUES]
    nodes = [a_node(f"n{i}", cpu=10) for i in range(ROOM // 10)]
    sim = Simulation(policy, *queues, *nodes, timing=Timing(grace_s=2.0))
    for name, time in QUEUES.items():
        job = a_job(name, tasks=ROOM, min_available=GANG, cpu=1, queue=name, created=time)
        sim.submit(Work(name, job.pods, job.group, None), at=time)
    return sim.run(UNTIL_S)


if __name__ == "__main__":
    run().show()
