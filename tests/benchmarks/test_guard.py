"""Ratios of CPU time that must not get much worse: of arrays to loops, of a kept cycle to a first one, of binds.

Each ratio compares two halves of one process or machine, so a slow or busy machine changes both. The limits are far
from what was measured (in brackets), and the best of several attempts counts: a failure means that something which
should be computed once is computed for each object or in each cycle.
"""

import asyncio
import time
from collections.abc import Callable, Iterable

from benchmarks import binding, cluster, deep
from benchmarks.bare import FAST
from benchmarks.servers import server
from tests.reference.allocation import expected_binds
from tests.reference.world import World, a_job, a_node, a_shape, tasks_of
from tests.scheduler.running import DEFAULT, a_policy, cycle
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import load_credentials
from volcano_py.runtime.loop import loop_factory

LOOPS_TO_COLUMNS = 6.0  # [29]
FIRST_TO_KEPT = 1.7  # [5]
OURS_TO_BARE = 4.0  # [1.5 to 2.2 on a machine with five processes per core]


def best(ratios: Iterable[float], good_enough: float) -> float:
    """Return the greatest ratio; the first that is good enough ends the attempts."""
    found = 0.0
    for ratio in ratios:
        found = max(found, ratio)
        if found >= good_enough:
            break
    return found


def cpu_s(work: Callable[[], object]) -> float:
    started = time.thread_time()
    work()
    return time.thread_time() - started


def test_columns_are_faster_than_loops_over_objects() -> None:
    jobs = range(30)
    world = World(
        nodes=tuple(a_node(f"n{number}", cpu=32, memory="256Gi") for number in range(40)),
        jobs=tuple(a_job(f"j{number}", min_available=10) for number in jobs),
        tasks=tuple(one for n in jobs for one in tasks_of(f"j{n}", 10, a_shape(cpu=1 + n % 3, memory="1Gi"))),
    )
    policy = a_policy(DEFAULT)
    assert len(cycle(world, policy).binds) == 300  # what both halves do; the first cycle also warms up
    ratios = (cpu_s(lambda: expected_binds(world)) / cpu_s(lambda: cycle(world, policy)) for _ in range(5))

    assert best(ratios, LOOPS_TO_COLUMNS) >= LOOPS_TO_COLUMNS


def test_a_kept_cycle_costs_less_than_the_first() -> None:
    case = {"name": "guard", "nodes": 100, "jobs": 500, "k": 8, "shapes": 20, "queues": 2}

    def ratio() -> float:
        (row,) = deep.run({"repeat": 4, "cases": [{**case, "conf": "built-in", "shown": True}]})
        return row["first_ms"] / row["cpu_ms"]

    assert best((ratio() for _ in range(5)), FIRST_TO_KEPT) >= FIRST_TO_KEPT


def test_binds_of_the_scheduler_cost_little_more_than_bare_binds() -> None:
    case = {"server": "embedded", "nodes": 40, "gangs": 8, "k": 100}

    async def measured() -> float:
        with server("embedded") as running:
            async with ApiClient(await load_credentials(kubeconfig=str(running.kubeconfig))) as client:
                await cluster.define(client)
                await cluster.make_nodes(client, case["nodes"])
                ratio = float("inf")
                for number in range(3):
                    bare = await binding.bare(client, running, case, f"bare-{number}", FAST)
                    ours, _ = await binding.ours(client, running, case, f"ours-{number}", case["k"], settles_s=0.0)
                    ratio = min(ratio, ours["all_cpu_s"] / bare["all_cpu_s"])
                    if ratio <= OURS_TO_BARE:
                        break
                return ratio

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        ratio = runner.run(measured())
    print(f"ours to bare: {ratio:.2f}")
    assert ratio <= OURS_TO_BARE
