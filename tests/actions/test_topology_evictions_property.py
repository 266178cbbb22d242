"""Gangs with topologies and sub-groups that take room from others on random clusters, judged by a plain reading."""

from random import Random
from typing import Any

import pytest

from tests.reference.networks import Network, Wish
from volcano_py.testing import Scenario, a_group, a_pod, a_priority_class

PLUGINS = ("priority", "gang", "conformance", "predicates", "nodeorder", "network-topology-aware")
SEEDS = range(40)


def others(rng: Random, network: Network) -> list[Any]:
    """Fill rooms with gangs of lower priority; these pods count as gone in `network.free`."""
    free = dict(network.free)
    made: list[Any] = []
    for number in range(rng.randint(1, 8)):
        name, cpu = f"low{number}", rng.randint(1, 2)
        nodes = []
        for _ in range(rng.randint(1, 4)):
            open_to = [node for node in sorted(free) if free[node] >= cpu]
            if open_to:
                nodes.append(rng.choice(open_to))
                free[nodes[-1]] -= cpu
        made.append(a_group(name, min_available=rng.randint(0, len(nodes)), phase="Running", priority_class="low"))
        made += [a_pod(f"{name}-{i}", group=name, cpu=cpu, node=node, priority=1) for i, node in enumerate(nodes)]
    return made


@pytest.mark.parametrize("action", ["preempt", "gangpreempt"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_gang_takes_room_only_where_its_topology_has_it_and_all_that_it_needs(seed: int, action: str) -> None:
    """For a gang action everybody else may be evicted, so the gang runs if it would fit on the nodes without them."""
    rng = Random(seed)
    network = Network.at_random(rng)
    low = others(rng, network)
    wish = Wish.at_random(rng, "job", network.top_tier)
    classes = [a_priority_class("low", 1), a_priority_class("high", 10)]
    scenario = Scenario(
        *classes,
        *network.objects,
        *low,
        wish.job(priority_class="high", priority=10),
        actions=f"enqueue, allocate, {action}, backfill",
        plugins=PLUGINS,
        recreated=False,
    )

    result = scenario.run()

    placed = {pod: node for pod, node in result.placements.items() if pod.startswith("job-")}
    assert wish.problems(network, placed) == []
    assert placed or not result.evictions
    if action == "gangpreempt" or placed:
        assert bool(placed) == wish.fits(network), wish
