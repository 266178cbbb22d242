"""Pods without a topology go where domains are fullest."""

import pytest

from volcano_py.testing import Scenario, a_hyper_node, a_job, a_node, a_pod

PLUGIN = ({"name": "network-topology-aware", "arguments": {"hypernode.binpack.normal-pod.fading": 0.5}},)


@pytest.mark.parametrize(("upper", "chosen"), [(2, "full-row"), (3, "full-rack")])
def test_a_tier_counts_by_its_number_and_not_by_its_place(upper: int, chosen: str) -> None:
    """A row of tier 2 counts half as much as a rack of tier 1, and one of tier 3 a quarter."""
    racks = {"full-rack": 1.0, "a": 0.0, "full-row": 0.0, "b": 6.0}
    scenario = Scenario(
        *(a_node(name, cpu=8) for name in racks),
        *(a_hyper_node(f"rack-{name}", 1, [name]) for name in racks),
        a_hyper_node("row-1", upper, [], children=["rack-full-rack", "rack-a"]),
        a_hyper_node("row-2", upper, [], children=["rack-full-row", "rack-b"]),
        *(a_pod(f"on-{name}", node=name, cpu=cpu) for name, cpu in racks.items() if cpu),
        a_job("new", tasks=1, cpu=4),
        plugins=["predicates", *PLUGIN],
    )
    assert scenario.run().placements == {"new-0": chosen}
