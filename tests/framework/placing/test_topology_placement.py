"""Gangs in domains: scenarios, and random clusters against a plain reading of the limits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from volcano_py.api import keys
from volcano_py.testing import a_hyper_node, a_job, a_node, a_pod
from volcano_py.testing.objects import Job
from volcano_py.testing.scenario import Result, Scenario

PLUGINS = [["priority", "gang", "conformance"], ["predicates", "proportion", "binpack", "network-topology-aware"]]
INQUEUE = keys.PHASE_INQUEUE


def hard(tier: int) -> dict[str, Any]:
    return {"mode": "hard", "highestTierAllowed": tier}


def partitioned(size: int, minimum: int, topology: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a policy as the controller of jobs writes it."""
    policy = {
        "name": "w",
        "labelSelector": {"matchLabels": {keys.TASK_SPEC: "w"}},
        "matchLabelKeys": [keys.PARTITION_ID],
        "subGroupSize": size,
        "minSubGroups": minimum,
    }
    return policy | ({"networkTopology": topology} if topology else {})


def racks(count: int, per_rack: int, *, per_block: int = 0, cpu: int = 4) -> list[Any]:
    """Return nodes ``r0-0``, ``r0-1``, ... in racks ``rack-0``, ..., and blocks of racks."""
    nodes = [a_node(f"r{rack}-{node}", cpu=cpu, memory="64Gi") for rack in range(count) for node in range(per_rack)]
    tiers = [a_hyper_node(f"rack-{rack}", 1, [f"r{rack}-{node}" for node in range(per_rack)]) for rack in range(count)]
    for block in range(count // per_block if per_block else 0):
        children = [f"rack-{rack}" for rack in range(block * per_block, (block + 1) * per_block)]
        tiers.append(a_hyper_node(f"block-{block}", 2, children=children))
    return [*nodes, *tiers]


def scenario(*objects: Any, **options: Any) -> Scenario:
    return Scenario(*objects, plugins=PLUGINS, **options)


def racks_of(result: Result, prefix: str) -> set[str]:
    return {node.partition("-")[0] for pod, node in result.running_or_bound.items() if pod.startswith(prefix)}


def test_a_gang_goes_into_one_rack_though_others_have_more_room():
    job = a_job("g", tasks=4, cpu=4, phase=INQUEUE, group_spec={"networkTopology": hard(1)})

    result = scenario(*racks(3, 4), a_pod("other", cpu=4, node="r0-0"), job).run()

    assert len(result.placements) == 4
    assert racks_of(result, "g-") == {"r1"}


def test_a_gang_that_fits_in_no_rack_waits_and_says_which_tier_would_do():
    job = a_job("g", tasks=5, cpu=4, phase=INQUEUE, group_spec={"networkTopology": hard(1)})

    result = scenario(*racks(4, 4, per_block=2), job).run()

    assert not result.placements
    assert result.why_not("g").message.endswith(
        "no HyperNode up to tier 1 has room for 5 more tasks: the best of tier 1 is rack-0 with room for 4; "
        "tier 2 would do: block-0 with room for 5"
    )


def test_a_gang_too_large_for_the_cluster_is_told_that_no_tier_would_do():
    job = a_job("g", tasks=9, cpu=4, phase=INQUEUE, group_spec={"networkTopology": hard(1)})

    result = scenario(*racks(2, 4), job).run()

    assert "no tier would do: the whole cluster has room for 8" in result.why_not("g").message


def test_without_the_plugin_a_topology_has_no_effect():
    job = a_job("g", tasks=5, cpu=4, phase=INQUEUE, group_spec={"networkTopology": hard(1)})

    result = Scenario(*racks(2, 4), job, plugins=["gang", "predicates"]).run()

    assert len(result.placements) == 5
    assert [event.message for event in result.events if event.reason == "TopologyNotEnforced"] == [
        "the network topology is not enforced: no plugin asks for it (network-topology-aware)"
    ]


def test_a_tier_name_that_no_hyper_node_has_limits_nothing_and_users_are_told():
    topology = {"mode": "hard", "highestTierName": "rakc"}
    job = a_job("g", tasks=5, cpu=4, phase=INQUEUE, group_spec={"networkTopology": topology})

    result = scenario(*racks(2, 4), job).run()

    assert len(result.placements) == 5
    assert [event.message for event in result.events if event.reason == "TopologyNotEnforced"] == [
        'no HyperNode has the tierName "rakc", so the topology is not enforced'
    ]


def test_a_soft_topology_takes_the_closest_domain_that_has_room_and_no_domain_if_none_has():
    objects = racks(4, 4, per_block=2)
    small = a_job("s", tasks=6, cpu=4, phase=INQUEUE, group_spec={"networkTopology": {"mode": "soft"}}, created=1)
    large = a_job("t", tasks=10, cpu=4, phase=INQUEUE, group_spec={"networkTopology": {"mode": "soft"}}, created=2)

    result = scenario(*objects, small, large).run()

    assert racks_of(result, "s-") in ({"r0", "r1"}, {"r2", "r3"})
    assert len(result.placements) == 16


def test_among_equal_racks_the_one_with_the_least_room_is_taken():
    job = a_job("g", tasks=2, cpu=1, phase=INQUEUE, group_spec={"networkTopology": hard(1)})
    small = [a_node("r9-0", cpu=2, memory="64Gi"), a_hyper_node("rack-9", 1, ["r9-0"])]
    plugins = [["gang"], ["predicates", {"name": "network-topology-aware", "enabledHyperNodeOrder": False}]]

    result = Scenario(*racks(2, 4), *small, job, plugins=plugins).run()

    assert racks_of(result, "g-") == {"r9"}


def test_each_sub_group_has_its_rack_and_the_job_its_block():
    spec = {"networkTopology": hard(2), "subGroupPolicy": [partitioned(3, 2, hard(1))]}
    job = a_job("g", tasks={"w": 6}, cpu=4, phase=INQUEUE, group_spec=spec, partition_size=3)

    result = scenario(*racks(4, 4, per_block=2), job).run()

    assert len(result.placements) == 6
    first, second = racks_of(result, "g-w-0") | racks_of(result, "g-w-1"), racks_of(result, "g-w-4")
    assert (len(first), len(second)) == (1, 1)
    assert first | second in ({"r0", "r1"}, {"r2", "r3"})


def test_a_sub_group_is_placed_whole_or_not_at_all():
    spec = {"minMember": 3, "subGroupPolicy": [partitioned(3, 1)]}
    job = a_job("g", tasks={"w": 6}, cpu=4, phase=INQUEUE, group_spec=spec, partition_size=3, min_available=3)

    result = scenario(*racks(1, 5), job).run()

    assert len(result.placements) == 3
    assert {pod[-1] for pod in result.placements} in ({"0", "1", "2"}, {"3", "4", "5"})


def test_too_few_sub_groups_place_nothing():
    spec = {"minMember": 3, "subGroupPolicy": [partitioned(3, 2)]}
    job = a_job("g", tasks={"w": 6}, cpu=4, phase=INQUEUE, group_spec=spec, partition_size=3, min_available=3)

    result = scenario(*racks(1, 5), job).run()

    assert not result.placements


def test_a_pod_that_comes_back_returns_to_the_rack_of_its_gang():
    job = a_job("g", tasks=3, cpu=4, phase=INQUEUE, group_spec={"networkTopology": hard(1)})
    played = scenario(*racks(3, 4), a_pod("other", cpu=4, node="r2-0"), job)
    before = racks_of(played.run(), "g-")

    played.delete("g-1", "other")  # rack 2 would now be as good as any
    played.add(a_pod("g-1", group="g", cpu=4, uid="again"))
    after = played.run()

    assert racks_of(after, "g-") == before
    assert len([pod for pod in after.running_or_bound if pod.startswith("g-")]) == 3


# Random clusters


@dataclass
class Case:
    objects: list[Any]
    jobs: list[Job]
    rack_of: dict[str, str]
    block_of: dict[str, str]
    limits: dict[str, int | None]
    sub_limits: dict[str, int | None]


def a_case(seed: int) -> Case:
    random = Random(seed)
    n_racks, per_rack, per_block = random.randint(2, 6), random.randint(1, 4), random.randint(1, 3)
    objects = racks(n_racks, per_rack, per_block=per_block, cpu=random.choice((2, 4, 8)))
    objects += [a_node(f"loose-{n}", cpu=4, memory="64Gi") for n in range(random.randint(0, 2))]
    nodes = [f"r{rack}-{node}" for rack in range(n_racks) for node in range(per_rack)]
    for number in range(random.randint(0, len(nodes))):
        objects.append(a_pod(f"old-{number}", cpu=random.choice((1, 2)), node=random.choice(nodes)))
    jobs, limits, sub_limits = [], {}, {}
    for number in range(random.randint(1, 4)):
        name = f"j{number}"
        limit, own = random.choice((None, 1, 1, 2, 2)), random.choice((None, None, 1))
        size, count = random.randint(1, 4), random.randint(1, 3)
        spec: dict[str, Any] = {} if limit is None else {"networkTopology": hard(limit)}
        if random.random() < 0.5:
            spec["subGroupPolicy"] = [partitioned(size, random.randint(0, count), None if own is None else hard(own))]
            sub_limits[name] = own
        limits[name] = limit
        total = size * count
        minimum = random.choice((total, total, random.randint(1, total)))
        jobs.append(
            a_job(
                name,
                tasks={"w": total},
                min_available=minimum,
                cpu=random.choice((1, 2, 4)),
                phase=INQUEUE,
                created=number,
                group_spec={**spec, "minMember": minimum},
                partition_size=size,
            )
        )
    rack_of = {node: node.partition("-")[0] for node in nodes}
    block_of = {
        node: str(int(rack[1:]) // per_block)
        for node, rack in rack_of.items()
        if int(rack[1:]) // per_block < n_racks // per_block
    }
    return Case(objects, jobs, rack_of, block_of, limits, sub_limits)


def wrong(case: Case, result: Result) -> Iterator[str]:
    """Yield every limit that is broken."""
    where: dict[tuple[str, str], set[str]] = {}
    for job in case.jobs:
        name = job.group.metadata.name
        for pod in job.pods:
            node = result.running_or_bound.get(pod.metadata.name)
            if node is not None:
                where.setdefault((name, ""), set()).add(node)
                if name in case.sub_limits:
                    where.setdefault((name, pod.metadata.labels[keys.PARTITION_ID]), set()).add(node)
        placed = sum(pod.metadata.name in result.running_or_bound for pod in job.pods)
        if 0 < placed < job.group.spec.min_member:
            yield f"{name} is placed in part: {placed}"
    for (name, group), nodes in where.items():
        limit = case.sub_limits[name] if group else case.limits[name]
        tiers = {1: case.rack_of, 2: case.block_of}
        top = 3 if case.block_of else 2  # the tier of the whole cluster
        if (
            limit is not None
            and limit < top
            and not any(
                len({tiers[tier].get(node, node) for node in nodes}) == 1 and nodes <= tiers[tier].keys()
                for tier in range(1, limit + 1)
            )
        ):
            yield f"{name}/{group} with limit {limit} is on {sorted(nodes)}"


@pytest.mark.parametrize("start", range(0, 400, 40))
def test_no_gang_and_no_sub_group_spans_more_than_its_tier(start: int) -> None:
    placed = 0
    for seed in range(start, start + 40):
        case = a_case(seed)
        result = scenario(*case.objects, *case.jobs).run()

        assert list(wrong(case, result)) == [], f"seed {seed}"
        placed += len(result.placements)
    assert placed > 40
