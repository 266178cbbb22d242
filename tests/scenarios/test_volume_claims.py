"""Pods with volume claims: where they go, what prepares their binds, and why they wait."""

from typing import Any

import pytest

from volcano_py.model.decisions import BindClaim, ProvisionClaim
from volcano_py.testing import Scenario, a_group, a_job, a_node, a_pod, run_scenario
from volcano_py.testing.scenario import Result
from volcano_py.testing.storage import a_claim, a_csi_node, a_local_class, a_storage_class, a_volume, with_claims


def gang(n: int, *claims: str, **options: Any) -> list[Any]:
    """Return a gang of pods p0, p1, ... with one claim each, called like the pod, and further common claims."""
    return [
        a_group("g", min_available=n),
        *(a_pod(f"p{i}", group="g", cpu=1, spec=with_claims(f"p{i}", *claims), **options) for i in range(n)),
    ]


def run(*objects: Any, **options: Any) -> Result:
    return Scenario(*objects, **options).run()


def test_a_gang_with_claims_to_provision_is_placed_and_each_claim_gets_its_node() -> None:
    claims = [a_claim(f"p{i}") for i in range(3)]

    result = run(a_node("n1", cpu=2), a_node("n2", cpu=2), a_storage_class(), *claims, *gang(3))

    assert sorted(result.placements) == ["p0", "p1", "p2"]
    assert result.prepared == [
        ProvisionClaim("default", pod, f"uid-claim-default-{pod}", result.placements[pod]) for pod in ("p0", "p1", "p2")
    ]


def test_pods_go_where_free_volumes_are_and_no_volume_is_promised_twice() -> None:
    nodes = [a_node(f"n{i}") for i in range(6)]
    volumes = [a_volume(f"v{i}", storage_class="local", node=f"n{i}") for i in (1, 3, 5)]
    claims = [a_claim(f"p{i}", storage_class="local") for i in range(3)]

    result = run(*nodes, a_local_class(), *volumes, *claims, *gang(3))

    assert sorted(result.placements.values()) == ["n1", "n3", "n5"]
    steps = {step.claim: step.volume for step in result.prepared if isinstance(step, BindClaim)}
    assert {pod: f"n{volume[1:]}" for pod, volume in steps.items()} == result.placements


def test_a_gang_waits_if_there_are_too_few_volumes_and_says_so() -> None:
    nodes = [a_node(f"n{i}") for i in range(4)]
    volumes = [a_volume(f"v{i}", storage_class="local", node=f"n{i}") for i in (1, 3)]
    claims = [a_claim(f"p{i}", storage_class="local") for i in range(3)]

    result = run(*nodes, a_local_class(), *volumes, *claims, *gang(3))

    assert result.placements == {}
    assert result.prepared == []
    assert "4 node(s) didn't find available persistent volumes to bind" in result.why_not("g").message


def test_a_bound_claim_keeps_its_pod_where_its_volume_is() -> None:
    nodes = [a_node(f"n{i}", labels={"zone": f"z{i % 2}"}) for i in range(4)]
    volume = a_volume("v", affinity={"zone": ["z1"]}, claim="p0")

    result = run(*nodes, a_storage_class(), volume, a_claim("p0", volume="v"), *gang(1))

    assert result.placements["p0"] in ("n1", "n3")
    assert result.prepared == []


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        pytest.param([], 'persistentvolumeclaim "p0" not found', id="missing"),
        pytest.param(
            [a_claim("p0", storage_class="now"), a_storage_class("now", wait=False)],
            "pod has unbound immediate PersistentVolumeClaims",
            id="immediate",
        ),
        pytest.param(
            [a_claim("p0", storage_class="unknown")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="no-class",
        ),
        pytest.param([a_claim("p0", terminating=True)], 'persistentvolumeclaim "p0" is being deleted', id="deleting"),
        pytest.param(
            [a_claim("p0", volume="gone", phase="Lost")],
            'persistentvolumeclaim "p0" bound to non-existent persistentvolume "gone"',
            id="lost",
        ),
        pytest.param(
            [a_claim("p0", volume="reserved", bound=False), a_volume("reserved", claim="p0")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="prebound",
        ),
    ],
)
def test_a_pod_whose_claim_cannot_be_used_waits_and_says_why(objects: list[Any], text: str) -> None:
    scenario = Scenario(a_node("n1"), a_storage_class(), *objects, *gang(1))

    result = scenario.run()

    assert result.placements == {}
    assert f"0/1 nodes are unavailable: {text}." in result.why_not("g").message
    assert result.conditions["p0"].startswith("0/1 nodes are unavailable") or text in result.conditions["p0"]


def test_the_claim_that_comes_later_lets_the_pod_go() -> None:
    scenario = Scenario(a_node("n1"), a_storage_class(), *gang(1))
    assert scenario.run().placements == {}

    scenario.add(a_claim("p0"))

    assert scenario.run().placements == {"p0": "n1"}


def test_without_the_filter_pods_are_placed_and_nothing_is_prepared() -> None:
    plugins = ("gang", {"name": "predicates", "arguments": {"predicate.VolumeBindingEnable": False}})

    result = run(a_node("n1"), a_storage_class(), a_claim("p0"), *gang(1), plugins=plugins)

    assert result.placements == {"p0": "n1"}
    assert result.prepared == []


def test_jobs_without_claims_are_placed_beside_one_that_waits_for_its_claim() -> None:
    result = run_scenario(
        nodes=[a_node("n1")], jobs=[a_job("other", tasks=2, cpu=1)], groups=gang(1)[:1], pods=gang(1)[1:]
    )

    assert sorted(result.placements) == ["other-0", "other-1"]


@pytest.mark.parametrize(("operator", "placed"), [("In", False), ("NotIn", True)])
def test_a_volume_sees_labels_of_nodes_and_no_names(operator: str, placed: bool) -> None:
    field = {"key": "metadata.name", "operator": operator, "values": ["n1" if operator == "In" else "n2"]}
    here = {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchFields": [field]}]}}}
    claims = [a_claim("p0", volume="v")]

    result = run(a_node("n1"), a_storage_class(), *claims, a_volume("v", claim="p0", spec=here), *gang(1))

    assert result.placements == ({"p0": "n1"} if placed else {})


def twins(*names: str) -> list[Any]:
    """Return claims and their volumes, which all have the same handle."""
    volumes = [a_volume(f"v-{name}", claim=name, driver="csi.example.com", handle="one") for name in names]
    return [*volumes, *(a_claim(name, volume=f"v-{name}") for name in names)]


def limited(*nodes: str) -> list[Any]:
    """Return nodes that can use one volume each."""
    return [one for name in nodes for one in (a_node(name), a_csi_node(name, csi_example_com=1))]


def test_volumes_with_one_handle_count_once_on_a_node() -> None:
    there = a_pod("there", node="n1", spec=with_claims("a"))

    assert run(*limited("n1"), a_storage_class(), *twins("a", "p0"), there, *gang(1)).placements == {"p0": "n1"}


def test_pods_of_a_gang_whose_volumes_have_one_handle_go_to_one_node() -> None:
    assert run(*limited("n1"), a_storage_class(), *twins("p0", "p1"), *gang(2)).placements == {"p0": "n1", "p1": "n1"}


def test_other_volumes_still_count() -> None:
    other = [a_volume("v-b", claim="b", driver="csi.example.com", handle="two"), a_claim("b", volume="v-b")]
    there = a_pod("there", node="n1", spec=with_claims("b"))

    assert run(*limited("n1"), a_storage_class(), *twins("a", "p0"), *other, there, *gang(1)).placements == {}


def test_a_volume_that_was_made_counts_in_the_next_cycle() -> None:
    nodes = limited("n1", "n2")
    claims = [a_claim(f"p{i}") for i in range(4)]
    singles = [one for i in range(4) for one in (a_pod(f"p{i}", group="g", cpu="10m", spec=with_claims(f"p{i}")),)]

    result = run(*nodes, a_storage_class(), *claims, a_group("g"), *singles)

    assert sorted(result.placements.values()) == ["n1", "n2"]
