from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from volcano_py.api import keys
from volcano_py.api.core import ContainerStatus, Pod, PodStatus, ResourceRequirements
from volcano_py.api.meta import Condition
from volcano_py.cache.fields import seconds
from volcano_py.cache.pods import ShapeReader, shape_of, task_record, task_status, unsupported
from volcano_py.model.objects import TaskTrait
from volcano_py.model.shape import HostPort, NodeTerm, PreferredTerm, Requirement, Shape, Tolerance
from volcano_py.model.statuses import TaskStatus
from volcano_py.testing import a_pod

OURS = frozenset({"volcano"})
SINCE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("pod", "status"),
    [
        pytest.param(a_pod(), TaskStatus.PENDING, id="pending"),
        pytest.param(a_pod(node="n1", phase="Pending"), TaskStatus.BOUND, id="pending-on-a-node"),
        pytest.param(a_pod(node="n1"), TaskStatus.RUNNING, id="running"),
        pytest.param(a_pod(terminating=True), TaskStatus.RELEASING, id="pending-and-terminating"),
        pytest.param(a_pod(node="n1", terminating=True), TaskStatus.RELEASING, id="running-and-terminating"),
        pytest.param(a_pod(node="n1", phase="Succeeded"), TaskStatus.SUCCEEDED, id="succeeded"),
        pytest.param(
            a_pod(node="n1", phase="Failed", terminating=True), TaskStatus.FAILED, id="failed-ends-everything"
        ),
        pytest.param(a_pod(node="n1", phase="Unknown"), TaskStatus.UNKNOWN, id="unknown"),
        pytest.param(a_pod(node="n1", phase="Unknown", terminating=True), TaskStatus.UNKNOWN, id="unknown-terminating"),
        pytest.param(a_pod(phase="Suspended"), TaskStatus.UNKNOWN, id="a-phase-nobody-knows"),
    ],
)
def test_the_status_follows_phase_node_and_deletion(pod: Pod, status: TaskStatus) -> None:
    assert task_status(pod) is status


def test_a_record_holds_the_properties_of_a_pod() -> None:
    pod = a_pod(
        "p", namespace="ml", uid="u", group="train", role="worker", priority=7, created=5, why_pending="no room"
    )

    record = task_record(pod, OURS)

    assert (record.uid, record.namespace, record.name, record.job) == ("u", "ml", "p", "train")
    assert (record.role, record.priority, record.condition, record.foreign) == ("worker", 7, "no room", False)
    assert record.creation == datetime(2024, 1, 1, 0, 0, 5, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("spec", "annotation", "priority"),
    [
        pytest.param(None, None, 1, id="one-when-absent"),
        pytest.param(0, None, 0, id="zero-is-not-absent"),
        pytest.param(5, "-3", -3, id="the-annotation-replaces"),
        pytest.param(None, "9", 9, id="the-annotation-alone"),
        pytest.param(5, "high", 5, id="not-an-integer"),
        pytest.param(5, "1_0", 5, id="not-an-integer-to-others"),
        pytest.param(5, "99999999999", 5, id="too-large-for-a-priority"),
    ],
)
def test_priority(spec: int | None, annotation: str | None, priority: int) -> None:
    annotations = {} if annotation is None else {"volcano.sh/task-priority": annotation}

    assert task_record(a_pod(priority=spec, annotations=annotations), OURS).priority == priority


def test_a_priority_that_does_not_fit_is_named() -> None:
    with pytest.raises(ValueError, match=r"spec\.priority: 4294967296 does not fit in 32 bits: write a smaller number"):
        task_record(a_pod(priority=2**32), OURS)


def test_the_role_may_be_a_label() -> None:
    key = "volcano.sh/task-spec"

    assert task_record(a_pod(labels={key: "ps"}), OURS).role == "ps"
    assert task_record(a_pod(labels={key: "ps"}, annotations={key: "worker"}), OURS).role == "worker"


def test_an_empty_group_annotation_names_no_group() -> None:
    assert task_record(a_pod(annotations={"scheduling.k8s.io/group-name": ""}), OURS).job is None


@pytest.mark.parametrize(
    ("type_", "status"), [("PodScheduled", "True"), ("Ready", "False")], ids=["it-is-true", "another-condition"]
)
def test_only_the_reason_why_a_pod_is_not_scheduled_is_kept(type_: str, status: str) -> None:
    pod = msgspec.structs.replace(
        a_pod(), status=PodStatus(conditions=[Condition(type=type_, status=status, message="something else")])
    )

    assert task_record(pod, OURS).condition == ""


@pytest.mark.parametrize(("reason", "read"), [("Schedulable", ""), ("Unschedulable", "once there is room")])
def test_a_reason_that_autoscalers_do_not_read_counts_as_none_if_asked_for(reason: str, read: str) -> None:
    shown = Condition(type="PodScheduled", status="False", reason=reason, message="once there is room")
    pod = msgspec.structs.replace(a_pod(), status=PodStatus(conditions=[shown]))

    assert task_record(pod, OURS).condition == "once there is room"
    assert task_record(pod, OURS, only_unschedulable=True).condition == read


def test_a_pod_that_asks_for_another_scheduler_is_foreign() -> None:
    assert task_record(a_pod(scheduler="default-scheduler"), OURS).foreign
    assert not task_record(a_pod(scheduler="mine"), {"volcano", "mine"}).foreign


def test_a_time_without_a_zone_is_utc() -> None:
    assert seconds(datetime(2024, 1, 1)) == seconds(datetime(2024, 1, 1, tzinfo=UTC))  # noqa: DTZ001 - the point
    assert seconds(None) == 0.0


def test_a_shape_holds_every_field_that_an_answer_may_depend_on() -> None:
    pod = a_pod(
        cpu=2,
        memory="1Gi",
        gpu=1,
        spec={
            "nodeSelector": {"zone": "b", "disk": "ssd"},
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "arch", "operator": "In", "values": ["arm64", "amd64"]}]},
                            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},
                        ]
                    },
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "preference": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}
                    ],
                }
            },
            "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}],
            "schedulingGates": [{"name": "example.com/wait"}],
        },
    )

    assert shape_of(pod) == Shape(
        request=(("cpu", 2000.0), ("memory", 2.0**30), ("nvidia.com/gpu", 1000.0), ("pods", 1.0)),
        nonzero=(2000.0, 2.0**30),
        node_selector=(("disk", "ssd"), ("zone", "b")),
        node_affinity=(
            NodeTerm((Requirement("arch", "In", ("arm64", "amd64")),)),
            NodeTerm((), (Requirement("metadata.name", "In", ("n1",)),)),
        ),
        preferred=(PreferredTerm(1, NodeTerm((Requirement("x", "Exists"),))),),
        tolerations=(Tolerance("dedicated", "Equal", "ml", "NoSchedule"),),
        gates=("example.com/wait",),
        n_containers=1,
    )


def test_required_affinity_without_terms_is_not_no_affinity() -> None:
    none = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}

    assert shape_of(a_pod(spec={"affinity": none})).node_affinity == ()
    assert shape_of(a_pod(spec={"affinity": {}})).node_affinity is None


def test_empty_preferred_terms_are_left_out_in_every_spelling() -> None:
    terms = [
        {"weight": 0, "preference": {"matchExpressions": [{"key": "disk", "operator": "Gt", "values": ["abc"]}]}},
        {"weight": 10, "preference": {}},
        {"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}},
    ]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}

    preferred = shape_of(a_pod(spec={"affinity": affinity})).preferred

    assert preferred == (PreferredTerm(5, NodeTerm((Requirement("disk", "Exists"),))),)


def test_images_of_all_containers_and_image_volumes_with_the_tags_they_leave_out() -> None:
    spec = {
        "containers": [{"image": "r:5000/a/web"}, {"image": "web:1.2"}, {"image": ""}],
        "initContainers": [{"image": "web:1.2"}],
        "volumes": [{"name": "v", "image": {"reference": "data@sha256:0123"}}, {"name": "w", "emptyDir": {}}],
    }

    shape = shape_of(a_pod(spec=spec))

    assert shape.images == ("data@sha256:0123", "r:5000/a/web:latest", "web:1.2", "web:1.2")
    assert shape.n_containers == 4


def test_pods_that_differ_in_an_image_volume_have_different_shapes() -> None:
    reader = ShapeReader()
    one, other = (
        reader.shape(a_pod(spec={"volumes": [{"name": name, "image": {"reference": image}}]}))
        for name, image in (("v", "a:1"), ("w", "b:1"))
    )

    assert (one.images, other.images) == (("a:1",), ("b:1",))


def test_ports_of_the_node_that_containers_and_sidecars_take() -> None:
    spec = {
        "containers": [
            {"name": "web", "ports": [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]},
            {"name": "dns", "ports": [{"hostPort": 53, "protocol": "UDP", "hostIP": "127.0.0.1"}, {"hostPort": 81}]},
        ],
        "initContainers": [
            {"name": "setup", "ports": [{"containerPort": 1, "hostPort": 1}]},
            {"name": "log", "restartPolicy": "Always", "ports": [{"containerPort": 9, "hostPort": 9}]},
        ],
    }

    assert shape_of(a_pod(spec=spec)).host_ports == (
        HostPort("0.0.0.0", "TCP", 9),
        HostPort("0.0.0.0", "TCP", 81),
        HostPort("127.0.0.1", "UDP", 53),
    )


def _limited(limits: dict[str, Any]) -> dict[str, Any]:
    return {"containers": [{"name": "c", "resources": {"limits": limits, "requests": limits}}]}


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(
            {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {}}]}, [], id="free-volumes"
        ),
        pytest.param({"resourceClaims": [{"name": "gpu"}]}, ["spec.resourceClaims[gpu]"], id="resource-claim"),
        pytest.param(
            _limited({"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory": "1024", "volcano.sh/vgpu-cores": 0}),
            [f"spec.containers[c].resources.limits[volcano.sh/vgpu-{what}]" for what in ("number", "memory")],
            id="shared-device",
        ),
        pytest.param(_limited({"nvidia.com/gpu": 1}), [], id="whole-device"),
    ],
)
def test_constraints_that_no_policy_understands_yet_are_named(spec: dict[str, Any], paths: list[str]) -> None:
    assert unsupported(a_pod(spec=spec).spec) == paths


def test_pods_of_equal_content_share_one_shape() -> None:
    reader = ShapeReader()
    one = reader.shape(a_pod("a", uid="1", node="n1", cpu=1, spec={"volumes": [{"name": "kube-api-access-x1"}]}))
    two = reader.shape(a_pod("b", uid="2", group="g", cpu=1, spec={"volumes": [{"name": "kube-api-access-x2"}]}))

    assert one is two
    assert reader.shape(a_pod("c", cpu=2)) is not one


def test_the_reader_caches_a_bounded_number_of_shapes() -> None:
    reader = ShapeReader(capacity=2)
    first = reader.shape(a_pod(cpu=1))
    for cpu in (2, 3):
        reader.shape(a_pod(cpu=cpu))

    again = reader.shape(a_pod(cpu=1))

    assert again == first
    assert again is not first


def test_the_reader_keeps_no_shape_of_a_pod_that_is_very_large() -> None:
    """A pod may have a megabyte, and the reader keeps thousands of shapes, also when their pods are gone."""
    reader = ShapeReader()
    large = a_pod(spec={"nodeSelector": {f"key{i}": "x" * 60 for i in range(200)}})

    first, again = reader.shape(large), reader.shape(large)

    assert again == first
    assert again is not first


def test_a_number_out_of_range_is_an_error_of_the_pod() -> None:
    port = {"containers": [{"name": "c", "ports": [{"containerPort": 10**30}]}]}

    with pytest.raises(ValueError, match="a number in it is too large"):
        ShapeReader().shape(a_pod(spec=port))


def _changed(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    inner = spec
    for step in path[:-1]:
        inner = inner.setdefault(step, {})
    inner[path[-1]] = value
    return spec


@pytest.mark.parametrize(
    "spec",
    [
        _changed(("containers",), [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]),
        _changed(("initContainers",), [{"name": "i", "resources": {"requests": {"cpu": "9"}}}]),
        _changed(("overhead",), {"cpu": "1"}),
        _changed(("resources",), {"requests": {"cpu": "3"}}),
        _changed(("nodeSelector",), {"zone": "a"}),
        _changed(
            ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"), {"nodeSelectorTerms": []}
        ),
        _changed(
            ("affinity", "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
            [{"labelSelector": {}, "topologyKey": "zone"}],
        ),
        _changed(("tolerations",), [{"key": "k", "operator": "Exists"}]),
        _changed(
            ("topologySpreadConstraints",),
            [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        ),
        _changed(("resourceClaims",), [{"name": "c"}]),
        _changed(("schedulingGates",), [{"name": "g"}]),
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_the_reader_distinguishes_pods_by_every_field_of_a_shape(spec: dict[str, Any]) -> None:
    reader = ShapeReader()
    plain = reader.shape(a_pod(cpu=1))

    changed = reader.shape(a_pod(cpu=1, spec=spec))

    assert changed != plain
    assert changed == shape_of(a_pod(cpu=1, spec=spec))


def test_the_reader_counts_what_a_container_holds_while_it_is_resized() -> None:
    pod = a_pod(cpu=2, node="n1")
    held = ContainerStatus(name="main", resources=ResourceRequirements(requests={"cpu": "4"}))
    shrinking = msgspec.structs.replace(pod, status=PodStatus(phase="Running", container_statuses=[held]))
    reader = ShapeReader()

    assert dict(reader.shape(pod).request)["cpu"] == 2000
    assert dict(reader.shape(shrinking).request)["cpu"] == 4000


def test_pods_with_different_scoring_annotations_have_different_shapes() -> None:
    reader = ShapeReader()
    kind, weight = "volcano.sh/resource-strategy-scoring-type", "volcano.sh/resource-strategy-weight"

    assert reader.shape(a_pod(annotations={kind: "MostAllocated", weight: "{}"})).strategy == ("MostAllocated", "{}")
    assert reader.shape(a_pod(annotations={weight: "{}"})).strategy == ("", "")


def test_a_record_holds_the_start_time_of_its_pod() -> None:
    pod = a_pod(phase="Running", node="n1")
    started = msgspec.structs.replace(
        pod, status=PodStatus(phase="Running", start_time=datetime(2026, 1, 1, tzinfo=UTC))
    )

    assert task_record(pod, OURS).started == 0
    assert task_record(started, OURS).started == SINCE.timestamp()


@pytest.mark.parametrize(
    ("options", "traits"),
    [
        pytest.param({}, TaskTrait.PREEMPTABLE, id="whoever-says-nothing-may-be-evicted"),
        pytest.param({"annotations": {keys.PREEMPTABLE: "false"}}, TaskTrait(0), id="annotation"),
        pytest.param({"labels": {keys.PREEMPTABLE: "0"}}, TaskTrait(0), id="label"),
        pytest.param({"annotations": {keys.PREEMPTABLE: "yes"}}, TaskTrait(0), id="no-boolean-is-no"),
        pytest.param(
            {"annotations": {keys.PREEMPTABLE: "true"}, "labels": {keys.PREEMPTABLE: "false"}},
            TaskTrait.PREEMPTABLE,
            id="the-annotation-comes-first",
        ),
        pytest.param({"namespace": "kube-system"}, TaskTrait.PREEMPTABLE | TaskTrait.CRITICAL, id="kube-system"),
        pytest.param(
            {"spec": {"priorityClassName": "system-node-critical"}},
            TaskTrait.PREEMPTABLE | TaskTrait.CRITICAL,
            id="critical-class",
        ),
        pytest.param(
            {"spec": {"preemptionPolicy": "Never"}}, TaskTrait.PREEMPTABLE | TaskTrait.NEVER_PREEMPTS, id="never"
        ),
    ],
)
def test_the_eviction_traits_of_a_pod(options: dict[str, Any], traits: TaskTrait) -> None:
    ours = TaskTrait.PREEMPTABLE | TaskTrait.CRITICAL | TaskTrait.NEVER_PREEMPTS

    assert TaskTrait(task_record(a_pod(**options), ("volcano",)).traits) & ours == traits
