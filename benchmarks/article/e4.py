"""E4, fair share between jobs: one queue, jobs of 300 and of 60 equal pods, room for 50 pods.

With the plugin `drf`, both jobs run the same number of pods until the small one needs no more. Without it, in order of
arrival, the large job takes all resources.
"""

from benchmarks.article.report import Panel, Report
from volcano_py.simulator import Simulation, Timeline, Timing, Work
from volcano_py.testing import a_job, a_node, a_policy, a_queue

JOBS = {"large": 300, "small": 60}
ROOM = 50
RUNTIME_S = 30.0
LOOK_S = 15.0


def run() -> Report:
    """Run both jobs with and without the plugin."""
    rows: list[dict[str, object]] = []
    panels: list[Panel] = []
    for drf in (True, False):
        timeline = once(drf=drf)
        running = timeline.running_at(LOOK_S)
        rows.append(
            {
                "drf": "yes" if drf else "no",
                **{f"{name} runs at {LOOK_S:g} s": running.get(name, 0) for name in JOBS},
                **{f"{name} ended, seconds": timeline.ended(name) or "never" for name in JOBS},
            }
        )
        panels.append(Panel("with drf" if drf else "by order of arrival", lines=timeline.running()))
    return Report("E4", f"{' and '.join(map(str, JOBS.values()))} pods, room for {ROOM}", rows, panels)


def once(*, drf: bool) -> Timeline:
    """Run until both have ended."""
    plugins = ["gang", "predicates", "nodeorder"]
    policy = a_policy("enqueue, allocate", ["drf", *plugins] if drf else plugins)
    sim = Simulation(policy, a_queue(), *(a_node(f"n{i}", cpu=10) for i in range(5)), timing=Timing(period_s=5.0))
    for number, (name, pods) in enumerate(JOBS.items()):
        job = a_job(name, tasks=pods, min_available=1, cpu=1, created=number)
        sim.submit(Work(name, job.pods, job.group, RUNTIME_S, together=False))
    return sim.run(sum(JOBS.values()) * RUNTIME_S)


if __name__ == "__main__":
    run().show()
