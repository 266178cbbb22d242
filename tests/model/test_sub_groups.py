"""Sub-groups and topologies against plain readings of the rules."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from volcano_py.api import scheduling as wire
from volcano_py.model import sub_groups
from volcano_py.model.hyper_nodes import HyperNode, HyperNodeTree
from volcano_py.model.requirements import Requirement
from volcano_py.model.selectors import EVERYTHING, LabelSelector
from volcano_py.model.statuses import READY_STATUSES, TaskStatus
from volcano_py.model.sub_groups import NetworkTopology, SubGroupId, SubGroupPolicy, TaskCounts, TierLimit, TopologyMode

TREE = HyperNodeTree([HyperNode("rack", 1, "rack"), HyperNode("row", 2, "row"), HyperNode("hall", 4, "hall")])
SELECTORS = {
    "any": None,
    "everything": EVERYTHING,
    "workers": LabelSelector((Requirement("role", "In", ("worker",)),)),
    "no role": LabelSelector((Requirement("role", "DoesNotExist"),)),
}
HARD, SOFT = TopologyMode.HARD, TopologyMode.SOFT

topologies = st.none() | st.builds(
    NetworkTopology,
    st.sampled_from([HARD, SOFT]),
    st.none() | st.integers(0, 6),
    st.sampled_from(["", "rack", "row", "hall", "unknown"]),
)
policies = st.builds(
    SubGroupPolicy,
    name=st.sampled_from(["a", "b"]),
    selector=st.sampled_from(list(SELECTORS.values())),
    match_label_keys=st.lists(st.sampled_from(["part", "shard"]), unique=True).map(tuple),
    size=st.integers(1, 4),
    minimum=st.integers(0, 3),
    topology=topologies,
)
label_maps = st.dictionaries(st.sampled_from(["role", "part", "shard"]), st.sampled_from(["", "worker", "0", "1"]))
statuses = st.sampled_from(list(TaskStatus))


def takes(policy: SubGroupPolicy, labels: dict[str, str]) -> bool:
    """Say whether a policy takes a task, as its fields read."""
    selected = {
        "any": True,
        "everything": True,
        "workers": labels.get("role") == "worker",
        "no role": "role" not in labels,
    }
    which = next(name for name, selector in SELECTORS.items() if selector == policy.selector)
    return selected[which] and bool(policy.match_label_keys) and all(labels.get(key) for key in policy.match_label_keys)


@given(st.lists(policies, max_size=4), label_maps)
def test_a_task_belongs_to_the_first_policy_that_takes_it(found: list[SubGroupPolicy], labels: dict[str, str]) -> None:
    taken = [index for index, policy in enumerate(found) if takes(policy, labels)]

    which = sub_groups.sub_group_of(found, labels)

    assert sub_groups.sub_group_of(found, labels, sub_groups.PolicyIndex(found).candidates(labels)) == which
    if taken:
        values = tuple(labels[key] for key in found[taken[0]].match_label_keys)
        assert which == SubGroupId(taken[0], values)
    else:
        assert which is None


@given(st.lists(st.tuples(statuses, st.booleans()), max_size=8), st.integers(0, 6))
def test_a_sub_group_is_ready_when_enough_of_its_tasks_count(tasks: list[tuple[TaskStatus, bool]], least: int) -> None:
    """A task is a status, and whether it requests nothing."""
    counts = TaskCounts(
        ready=sum(status in READY_STATUSES for status, _ in tasks),
        pipelined=sum(status is TaskStatus.PIPELINED for status, _ in tasks),
        best_effort=sum(status is TaskStatus.PENDING and empty for status, empty in tasks),
    )

    there = ("Allocated", "Binding", "Bound", "Running", "Succeeded")
    ready = [1 for status, empty in tasks if status.label in there or (status.label == "Pending" and empty)]
    waiting = [status for status, _ in tasks if status.label == "Pipelined"]
    assert sub_groups.is_ready(counts, least) == (len(ready) >= least)
    assert sub_groups.is_pipelined(counts, least) == (len(ready) + len(waiting) >= least)


@given(st.lists(policies, max_size=4), st.dictionaries(st.integers(0, 3), st.integers(0, 4)))
def test_a_job_lacks_the_sub_groups_below_the_minimum_of_each_policy(
    found: list[SubGroupPolicy], numbers: dict[int, int]
) -> None:
    missing = sub_groups.too_few(found, numbers)

    for index, policy in enumerate(found):
        enough = numbers.get(index, 0) >= policy.minimum
        assert (index not in missing) == enough
        assert enough or numbers.get(index, 0) + missing[index] == policy.minimum
    assert missing.keys() <= set(range(len(found)))


@given(topologies, st.lists(policies, max_size=3))
def test_no_sub_group_may_wish_for_more_than_its_job_accepts(
    topology: NetworkTopology | None, found: list[SubGroupPolicy]
) -> None:
    job, below = sub_groups.tier_limits(topology, found, TREE)

    assert job == sub_groups.tier_limit(topology, TREE)
    for policy, limit in zip(found, below, strict=True):
        own = sub_groups.tier_limit(policy.topology, TREE)
        if own is None or not own.soft or job is None:
            assert limit == own
        else:
            assert limit is not None
            assert limit.soft
            assert limit.tier == job.tier


@given(topologies, st.lists(policies, max_size=3))
def test_limits_are_those_of_the_topologies_made_hard(
    topology: NetworkTopology | None, found: list[SubGroupPolicy]
) -> None:
    """Topologies with names of tiers are left out: they are made hard before their names are looked up."""
    assume(not any(one and one.highest_tier_name for one in (topology, *(policy.topology for policy in found))))
    job, below = sub_groups.tier_limits(topology, found, TREE)
    hard_job, hard_below = sub_groups.all_hardened(topology, found, TREE.top_tier)

    for limit, hard in zip((job, *below), (hard_job, *hard_below), strict=True):
        tier = None if hard is None or not hard.hard else hard.highest_tier_allowed
        assert (None if limit is None else limit.tier) == tier


@pytest.mark.parametrize(
    ("topology", "limit"),
    [
        pytest.param(None, None, id="none"),
        pytest.param(NetworkTopology(HARD, 0), TierLimit(0), id="hard-tier-zero"),
        pytest.param(NetworkTopology(HARD, 9), TierLimit(9), id="hard-tier-above-all"),
        pytest.param(NetworkTopology(HARD, None, "row"), TierLimit(2), id="hard-by-name"),
        pytest.param(NetworkTopology(HARD, 1, "row"), TierLimit(1), id="the-number-counts-before-the-name"),
        pytest.param(NetworkTopology(HARD), None, id="hard-without-a-tier-limits-nothing"),
        pytest.param(NetworkTopology(SOFT), TierLimit(5, soft=True), id="soft-accepts-the-whole-cluster"),
        pytest.param(NetworkTopology(SOFT, 1), TierLimit(5, soft=True), id="the-tier-of-a-soft-one-does-not-count"),
        pytest.param(
            NetworkTopology(HARD, None, "pod"),
            TierLimit(5, soft=True, problem='no HyperNode has the tierName "pod", so the topology is not enforced'),
            id="a-name-that-no-hyper-node-has-is-a-wish",
        ),
    ],
)
def test_the_limit_of_a_topology(topology: NetworkTopology | None, limit: TierLimit | None) -> None:
    assert sub_groups.tier_limit(topology, TREE) == limit


@pytest.mark.parametrize(
    ("values", "index"),
    [([], 0), (["7"], 7), (["-3", "8"], -3), (["+4"], 4), (["x"], 0), (["1_0"], 0), ([" 1"], 0), (["9" * 19], 0)],
)
def test_the_first_label_value_gives_the_place_if_it_is_a_number(values: list[str], index: int) -> None:
    assert sub_groups.match_index(values) == index


def test_values_that_are_too_long_are_shortened_to_a_hash() -> None:
    """FNV-1a of 32 bits over no bytes and over the letter a: the published values."""
    assert sub_groups.sub_group_name("ns/j", "p", ["v" * 128]) == f"ns/j/p-{'v' * 128}"
    assert sub_groups.sub_group_name("ns/j", "p", ["v" * 129]) == f"ns/j/p-{fnv1a('v' * 129)}"
    assert fnv1a("") == 0x811C9DC5
    assert fnv1a("a") == 0xE40C292C


def fnv1a(text: str) -> int:
    found = 2166136261
    for byte in text.encode():
        found = ((found ^ byte) * 16777619) % 2**32
    return found


def test_a_sub_group_is_named_after_job_policy_and_values_and_has_the_needs_of_its_policy() -> None:
    topology = NetworkTopology(HARD, 1)
    policy = SubGroupPolicy("worker", None, ("part", "shard"), size=4, topology=topology)

    found = sub_groups.sub_group("ns/j", [policy], SubGroupId(0, ("3", "b")))

    assert (found.job, found.group_id, found.id) == ("ns/j", "ns/j/worker", "ns/j/worker-3-b")
    assert (found.min_available, found.match_index, found.topology) == (4, 3, topology)


def test_tasks_that_no_policy_takes_form_the_sub_group_of_the_job() -> None:
    topology = NetworkTopology(SOFT)

    alone = sub_groups.own_sub_group("ns/j", 5, topology, ())
    beside = sub_groups.own_sub_group("ns/j", 5, topology, [SubGroupPolicy("worker")])

    assert (alone.id, alone.min_available, alone.topology) == ("ns/j", 5, topology)
    assert (beside.id, beside.min_available, beside.topology) == ("ns/j", 1, topology)


def read(written: dict[str, Any]) -> SubGroupPolicy:
    return sub_groups.sub_group_policy(msgspec.convert(written, wire.SubGroupPolicy), "spec.subGroupPolicy[2]")


def test_a_policy_is_read_with_its_defaults() -> None:
    assert read({"name": "a", "networkTopology": {}}) == SubGroupPolicy("a", topology=NetworkTopology(HARD))
    assert read(
        {
            "name": "a",
            "labelSelector": {"matchLabels": {"role": "worker"}},
            "matchLabelKeys": ["part"],
            "subGroupSize": 0,
            "minSubGroups": 3,
            "networkTopology": {"mode": "soft", "highestTierName": "row"},
        }
    ) == SubGroupPolicy("a", SELECTORS["workers"], ("part",), 0, 3, NetworkTopology(SOFT, None, "row"))


@pytest.mark.parametrize(
    ("written", "field"),
    [
        (
            {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
            "labelSelector.matchExpressions[0]",
        ),
        ({"networkTopology": {"mode": "firm"}}, "networkTopology.mode: 'firm' is not a mode: use one of hard, soft"),
    ],
)
def test_a_policy_that_cannot_be_read_names_the_field(written: dict[str, Any], field: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(f"spec.subGroupPolicy[2].{field}")):
        read(written)


def test_a_task_asks_only_the_policies_whose_label_it_has() -> None:
    """Thousands of tasks wait, and each of them would ask hundreds of policies in every cycle."""
    written = [{"labelSelector": {"matchLabels": {"task": f"t{i}"}}, "matchLabelKeys": ["part"]} for i in range(200)]
    written.append({"labelSelector": {"matchExpressions": [{"key": "task", "operator": "Exists"}]}})
    index = sub_groups.PolicyIndex([read(one) for one in written])

    assert index.candidates({"task": "t7", "part": "1"}) == [7, 200]
