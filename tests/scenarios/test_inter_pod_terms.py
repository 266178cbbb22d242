"""Pods that want to stand apart, together or evenly: gangs whole or not at all, and why they wait."""

from collections import Counter
from typing import Any

import pytest

from volcano_py.conf.defaults import BUILT_IN_CONF
from volcano_py.testing import Scenario, a_job, a_namespace, a_node, a_pod, a_service

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED, PREFERRED = (f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred"))


def nodes(*zones: str, cpu: int = 8) -> list[Any]:
    return [a_node(f"n{row}", cpu=cpu, labels={ZONE: zone}) for row, zone in enumerate(zones)]


def term(app: str, key: str) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def apart(app: str, key: str = HOST) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [term(app, key)]}}}


def together(app: str, key: str = ZONE) -> dict[str, Any]:
    return {"affinity": {"podAffinity": {REQUIRED: [term(app, key)]}}}


def even(app: str, key: str = ZONE, when: str = "DoNotSchedule", skew: int = 1) -> dict[str, Any]:
    constraint = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": {"matchLabels": {"app": app}}}]}


def app_job(name: str, tasks: int, spec: dict[str, Any], **options: Any) -> Any:
    return a_job(name, tasks=tasks, cpu=1, labels={"app": name}, spec=spec, **options)


def per_node(placements: dict[str, str]) -> list[int]:
    return sorted(Counter(placements.values()).values())


def per_zone(placements: dict[str, str], *zones: str) -> Counter[str]:
    return Counter(zones[int(node.removeprefix("n"))] for node in placements.values())


@pytest.mark.parametrize("seed", [0, 1])
def test_a_gang_with_anti_affinity_has_one_pod_per_node(seed: int) -> None:
    result = Scenario(*nodes("a", "a", "b", "b"), app_job("ha", 4, apart("ha")), conf=BUILT_IN_CONF, seed=seed).run()

    assert per_node(result.placements) == [1, 1, 1, 1]
    assert len(result.batches) == 1


def test_a_gang_with_anti_affinity_and_too_few_nodes_is_not_placed_at_all_and_says_why() -> None:
    result = Scenario(*nodes("a", "a", "b"), app_job("ha", 4, apart("ha")), conf=BUILT_IN_CONF).run()

    assert result.placements == {}
    assert "3 node(s) didn't match pod anti-affinity rules" in result.why_not("ha").message


def test_two_jobs_with_one_sided_anti_affinity_never_share_a_node_in_either_order() -> None:
    hater, hated = app_job("hater", 2, apart("hated")), app_job("hated", 2, {})
    for jobs in ((hater, hated), (hated, hater)):
        first, second = ({"created": 0.0}, {"created": 1.0})
        named = [
            app_job("hater", 2, apart("hated"), **(first if jobs[0] is hater else second)),
            app_job("hated", 2, {}, **(second if jobs[0] is hater else first)),
        ]
        placed = Scenario(*nodes("a", "a", "a", "a"), *named, conf=BUILT_IN_CONF).run().placements

        assert len(placed) == 4
        assert not {placed["hater-0"], placed["hater-1"]} & {placed["hated-0"], placed["hated-1"]}


def test_a_job_waits_and_says_why_while_pods_with_anti_affinity_to_it_are_on_every_node() -> None:
    guards = [
        a_pod(f"guard-{row}", node=f"n{row}", cpu=1, spec=apart("work"), scheduler="default-scheduler")
        for row in range(2)
    ]

    result = Scenario(*nodes("a", "b"), *guards, app_job("work", 1, {}), conf=BUILT_IN_CONF).run()

    assert "2 node(s) didn't satisfy existing pods anti-affinity rules" in result.why_not("work").message


@pytest.mark.parametrize("zones", [("a", "a", "b", "b"), ("b", "a", "b", "a")])
def test_a_series_with_affinity_to_itself_starts_in_any_zone_and_stays_there(zones: tuple[str, ...]) -> None:
    scenario = Scenario(*nodes(*zones, cpu=3), app_job("mpi", 6, together("mpi")), conf=BUILT_IN_CONF)

    assert sorted(per_zone(scenario.run().placements, *zones).values()) == [6]


def test_a_series_that_does_not_fit_into_one_zone_is_not_placed_at_all() -> None:
    result = Scenario(*nodes("a", "a", "b", "b", cpu=3), app_job("mpi", 7, together("mpi")), conf=BUILT_IN_CONF).run()

    assert result.placements == {}
    assert "2 node(s) didn't match pod affinity rules" in result.why_not("mpi").message


def test_a_pod_with_affinity_waits_until_the_other_app_runs() -> None:
    scenario = Scenario(*nodes("a", "b"), app_job("web", 1, together("db")), conf=BUILT_IN_CONF)
    assert scenario.run().placements == {}

    scenario.add(app_job("db", 1, {"nodeSelector": {ZONE: "b"}}))

    assert scenario.run().placements == {"web-0": "n1", "db-0": "n1"}


@pytest.mark.parametrize("skew", [1, 2])
def test_hard_spread_keeps_zones_even_if_one_is_larger(skew: int) -> None:
    zones = ("a", "a", "a", "b")
    result = Scenario(*nodes(*zones), app_job("web", 8, even("web", skew=skew)), conf=BUILT_IN_CONF).run()

    counts = per_zone(result.placements, *zones)
    assert counts.total() == 8
    assert abs(counts["a"] - counts["b"]) <= skew


def test_hard_spread_stops_once_the_smaller_zone_is_full() -> None:
    zones = ("a", "a", "a", "b")
    job = app_job("web", 12, even("web"), min_available=1)

    result = Scenario(*nodes(*zones, cpu=4), job, conf=BUILT_IN_CONF).run()

    assert per_zone(result.placements, *zones) == {"a": 5, "b": 4}
    assert "3 node(s) didn't match pod topology spread constraints" in result.why_not("web").message


def test_soft_spread_is_even_if_possible_and_otherwise_does_not_block() -> None:
    zones = ("a", "a", "b")
    job = app_job("web", 9, even("web", when="ScheduleAnyway"))

    result = Scenario(*nodes(*zones, cpu=3), job, conf=BUILT_IN_CONF).run()

    assert per_zone(result.placements, *zones) == {"a": 6, "b": 3}


@pytest.mark.parametrize("services", [0, 1])
def test_pods_of_one_service_are_spread_over_zones_even_if_they_do_not_ask_for_it(services: int) -> None:
    """Two nodes of zone a are empty, that of zone b is nearly full: only the service sends pods there."""
    zones = ("a", "a", "b")
    full = a_pod("full", node="n2", cpu=4, labels={"app": "other"}, scheduler="default-scheduler")
    service = [a_service(selector={"app": "web"})] * services

    result = Scenario(*nodes(*zones), full, *service, app_job("web", 4, {}), conf=BUILT_IN_CONF).run()

    assert bool(per_zone(result.placements, *zones)["b"]) == bool(services)


def test_pods_are_placed_near_the_pods_that_they_prefer() -> None:
    wish = {"affinity": {"podAffinity": {PREFERRED: [{"weight": 100, "podAffinityTerm": term("cache", ZONE)}]}}}
    zones = ("a", "a", "b", "b")
    cache = a_pod("cache", node="n3", cpu=1, labels={"app": "cache"}, scheduler="default-scheduler")

    result = Scenario(*nodes(*zones), cache, app_job("web", 4, wish), conf=BUILT_IN_CONF).run()

    assert per_zone({name: node for name, node in result.placements.items() if name != "cache"}, *zones) == {"b": 4}


def test_a_namespace_selector_matches_labels_as_soon_as_they_exist() -> None:
    spec = apart("db")
    spec["affinity"]["podAntiAffinity"][REQUIRED][0]["namespaceSelector"] = {"matchLabels": {"team": "x"}}
    stranger = a_pod("db", namespace="x", node="n0", labels={"app": "db"}, scheduler="default-scheduler")

    def placed(*facts: Any) -> str:
        scenario = Scenario(
            *nodes("a", "a"), *facts, stranger, app_job("web", 1, {**spec, "nodeSelector": {HOST: "n0"}})
        )
        return scenario.run().placements.get("web-0", "")

    assert placed() == "n0"
    assert placed(a_namespace("x", labels={"team": "x"})) == ""
    assert placed(a_namespace("x", labels={"team": "y"})) == "n0"
