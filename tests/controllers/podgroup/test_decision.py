"""Which pods get a PodGroup, and what it looks like."""

from typing import Any

import msgspec
import pytest

from volcano_py.api import keys
from volcano_py.api.core import Pod
from volcano_py.api.meta import OwnerReference
from volcano_py.api.scheduling import PodGroup
from volcano_py.controllers.podgroup import decision
from volcano_py.controllers.podgroup.decision import GroupKey, ReplicaSet, StatefulSet, Workload, WorkloadStatus
from volcano_py.controllers.writes import Create, Delete, Patch
from volcano_py.testing import a_group, a_pod, as_json

OURS = frozenset({"volcano"})
MIN_MEMBER = "scheduling.volcano.sh/group-min-member"


def owned(pod: Pod, kind: str = "ReplicaSet", uid: str = "uid-rs", *, controller: bool = True) -> Pod:
    """Return a pod with an owner."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": uid, "controller": controller}
    return msgspec.convert(as_json(pod, metadata={"ownerReferences": [owner]}), Pod)


def a_workload(
    replicas: int = 2, annotations: dict[str, str] | None = None, kind: type[Workload] = ReplicaSet, **spec: Any
) -> Workload:
    container = {"name": "main", "resources": {"requests": {"cpu": "500m"}}}
    template = {"metadata": {}, "spec": {"schedulerName": "volcano", "containers": [container], **spec}}
    meta = {"name": "web", "namespace": "default", "uid": "uid-rs", "annotations": annotations or {}}
    return msgspec.convert({"metadata": meta, "spec": {"replicas": replicas, "template": template}}, kind)


def with_pods(workload: Workload, pods: int, revision: str = "") -> Workload:
    """Return the workload with a status that counts so many pods."""
    return msgspec.structs.replace(workload, status=WorkloadStatus(replicas=pods, update_revision=revision))


POD_NUM = "scheduling.k8s.io/group-pod-num"
COPIED = "podgroup-e83a32e1-84ae-465b-aa18-1050ed2a2d29"


def an_owned_group(minimum: int = 1, owner: str = "uid-rs", **resources: str) -> PodGroup:
    """Return the PodGroup of a replica set."""
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner}
    group = a_group("podgroup-uid-rs", uid="uid-pg", queue="", min_available=minimum, min_resources=resources, phase="")
    return msgspec.convert(as_json(group, metadata={"resourceVersion": "7", "ownerReferences": [reference]}), PodGroup)


def made(pod: Pod, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the PodGroup that a pod gets."""
    plan = decision.plan(decision.group_key(pod), None, [pod], None, annotations or {})
    assert isinstance(plan.group, Create)
    return dict(plan.group.body)


@pytest.mark.parametrize(
    ("pod", "needs"),
    [
        pytest.param(a_pod(), True, id="bare-pod"),
        pytest.param(a_pod(scheduler="default-scheduler"), False, id="another-scheduler"),
        pytest.param(a_pod(group="g1"), False, id="names-a-group"),
        pytest.param(a_pod(group=COPIED), True, id="copy-of-a-bare-pod"),
        pytest.param(a_pod(group=COPIED, uid=COPIED.removeprefix("podgroup-")), False, id="names-its-own-group"),
        pytest.param(a_pod(group=COPIED, node="n1"), False, id="copy-that-runs"),
        pytest.param(a_pod(group=COPIED, annotations={POD_NUM: "2"}), False, id="gang-without-a-podgroup"),
        pytest.param(a_pod(terminating=True), False, id="terminating"),
        pytest.param(a_pod(phase="Succeeded"), False, id="ended"),
        pytest.param(a_pod(node="n1"), True, id="runs-already"),
    ],
)
def test_our_unfinished_pods_without_a_group_need_one(pod: Pod, needs: bool) -> None:
    assert decision.needs_group(pod, OURS) is needs


def test_a_bare_pod_owns_its_group() -> None:
    group = made(a_pod("p1", uid="u1"))

    assert group["metadata"]["name"] == "podgroup-u1"
    assert group["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p1",
            "uid": "u1",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    assert group["spec"]["minMember"] == 1
    assert group["status"] == {"phase": "Pending"}


def test_pods_of_one_controller_share_a_group_that_it_owns() -> None:
    first, second = owned(a_pod("p1")), owned(a_pod("p2"))

    group = made(first)

    assert decision.group_key(first) == decision.group_key(second) == GroupKey("default", "uid-rs")
    assert group["metadata"]["ownerReferences"] == [
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-rs", "controller": True}
    ]


def test_an_owner_that_does_not_control_a_pod_does_not_count() -> None:
    pod = owned(a_pod("p1", uid="u1"), controller=False)

    assert decision.group_key(pod).name == "podgroup-u1"
    assert made(pod)["metadata"]["ownerReferences"][0]["kind"] == "Pod"


@pytest.mark.parametrize(
    ("written", "minimum"),
    [
        pytest.param(None, 1, id="absent"),
        pytest.param("3", 3, id="number"),
        pytest.param("0", 0, id="zero-is-accepted"),
        pytest.param("-2", 1, id="negative"),
        pytest.param("many", 1, id="no-number"),
        pytest.param("2.5", 1, id="no-integer"),
        pytest.param("9999999999", 1, id="too-large"),
    ],
)
def test_the_minimum_comes_from_the_owner_and_defaults_to_one(written: str | None, minimum: int) -> None:
    annotations = {} if written is None else {MIN_MEMBER: written}

    assert made(owned(a_pod()), annotations)["spec"]["minMember"] == minimum


def test_the_group_requests_the_resources_of_its_minimum() -> None:
    group = made(owned(a_pod(gpu=1, cpu="500m")), {MIN_MEMBER: "3"})

    room = group["spec"]["minResources"]
    assert (room["nvidia.com/gpu"], room["cpu"], room["pods"]) == ("3", "1500m", "3")


def test_queue_and_priority_come_from_the_pod() -> None:
    pod = a_pod(annotations={"scheduling.volcano.sh/queue-name": "ml"}, spec={"priorityClassName": "high"})

    spec = made(pod)["spec"]

    assert (spec["queue"], spec["priorityClassName"]) == ("ml", "high")


def test_without_a_queue_annotation_the_default_of_the_definition_counts() -> None:
    assert "queue" not in made(a_pod())["spec"]


def test_annotations_come_from_the_owner_and_those_of_the_pod_win() -> None:
    pod = owned(
        a_pod(
            annotations={"volcano.sh/preemptable": "true", "volcano.sh/other": "of the pod"},
            labels={"volcano.sh/cooldown-time": "5m", "app": "web"},
        )
    )
    from_owner = {"volcano.sh/preemptable": "false", "volcano.sh/sla-waiting-time": "1h", "else.sh/x": "y"}

    meta = made(pod, from_owner)["metadata"]

    assert meta["annotations"] == {"volcano.sh/preemptable": "true", "volcano.sh/sla-waiting-time": "1h"}
    assert meta["labels"] == {"volcano.sh/cooldown-time": "5m"}


@pytest.mark.parametrize(
    ("mode", "tier", "expected"),
    [
        pytest.param("hard", "2", {"mode": "hard", "highestTierAllowed": 2}, id="both"),
        pytest.param("Soft", None, {"mode": "soft"}, id="mode-in-any-case"),
        pytest.param(None, "1", {"mode": "hard", "highestTierAllowed": 1}, id="hard-by-default"),
        pytest.param(None, None, None, id="none"),
        pytest.param("invalid", "3", {"mode": "hard", "highestTierAllowed": 3}, id="unknown-mode-is-hard"),
        pytest.param("soft", "top", {"mode": "soft"}, id="tier-is-no-number"),
        pytest.param("soft", "-1", {"mode": "soft"}, id="tier-below-zero"),
    ],
)
def test_the_topology_comes_from_the_pod(mode: str | None, tier: str | None, expected: object) -> None:
    written = {
        "volcano.sh/network-topology-mode": mode,
        "volcano.sh/network-topology-highest-tier": tier,
    }

    topology = decision.network_topology({key: text for key, text in written.items() if text is not None})

    assert topology == expected


def test_every_waiting_pod_gets_the_annotation_guarded_by_uid_and_version() -> None:
    pods = [owned(a_pod("p1", uid="u1")), owned(a_pod("p2", uid="u2"))]

    plan = decision.plan(GroupKey("default", "uid-rs"), an_owned_group(), pods, None, {})

    assert plan.group is None
    assert [(patch.name, patch.body["metadata"]["uid"]) for patch in plan.pods] == [("p1", "u1"), ("p2", "u2")]
    assert plan.pods[0].body["metadata"]["annotations"] == {keys.GROUP_NAME: "podgroup-uid-rs"}
    assert "resourceVersion" in plan.pods[0].body["metadata"]


def test_a_group_that_is_there_is_not_made_again() -> None:
    assert decision.plan(GroupKey("default", "uid-rs"), an_owned_group(), [], a_workload(), {}) == decision.Plan(None)


def test_a_workload_without_waiting_pods_gets_no_group() -> None:
    assert decision.plan(GroupKey("default", "uid-rs"), None, [], a_workload(), {}) == decision.Plan(None)


@pytest.mark.parametrize(
    ("group", "phase", "needs"),
    [("podgroup-uid-rs", "Running", True), ("podgroup-uid-rs", "Failed", False), ("another", "Running", False)],
)
def test_a_pod_that_has_not_ended_needs_the_group_that_it_names(group: str, phase: str, needs: bool) -> None:
    assert decision.needs_its_group(a_pod(group=group, phase=phase), GroupKey("default", "uid-rs")) == needs


def test_the_group_of_a_workload_scaled_to_zero_is_deleted() -> None:
    plan = decision.plan(GroupKey("default", "uid-rs"), an_owned_group(), [], a_workload(replicas=0), {})

    assert plan.group == Delete(plan.group.resource, "default", "podgroup-uid-rs", "uid-pg")


@pytest.mark.parametrize(
    ("group", "replicas"),
    [pytest.param(None, 0, id="no-group"), pytest.param(an_owned_group(owner="other"), 0, id="foreign")],
)
def test_only_the_workloads_own_group_is_deleted(group: PodGroup | None, replicas: int) -> None:
    assert decision.plan(GroupKey("default", "uid-rs"), group, [], a_workload(replicas), {}) == decision.Plan(None)


def test_a_new_minimum_of_the_workload_reaches_its_group() -> None:
    group = an_owned_group(1, **{"cpu": "500m", "old.example/x": "1"})

    plan = decision.plan(GroupKey("default", "uid-rs"), group, [], a_workload(), {MIN_MEMBER: "2"})

    assert isinstance(plan.group, Patch)
    assert plan.group.body["metadata"] == {"uid": "uid-pg", "resourceVersion": "7"}
    spec = plan.group.body["spec"]
    assert (spec["minMember"], spec["minResources"]["cpu"], spec["minResources"]["old.example/x"]) == (2, "1", None)


def of_template(workload: Workload, **annotations: str) -> Workload:
    """Return the workload with annotations of its template, written with _ for - and without their prefixes."""
    found = {LONG_NAMES[name]: text for name, text in annotations.items()}
    meta = msgspec.structs.replace(workload.spec.template.metadata, annotations=found, labels=found)
    template = msgspec.structs.replace(workload.spec.template, metadata=meta)
    return msgspec.structs.replace(workload, spec=msgspec.structs.replace(workload.spec, template=template))


LONG_NAMES = {
    "queue": "scheduling.volcano.sh/queue-name",
    "mode": "volcano.sh/network-topology-mode",
    "tier": "volcano.sh/network-topology-highest-tier",
    "preemptable": "volcano.sh/preemptable",
}


def changed(plan: decision.Plan) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a plan changes in the metadata and in the spec of the PodGroup."""
    assert isinstance(plan.group, Patch)
    meta = {name: value for name, value in plan.group.body["metadata"].items() if name in ("annotations", "labels")}
    return meta, dict(plan.group.body["spec"])


def test_a_new_template_reaches_the_group() -> None:
    workload = of_template(a_workload(priorityClassName="high"), queue="q2", mode="soft", tier="2", preemptable="true")

    meta, spec = changed(decision.plan(GroupKey("default", "uid-rs"), an_owned_group(), [], workload, {}))

    preemptable = {"volcano.sh/preemptable": "true"}
    assert meta == {"annotations": preemptable, "labels": preemptable}
    assert spec == {
        "queue": "q2",
        "priorityClassName": "high",
        "networkTopology": {"mode": "soft", "highestTierAllowed": 2, "highestTierName": None},
    }


def test_a_new_annotation_of_the_workload_reaches_the_group() -> None:
    annotations = {"volcano.sh/note": "new", "example.com/x": "y"}

    plan = decision.plan(GroupKey("default", "uid-rs"), an_owned_group(), [], a_workload(), annotations)

    assert changed(plan) == ({"annotations": {"volcano.sh/note": "new"}}, {})


def test_a_group_that_says_the_same_is_not_written() -> None:
    workload = of_template(a_workload(priorityClassName="high"), queue="q2", mode="hard", preemptable="true")
    key, annotations = GroupKey("default", "uid-rs"), {"volcano.sh/note": "a"}
    template = workload.spec.template
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-rs"}
    made = decision.pod_group(key, template.metadata, template.spec, [owner], annotations)
    limit = {**made["spec"]["networkTopology"], "highestTierAllowed": 1}  # the default of a definition
    stored = {**made, "spec": {**made["spec"], "networkTopology": limit}}

    assert decision.plan(key, msgspec.convert(stored, PodGroup), [], workload, annotations) == decision.Plan(None)


def test_what_the_workload_leaves_out_stays_as_it_is() -> None:
    group = a_group("podgroup-uid-rs", queue="q1", min_available=1, min_resources={"cpu": "7"}, priority_class="low")
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-rs"}
    meta = {"ownerReferences": [reference], "annotations": {"example.com/x": "y", "volcano.sh/z": "by hand"}}
    group = msgspec.convert(as_json(group, metadata=meta), PodGroup)

    assert decision.plan(GroupKey("default", "uid-rs"), group, [], a_workload(), {}) == decision.Plan(None)


def with_revision(pod: Pod, revision: str) -> Pod:
    return msgspec.convert(as_json(pod, metadata={"labels": {"controller-revision-hash": revision}}), Pod)


def test_the_requests_follow_a_new_pod_of_the_present_revision() -> None:
    old = with_revision(owned(a_pod("web-1", cpu="1")), "a")
    new = with_revision(owned(a_pod("web-0", cpu="3", uid="uid-new")), "b")
    group, key = an_owned_group(1, cpu="1"), GroupKey("default", "uid-rs")
    workload = with_pods(a_workload(kind=StatefulSet), 2, "b")

    assert decision.plan(key, group, [old], workload, {}).group is None
    _, spec = changed(decision.plan(key, group, [old, new], workload, {}))

    assert spec.keys() == {"minResources"}
    assert spec["minResources"]["cpu"] == "3"


def test_pods_whose_requests_cannot_be_read_get_a_group_all_the_same() -> None:
    assert "minResources" not in made(a_pod(cpu="a lot"))["spec"]


@pytest.mark.parametrize(
    ("spec", "ours"),
    [
        pytest.param({}, True, id="ours"),
        pytest.param({"schedulerName": "default-scheduler"}, False, id="another-scheduler"),
    ],
)
def test_workloads_are_known_by_their_template(spec: dict[str, str], ours: bool) -> None:
    assert decision.makes_our_pods(a_workload(**spec), OURS) is ours


def test_the_minimum_may_stand_on_the_pod_and_that_of_the_owner_goes_before() -> None:
    pod = owned(a_pod(annotations={MIN_MEMBER: "4"}), kind="Custom")

    assert made(pod)["spec"]["minMember"] == 4
    assert made(pod, {MIN_MEMBER: "2"})["spec"]["minMember"] == 2


def test_a_pod_without_an_owner_is_a_gang_of_one_whatever_it_says() -> None:
    """No other pod will ever belong to its PodGroup."""
    group = made(a_pod(gpu=1, annotations={MIN_MEMBER: "4"}))

    assert group["spec"]["minMember"] == 1
    assert group["spec"]["minResources"]["pods"] == "1"


def test_limits_are_part_of_the_resources_of_the_minimum() -> None:
    resources = {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}
    container = {"name": "main", "resources": resources}
    pod = msgspec.convert(as_json(a_pod(), spec={"containers": [container]}), Pod)

    least = made(owned(pod), {MIN_MEMBER: "3"})["spec"]["minResources"]

    assert (least["cpu"], least["requests.cpu"], least["limits.cpu"]) == ("3", "3", "6")


@pytest.mark.parametrize(
    ("replicas", "owner", "minimum"),
    [
        pytest.param(1, "Deployment", 1, id="a-rolling-update-begins"),
        pytest.param(3, "Deployment", 3, id="as-many"),
        pytest.param(9, "Deployment", 3, id="more"),
        pytest.param(0, "Deployment", 3, id="not-seen-yet-or-on-its-way-to-zero"),
        pytest.param(1, "Rollout", 3, id="of-somebody-else"),
        pytest.param(1, "", 3, id="of-nobody"),
    ],
)
def test_a_deployment_is_not_asked_for_more_pods_than_its_replica_set_has(
    replicas: int, owner: str, minimum: int
) -> None:
    key, pod, asked = GroupKey("default", "uid-rs"), owned(a_pod("web-1", cpu="500m")), {MIN_MEMBER: "3"}
    workload = a_workload(replicas, asked)
    owners = [OwnerReference("apps/v1", owner, "web", "uid-web", controller=True)] if owner else []
    meta = msgspec.structs.replace(workload.metadata, owner_references=owners)
    workload = msgspec.structs.replace(workload, metadata=meta)

    first = decision.plan(key, None, [pod], workload, asked).group
    assert isinstance(first, Create)
    assert first.body["spec"]["minMember"] == minimum
    assert first.body["spec"]["minResources"]["cpu"] == f"{minimum * 500}m"

    later = decision.plan(key, an_owned_group(7, cpu="3500m"), [pod], workload, asked).group
    assert isinstance(later, Patch)
    assert later.body["spec"]["minMember"] == minimum


@pytest.mark.parametrize(
    ("kind", "policy", "asked", "status", "never"),
    [
        pytest.param(StatefulSet, "OrderedReady", "3", (1, 0), True, id="one-by-one"),
        pytest.param(StatefulSet, "", "2", (0, 0), True, id="default-policy"),
        pytest.param(StatefulSet, "OrderedReady", "4", (2, 2), True, id="one-more-is-not-enough"),
        pytest.param(StatefulSet, "Parallel", "3", (1, 0), False, id="at-once"),
        pytest.param(StatefulSet, "OrderedReady", "1", (0, 0), False, id="no-gang"),
        pytest.param(StatefulSet, "OrderedReady", "5", (1, 0), False, id="too-few-replicas-is-another-reason"),
        pytest.param(StatefulSet, "OrderedReady", "3", (3, 0), False, id="pods-are-there"),
        pytest.param(StatefulSet, "OrderedReady", "3", (2, 2), False, id="the-new-pod-is-the-last-or-replaces-one"),
        pytest.param(ReplicaSet, "", "3", (1, 0), False, id="replica-set"),
    ],
)
def test_a_stateful_set_that_makes_pods_one_by_one_never_has_its_gang(
    kind: type[Workload], policy: str, asked: str, status: tuple[int, int], never: bool
) -> None:
    made = msgspec.structs.replace(a_workload(4, kind=kind), status=WorkloadStatus(*status))
    workload = msgspec.structs.replace(made, spec=msgspec.structs.replace(made.spec, pod_management_policy=policy))

    text = decision.never_complete(workload, 1, {MIN_MEMBER: asked})
    assert bool(text) is never
    assert not never or "podManagementPolicy: Parallel" in text
