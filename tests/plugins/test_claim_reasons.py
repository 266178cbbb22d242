"""Which reasons a node gives to a pod with volume claims, and in what order: T-ACC of the reference, with claims."""

from typing import Any

import pytest

from volcano_py.testing import Scenario, a_job, a_node, a_pod
from volcano_py.testing.storage import (
    a_claim,
    a_csi_driver,
    a_csi_node,
    a_local_class,
    a_storage_class,
    a_volume,
    with_claims,
)

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
NO_ZONE = "node(s) had no available volume zone"
TOO_MANY = "node(s) exceed max volume count"
NO_FRIEND = "node(s) didn't match pod affinity rules"
AN_ENEMY = "node(s) didn't match pod anti-affinity rules"
NO_LABEL = "node(s) didn't match pod topology spread constraints (missing required label)"
TOO_SKEWED = "node(s) didn't match pod topology spread constraints"
OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
UNBOUND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
APP = {"app": "s"}


def said(*objects: Any, claims: tuple[str, ...] = ("data",), **spec: Any) -> str:
    """Return what a pod with these claims says about two nodes; each runs a pod of its app, a third node runs none."""
    nodes = [a_node(name, labels={ZONE: "a", HOST: name}) for name in ("n1", "n2")]
    standing = [a_pod(f"e-{node.metadata.name}", node=node.metadata.name, labels=APP) for node in nodes]
    third = a_node("n3", labels={ZONE: "c", HOST: "n3"}, unschedulable=True)
    job = a_job("j", cpu=1, labels=APP, spec={**with_claims(*claims), **spec})
    message = Scenario(*nodes, third, *standing, a_storage_class(), *objects, job).run().conditions["j-0"]
    start, end = "0/3 nodes are unavailable: 1 node(s) were unschedulable, ", "."
    assert message.startswith(start)
    return message.removeprefix(start).removesuffix(end)


def bound(name: str = "data", **options: Any) -> tuple[Any, Any]:
    """Return a claim and its volume."""
    return a_claim(name, volume=f"v-{name}"), a_volume(f"v-{name}", claim=name, **options)


def spread(key: str) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": {"matchLabels": APP}}]}


def required(kind: str, app: str) -> dict[str, Any]:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


ELSEWHERE = bound(labels={ZONE: "b"})
NONE_LEFT = (a_claim(), a_csi_node("n1", **{"csi.example.com": 0}), a_csi_node("n2", **{"csi.example.com": 0}))
LOCAL = (a_claim(storage_class="local"), a_local_class(), a_volume(storage_class="local", node="n3"))
WANTS_OTHERS, WANTS_NONE = required("podAffinity", "other"), required("podAntiAffinity", "s")


@pytest.mark.parametrize(
    ("objects", "spec", "reasons"),
    [
        pytest.param(ELSEWHERE, spread("rack"), [NO_ZONE], id="zone-hides-a-missing-label"),
        pytest.param(ELSEWHERE, spread(HOST), [NO_ZONE], id="zone-hides-skew"),
        pytest.param(ELSEWHERE, WANTS_OTHERS, [NO_FRIEND], id="affinity-hides-zone"),
        pytest.param(ELSEWHERE, WANTS_NONE, [AN_ENEMY, NO_ZONE], id="anti-affinity-hides-nothing"),
        pytest.param(NONE_LEFT, WANTS_OTHERS, [NO_FRIEND], id="affinity-hides-limits"),
        pytest.param(NONE_LEFT, WANTS_NONE, [AN_ENEMY, TOO_MANY], id="anti-affinity-and-limits"),
        pytest.param(NONE_LEFT, spread(HOST), [TOO_SKEWED, TOO_MANY], id="limits-and-skew"),
        pytest.param(NONE_LEFT, spread("rack"), [NO_LABEL, TOO_MANY], id="limits-come-before-a-missing-label"),
        pytest.param(bound(affinity={ZONE: ["b"]}), spread("rack"), [NO_LABEL], id="a-missing-label-hides-binding"),
        pytest.param(LOCAL, spread("rack"), [NO_LABEL], id="a-missing-label-hides-local-volumes"),
        pytest.param(LOCAL, WANTS_OTHERS, [NO_FRIEND], id="affinity-hides-local-volumes"),
        pytest.param(LOCAL, spread(HOST), [UNBOUND, TOO_SKEWED], id="skew-hides-nothing"),
    ],
)
def test_a_node_gives_no_reason_after_one_that_no_eviction_resolves(
    objects: tuple[Any, ...], spec: dict[str, Any], reasons: list[str]
) -> None:
    assert said(*objects, **spec) == ", ".join(f"2 {reason}" for reason in reasons)


def test_a_disk_in_use_is_asked_for_after_affinity() -> None:
    disk = {"volumes": [{"name": "d", "gcePersistentDisk": {"pdName": "d"}}]}
    standing = [a_pod(f"d-{node}", node=node, spec=disk) for node in ("n1", "n2")]

    assert said(*standing, claims=(), **disk) == "2 node(s) had no available disk"
    assert said(*standing, claims=(), **disk, **WANTS_OTHERS) == f"2 {NO_FRIEND}"


FAR = bound(affinity={ZONE: ["b"]})
FULL = (a_claim("other"), a_csi_driver())
NONE_MADE = (a_claim("other", storage_class="local"), a_local_class())


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param((*FAR, *NONE_MADE), f"{OUT_OF_REACH}, {UNBOUND}", id="affinity-and-bind"),
        pytest.param((*FAR, *FULL), f"{OUT_OF_REACH}, {NO_SPACE}", id="affinity-and-space"),
        pytest.param((*FAR, *bound("other")), OUT_OF_REACH, id="affinity-alone"),
        pytest.param((*bound(), *NONE_MADE), UNBOUND, id="bind-alone"),
        pytest.param((*bound(), *FULL), NO_SPACE, id="space-alone"),
        pytest.param(
            (a_claim(selected_node="n1"), a_claim("other", selected_node="n2"), a_csi_driver()),
            UNBOUND,
            id="a-node-that-is-not-selected-is-not-asked-for-space",
        ),
    ],
)
def test_what_volume_binding_has_against_a_node_counts_as_one_reason(objects: tuple[Any, ...], reason: str) -> None:
    assert said(*objects, claims=("data", "other")) == f"2 {reason}"


@pytest.mark.parametrize(
    ("order", "objects", "reason"),
    [
        pytest.param(("made", "other"), NONE_MADE, f"{UNBOUND}, {GONE}", id="bind-and-missing"),
        pytest.param(("made", "other"), FULL, f"{NO_SPACE}, {GONE}", id="space-and-missing"),
        pytest.param(("made", "data"), FAR, GONE, id="missing-comes-before-affinity"),
        pytest.param(("data", "made"), FAR, OUT_OF_REACH, id="affinity-comes-before-missing"),
    ],
)
def test_the_first_bound_claim_that_fails_gives_the_reason(
    order: tuple[str, ...], objects: tuple[Any, ...], reason: str
) -> None:
    made: dict[str, Any] = {"name": "made", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    plain = {one["name"]: one for one in with_claims("data", "other")["volumes"]}
    volumes = [made if name == "made" else plain[name] for name in order]
    job = a_job("j", cpu=1, spec={"volumes": volumes})
    claim = a_claim("j-0-made", volume="gone", owner=job.pods[0].metadata.uid)

    result = Scenario(a_node("n1", labels={ZONE: "a"}), a_storage_class(), claim, *objects, job).run()

    assert result.conditions["j-0"] == f"0/1 nodes are unavailable: 1 {reason}."


NEITHER, BY_ZONE, BY_LIMITS, BY_ALL = "neither", "zone", "limits", "all"
NOT_FOUND = 'persistentvolumeclaim "data" not found'


def without_binding(asked: str, *objects: Any, spec: dict[str, Any] | None = None) -> str:
    """Return why a pod waits if claims get no volumes and only these filters about claims are asked; "" if it runs."""
    enabled = {"VolumeZone": asked in (BY_ZONE, BY_ALL), "NodeVolumeLimits": asked in (BY_LIMITS, BY_ALL)}
    switches = {f"predicate.{name}Enable": on for name, on in (enabled | {"VolumeBinding": False}).items()}
    plugins = ["gang", {"name": "predicates", "arguments": switches}]
    job = a_job("j", cpu=1, spec=with_claims("data") if spec is None else spec)
    result = Scenario(a_node("n1"), *objects, job, plugins=plugins).run()
    assert bool(result.placements) != bool(result.conditions)
    return result.conditions.get("j-0", "").removeprefix("0/1 nodes are unavailable: ").removesuffix(".")


@pytest.mark.parametrize(
    ("objects", "by_zone", "by_limits"),
    [
        pytest.param((), NOT_FOUND, NOT_FOUND, id="no-claim"),
        pytest.param((a_claim(volume="gone"),), 'persistentvolume "gone" not found', "", id="no-volume"),
        pytest.param(
            (a_claim(), a_storage_class(wait=False)), "PersistentVolume had no name", "", id="an-immediate-claim"
        ),
        pytest.param(
            (a_claim(storage_class=""),),
            "PersistentVolumeClaim had no pv name and storageClass name",
            "",
            id="no-storage-class",
        ),
        pytest.param((a_claim(),), 'storageclass.storage.k8s.io "fast" not found', "", id="an-unknown-storage-class"),
        pytest.param((a_claim(), a_storage_class()), "", "", id="a-claim-that-waits-for-its-pod"),
        pytest.param((a_claim(volume="v1", bound=False), a_volume(claim="data")), "", "", id="a-volume-not-yet-bound"),
        pytest.param((a_claim(volume="v1", terminating=True), a_volume(claim="data")), "", "", id="being-deleted"),
    ],
)
def test_without_volume_binding_the_other_filters_refuse_the_claims_that_they_cannot_read(
    objects: tuple[Any, ...], by_zone: str, by_limits: str
) -> None:
    assert without_binding(BY_ZONE, *objects) == by_zone
    assert without_binding(BY_LIMITS, *objects) == by_limits
    assert without_binding(BY_ALL, *objects) == (by_zone or by_limits)
    assert without_binding(NEITHER, *objects) == ""


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param((), 'persistentvolumeclaim "j-0-data" not found', id="not-made-yet"),
        pytest.param(
            (a_claim("j-0-data", owner="another"),),
            "PVC default/j-0-data was not created for pod default/j-0 (pod is not owner)",
            id="of-another-pod",
        ),
    ],
)
def test_without_volume_binding_only_the_limits_look_at_ephemeral_claims(objects: tuple[Any, ...], reason: str) -> None:
    spec = {"volumes": [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}

    assert without_binding(BY_ZONE, *objects, spec=spec) == ""
    assert without_binding(BY_LIMITS, *objects, spec=spec) == reason


def test_without_volume_binding_the_claim_that_comes_later_lets_the_pod_go() -> None:
    plugins = ["gang", {"name": "predicates", "arguments": {"predicate.VolumeBindingEnable": False}}]
    scenario = Scenario(a_node("n1"), a_storage_class(), a_job("j", cpu=1, spec=with_claims("data")), plugins=plugins)
    assert scenario.run().placements == {}

    scenario.add(a_claim())

    assert scenario.run().placements == {"j-0": "n1"}
