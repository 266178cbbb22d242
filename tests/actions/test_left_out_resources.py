"""Pods that ask for too many resources that nobody offers wait with a reason; others are placed."""

import time

import pytest

from tests.snapshot.test_left_out import GPU, made_up
from volcano_py.model.resources import MOST_RESOURCES
from volcano_py.testing import Scenario, a_job, a_node, a_pod, run_scenario

ACTIONS = "enqueue, allocate, preempt, reclaim, backfill"
PLUGINS = ("priority", "gang", "conformance", "drf", "predicates", "proportion", "nodeorder", "binpack")
ONE = "0/2 nodes are unavailable: no node offers example.com/made-up-00000"


def bad_job(name: str, count: int, **asked: str) -> object:
    return a_job(name, tasks=1, priority=100, **asked, **made_up(count))


@pytest.mark.parametrize("cpu", [{}, {"cpu": "1"}])
def test_such_a_pod_waits_with_the_name_and_evicts_nobody(cpu: dict[str, str]) -> None:
    found = run_scenario(
        nodes=[a_node("n1"), a_node("n2")],
        jobs=[bad_job("bad", MOST_RESOURCES + 1, **cpu), a_job("good", tasks=2, cpu="1")],
        pods=[a_pod("there", node="n1", cpu="1")],
        actions=ACTIONS,
        plugins=PLUGINS,
    )

    assert set(found.placements) == {"good-0", "good-1"}
    assert not found.evictions
    assert (
        "no node offers example.com/made-up-00000 and 256 more resources: correct the request"
        in found.conditions["bad-0"]
    )


def test_it_is_placed_once_a_node_offers_what_it_asks_for() -> None:
    scenario = Scenario(
        a_node("n1"),
        a_job("bad", tasks=1, **made_up(MOST_RESOURCES)),
        a_job("gpu", tasks=1, **{GPU: "1"}),
        actions=ACTIONS,
    )
    found = scenario.run()
    assert not found.placements
    assert f"no node offers {GPU}: correct the request, or add a node that offers it" in found.conditions["gpu-0"]

    scenario.add(a_node("n2", **{GPU: "1"}))

    assert scenario.run().placements == {"gpu-0": "n2"}


def test_a_cycle_beside_20_000_made_up_resources_takes_no_longer_than_without() -> None:
    nodes = [a_node(f"n{number}") for number in range(200)]

    def took(*jobs: object) -> float:
        scenario = Scenario(*nodes, *jobs, actions=ACTIONS, plugins=PLUGINS)  # type: ignore[arg-type]
        before = time.process_time()
        scenario.run()
        return time.process_time() - before

    good = a_job("good", tasks=5, cpu="1")
    alone = min(took(good) for _ in range(3))
    beside = min(took(good, bad_job("bad", 20_000)) for _ in range(3))
    assert beside < 3 * alone + 0.5
