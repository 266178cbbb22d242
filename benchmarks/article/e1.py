"""E1, gangs: TensorFlow-like jobs of 2 ps + 4 workers on a cluster with room for one of them and a third of another.

Controllers create the pods of all jobs at about the same time, in random order; each of 20 runs draws new times. With
the plugin `gang`, whole jobs run one after another. Without it, jobs are placed in part and can wait for each other for
ever; such a run has not ended at the time limit.
"""

import random
from collections.abc import Sequence
from typing import Any

from benchmarks.article.report import Panel, Report
from volcano_py.simulator import Simulation, Timeline, Timing, Work
from volcano_py.testing import a_job, a_node, a_policy, a_queue

RUNS = 20
RUNTIME_S = 60.0
SIZE = 6
WITHIN_S = 1.0  # time span in which the pods of all jobs are created
PLUGINS = ("priority", "predicates", "nodeorder")


def run(runs: int = RUNS, counts: Sequence[int] = (1, 2, 5)) -> Report:
    """Submit 1, 2 and 5 jobs at once, with and without the plugin."""
    rows: list[dict[str, object]] = []
    panels: list[Panel] = []
    for jobs in counts:
        for gang in (True, False):
            timelines = [once(jobs, gang=gang, seed=seed) for seed in range(runs)]
            rows.append(_row(jobs, gang, timelines))
            if jobs == counts[-1]:
                shown = next((one for one in timelines if not _ended(one, jobs)), timelines[0])
                title = f"{jobs} jobs {'with' if gang else 'without'} gang"
                panels.append(Panel(title, lines=shown.running(), until=_limit(jobs)))
    return Report("E1", "jobs of 2 ps + 4 workers, room for 8 pods", rows, panels)


def once(jobs: int, *, gang: bool, seed: int) -> Timeline:
    """Run the jobs with creation times drawn from a seed."""
    chance = random.Random(seed)
    policy = a_policy("enqueue, allocate", ["gang", *PLUGINS] if gang else PLUGINS)
    nodes = [a_node(f"n{i}", cpu=4) for i in range(2)]
    sim = Simulation(policy, a_queue(), *nodes, timing=Timing(period_s=20.0))
    for number in range(jobs):
        job = a_job(f"job-{number}", tasks={"ps": 2, "worker": 4}, cpu=1, created=number)
        times = [chance.uniform(0, WITHIN_S) for _ in job.pods]
        sim.submit(Work(f"job-{number}", job.pods, job.group, RUNTIME_S, created_s=times))
    return sim.run(_limit(jobs))


def _limit(jobs: int) -> float:
    return 2 * jobs * RUNTIME_S


def _ended(timeline: Timeline, jobs: int) -> bool:
    return all(timeline.ended(f"job-{number}") is not None for number in range(jobs))


def _row(jobs: int, gang: bool, timelines: list[Timeline]) -> dict[str, Any]:
    ended = [one for one in timelines if _ended(one, jobs)]
    makespans = [max(one.ended(f"job-{number}") or 0.0 for number in range(jobs)) for one in ended]
    return {
        "jobs": jobs,
        "gang": "yes" if gang else "no",
        "runs": len(timelines),
        "runs that ended": len(ended),
        "seconds to the end, mean": sum(makespans) / len(makespans) if makespans else "never",
        "jobs x run time": jobs * RUNTIME_S,
        "wasted pod seconds, mean": sum(_wasted(one, jobs) for one in timelines) / len(timelines),
    }


def _wasted(timeline: Timeline, jobs: int) -> float:
    """Return the pod seconds that were allocated but not worked."""
    held = 0.0
    for line in timeline.running().values():
        ends = [time for time, _ in line[1:]] + [_limit(jobs)]
        held += sum(number * (end - time) for (time, number), end in zip(line, ends, strict=True))
    worked = sum(timeline.ended(f"job-{number}") is not None for number in range(jobs)) * SIZE * RUNTIME_S
    return max(held - worked, 0.0)


if __name__ == "__main__":
    run().show()
