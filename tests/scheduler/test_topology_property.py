"""Gangs with topologies and sub-groups on random clusters: none spans more than its tier, none is placed in part.

A plain reading of the rules judges what a scenario has settled on, and whether a gang that waits alone had to.
"""

from collections import Counter
from random import Random

import msgspec
import pytest

from tests.reference.networks import Network, Wish, around
from volcano_py.api.meta import ObjectMeta
from volcano_py.testing import Scenario

SEEDS = range(40)
PLUGINS = ("priority", "gang", "predicates", "nodeorder", "network-topology-aware")
ACTIONS = "enqueue, allocate, backfill"


def settled(network: Network, *wishes: Wish) -> dict[str, str]:
    """Return the nodes of pods when nothing changes any more."""
    scenario = Scenario(*network.objects, *(wish.job() for wish in wishes), actions=ACTIONS, plugins=PLUGINS)
    return {pod: node for pod, node in scenario.run().placements.items() if not pod.startswith("old-")}


@pytest.mark.parametrize("overlap", [False, True], ids=["nested", "overlapping"])
@pytest.mark.parametrize("seed", SEEDS)
def test_no_gang_spans_more_than_its_tier_and_none_is_placed_in_part(seed: int, overlap: bool) -> None:
    rng = Random(seed)
    network = Network.at_random(rng, overlap=overlap)
    wishes = [Wish.at_random(rng, f"job{number}", network.top_tier) for number in range(rng.randint(1, 4))]

    placed = settled(network, *wishes)

    assert [problem for wish in wishes for problem in wish.problems(network, placed)] == []
    cpu = {wish.name: wish.cpu for wish in wishes}
    used = Counter[str]()
    for pod, node in placed.items():
        used[node] += cpu[pod.rpartition("-")[0]]
    assert all(used[node] <= network.free[node] for node in used)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_gang_alone_waits_only_if_it_fits_nowhere(seed: int) -> None:
    rng = Random(seed + 1000)
    network = Network.at_random(rng)
    wish = Wish.at_random(rng, "job", network.top_tier)

    placed = settled(network, wish)

    assert bool(placed) == wish.fits(network), wish


@pytest.mark.parametrize("seed", SEEDS)
def test_pods_that_are_lost_and_made_again_return_to_the_domain_of_their_gang(seed: int) -> None:
    """Whatever is lost, a pod, a partition or all of them: there is the same room for them."""
    rng = Random(seed + 2000)
    network = Network.at_random(rng)
    wish = Wish.at_random(rng, "job", network.top_tier)
    scenario = Scenario(*network.objects, wish.job(), actions=ACTIONS, plugins=PLUGINS)
    before = dict(scenario.run().placements)
    if not before:
        return
    lost = rng.sample(sorted(before), rng.randint(1, len(before)))

    scenario.delete(*lost)
    again = [pod for pod in wish.job().pods if pod.metadata.name in lost]
    scenario.add(*(msgspec.structs.replace(pod, metadata=renamed(pod.metadata)) for pod in again))
    after = scenario.run().running_or_bound

    after = {pod: node for pod, node in after.items() if not pod.startswith("old-")}
    assert wish.problems(network, after) == []
    assert after.keys() == before.keys()
    if wish.topology is not None:
        assert set(after.values()) <= around(network, set(before.values()))
    if wish.below is not None:
        for part, nodes in wish.groups(after).items():
            assert set(nodes) <= around(network, set(wish.groups(before)[part]))


def renamed(meta: ObjectMeta) -> ObjectMeta:
    return msgspec.structs.replace(meta, uid=f"{meta.uid}-again")
