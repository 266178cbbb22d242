import re
from typing import Any

import msgspec
import pytest

from volcano_py.api.meta import Condition, OwnerReference
from volcano_py.api.scheduling import NodeGroups, PodGroup, Queue, QueueAffinity, QueueGuarantee, QueueSpec
from volcano_py.cache.groups import PriorityTable, job_record, queue_record, same_gang
from volcano_py.model.objects import GroupCondition, JobKey, JobRecord, NodeGroupAffinity, QueueRecord, TopologyTexts
from volcano_py.model.resource_lists import ResourceList
from volcano_py.model.sub_groups import NetworkTopology, SubGroupPolicy, TopologyMode
from volcano_py.testing import a_group, a_priority_class, a_queue
from volcano_py.testing.objects import EPOCH


def a_table(*classes: tuple[str, int, bool]) -> PriorityTable:
    table = PriorityTable()
    for name, value, is_default in classes:
        table.set(a_priority_class(name, value, global_default=is_default))
    return table


def test_a_condition_may_lack_any_field_because_the_definition_demands_none() -> None:
    wire = b'{"metadata": {"name": "g1"}, "status": {"conditions": [{"reason": "R"}, {"type": "T", "message": "M"}]}}'
    record = job_record(msgspec.json.decode(wire, type=PodGroup), a_table(), "default")

    assert record.conditions == (GroupCondition("", False, "R", ""), GroupCondition("T", False, "", "M"))


def test_a_record_says_what_a_pod_group_asks_for_and_where_it_stands() -> None:
    group = a_group(
        "train",
        namespace="ml",
        queue="research",
        min_available=3,
        min_task_member={"ps": 1},
        min_resources={"cpu": "1500m", "nvidia.com/gpu": 2},
        priority_class="high",
        phase="Inqueue",
        created=2,
    )
    status = msgspec.structs.replace(
        group.status,
        running=1,
        conditions=[Condition(type="Unschedulable", status="True", reason="R", message="M", transition_id="7")],
    )
    group = msgspec.structs.replace(group, status=status)

    assert job_record(group, a_table(("high", 100, False)), "default") == JobRecord(
        key=JobKey("ml", "train"),
        uid="uid-ml-train",
        queue="research",
        min_available=3,
        task_min_available={"ps": 1},
        min_resources={"cpu": 1500.0, "nvidia.com/gpu": 2000.0},
        priority=100,
        creation=EPOCH.timestamp() + 2,
        phase="Inqueue",
        conditions=(GroupCondition("Unschedulable", True, "R", "M", "7"),),
        running=1,
    )


@pytest.mark.parametrize(
    ("name", "owner", "follows"),
    [
        pytest.param("podgroup-7", ("batch/v1", "Job", "7"), True, id="job-of-kubernetes"),
        pytest.param("podgroup-7", ("apps/v1", "ReplicaSet", "7"), True, id="replica-set"),
        pytest.param("podgroup-7", ("v1", "Pod", "7"), True, id="bare-pod"),
        pytest.param("podgroup-7", ("argoproj.io/v1alpha1", "Workflow", "7"), True, id="custom-resource"),
        pytest.param("podgroup-7", ("batch.volcano.sh/v1alpha1", "Job", "7"), False, id="vcjob-named-podgroup"),
        pytest.param("podgroup-7", ("batch/v1", "Job", "8"), False, id="another-owner"),
        pytest.param("podgroup-7", None, False, id="nobody"),
        pytest.param("train", ("batch/v1", "Job", "7"), False, id="written-by-users"),
    ],
)
def test_the_group_of_a_workload_follows_its_pods(name: str, owner: tuple[str, str, str] | None, follows: bool) -> None:
    group = a_group(name)
    if owner is not None:
        reference = OwnerReference(api_version=owner[0], kind=owner[1], name="w", uid=owner[2], controller=True)
        group = msgspec.structs.replace(
            group, metadata=msgspec.structs.replace(group.metadata, owner_references=[reference])
        )

    assert job_record(group, PriorityTable(), "default").follows_pods is follows


def test_an_empty_queue_is_the_default_queue() -> None:
    assert job_record(a_group(queue=""), PriorityTable(), "shared").queue == "shared"


def test_no_minimum_resources_is_not_zero_resources() -> None:
    assert job_record(a_group(), PriorityTable(), "default").min_resources is None
    assert job_record(a_group(min_resources={}), PriorityTable(), "default").min_resources == {}


@pytest.mark.parametrize(
    ("group", "message"),
    [
        pytest.param(a_group(min_resources={"cpu": "lots"}), r"^spec\.minResources\[cpu\]: 'lots'", id="quantity"),
        pytest.param(a_group(min_available=2**40), r"^spec\.minMember: 1099511627776 does not fit", id="min-member"),
        pytest.param(
            a_group(min_task_member={"ps": 2**31}), r"^spec\.minTaskMember\[ps\]: 2147483648", id="min-task-member"
        ),
    ],
)
def test_a_field_that_cannot_be_read_is_named(group: PodGroup, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        job_record(group, PriorityTable(), "default")


@pytest.mark.parametrize(
    ("classes", "name", "value"),
    [
        pytest.param([], "", 0, id="no-classes"),
        pytest.param([("high", 9, False)], "high", 9, id="named"),
        pytest.param([("high", 9, False)], "missing", 0, id="unknown"),
        pytest.param([("base", 5, True)], "", 5, id="global-default"),
        pytest.param([("base", 5, True)], "missing", 5, id="unknown-counts-as-none"),
        pytest.param([("base", 5, True), ("other", 3, True)], "", 3, id="the-least-of-two-defaults"),
        pytest.param([("base", 5, True), ("base", 5, False)], "", 0, id="a-default-no-more"),
    ],
)
def test_priority_of_a_class(classes: list[tuple[str, int, bool]], name: str, value: int) -> None:
    assert a_table(*classes).value(name) == value


def test_a_deleted_priority_class_no_longer_counts() -> None:
    table = a_table(("base", 5, True))
    table.remove("base")

    assert (table.value("base"), table.default) == (0, 0)


def test_a_queue_record() -> None:
    assert queue_record(a_queue("q", weight=3, priority=2, state="Closed", created=1)) == QueueRecord(
        name="q", uid="uid-q", weight=3, priority=2, creation=EPOCH.timestamp() + 1, state="Closed"
    )


@pytest.mark.parametrize("amount", [0, "0", "-1", -1])
def test_a_capability_of_cpu_or_memory_that_is_not_positive_sets_no_limit(amount: Any) -> None:
    queue = msgspec.structs.replace(a_queue("q"), spec=QueueSpec(capability={"cpu": amount, "memory": amount}))

    assert queue_record(queue).capability == ResourceList()


def test_a_queue_record_names_what_is_written_even_if_it_is_zero() -> None:
    queue = msgspec.structs.replace(
        a_queue("q"),
        spec=QueueSpec(
            capability={"cpu": "2", "nvidia.com/gpu": 0},
            deserved={"memory": "1Ki"},
            guarantee=QueueGuarantee({"pods": 3, "count/pods": 1}),
            reclaimable=False,
            parent="team",
        ),
    )

    record = queue_record(queue)

    assert record.capability == ResourceList(cpu=2000, scalars={"nvidia.com/gpu": 0})
    assert record.deserved == ResourceList(memory=1024)
    assert record.guarantee == ResourceList(scalars={"pods": 3})
    assert (record.reclaimable, record.parent) == (False, "team")


@pytest.mark.parametrize(("strategy", "fifo"), [("fifo", True), ("traverse", False), ("", False), ("FIFO", False)])
def test_only_fifo_is_fifo(strategy: str, fifo: bool) -> None:
    queue = msgspec.structs.replace(a_queue("q"), spec=QueueSpec(dequeue_strategy=strategy))

    assert queue_record(queue).fifo is fifo


@pytest.mark.parametrize(
    ("path", "weights", "expected"),
    [
        pytest.param("", "", (), id="none"),
        pytest.param("root", "1", (), id="the-root-itself"),
        pytest.param("root/eng/dev", "1/2/8", (("eng", 2.0), ("dev", 8.0)), id="a-way-down"),
        pytest.param("root/a/b/c", "1/2", (("a", 2.0), ("b", 1.0), ("c", 1.0)), id="too-few-weights"),
        pytest.param("root/a", "1/2/3", (("a", 2.0),), id="too-many-weights"),
        pytest.param("root/a/b/c", "1/x/0.5/nan", (("a", 1.0), ("b", 1.0), ("c", 1.0)), id="weights-that-are-none"),
    ],
)
def test_the_path_of_a_queue_in_the_drf_tree(path: str, weights: str, expected: tuple[tuple[str, float], ...]) -> None:
    assert queue_record(a_queue("q", hierarchy=path, hierarchy_weights=weights)).hierarchy == expected


def test_amounts_for_quotas_are_kept_apart_from_resources() -> None:
    record = job_record(
        a_group(min_resources={"cpu": 2, "requests.cpu": 2, "count/pods": 3}), PriorityTable(), "default"
    )

    assert record.min_resources == {"cpu": 2000.0}
    assert record.min_quota == {"requests.cpu": 2000.0, "count/pods": 3000.0}


def test_a_quantity_of_a_queue_that_cannot_be_read_is_named() -> None:
    queue = msgspec.structs.replace(a_queue("q"), spec=QueueSpec(deserved={"cpu": "some"}))

    with pytest.raises(ValueError, match=r"^spec\.deserved\[cpu\]: 'some'"):
        queue_record(queue)


@pytest.mark.parametrize(
    ("annotations", "seconds"),
    [
        pytest.param({}, None, id="none"),
        pytest.param({"volcano.sh/sla-waiting-time": "1h30m"}, 5400.0, id="new-key"),
        pytest.param({"sla-waiting-time": "3m"}, 180.0, id="old-key"),
        pytest.param({"volcano.sh/sla-waiting-time": "1s", "sla-waiting-time": "3m"}, 1.0, id="the-new-key-counts"),
        pytest.param({"sla-waiting-time": "soon"}, None, id="not-a-duration"),
        pytest.param({"sla-waiting-time": "-3m"}, None, id="not-above-zero"),
    ],
)
def test_how_long_a_job_may_wait(annotations: dict[str, str], seconds: float | None) -> None:
    assert job_record(a_group(annotations=annotations), PriorityTable(), "default").waiting_time == seconds


def annotated(thing: PodGroup | Queue, **annotations: str) -> Any:
    named = {f"volcano.sh/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return msgspec.structs.replace(thing, metadata=msgspec.structs.replace(thing.metadata, annotations=named))


def test_the_task_topology_is_kept_as_written() -> None:
    group = annotated(a_group(), task_topology_affinity="ps,worker", task_topology_task_order="")

    assert job_record(group, PriorityTable(), "default").topology == TopologyTexts("ps,worker", None, "")
    assert job_record(a_group(), PriorityTable(), "default").topology is None


def test_a_queue_names_its_node_groups() -> None:
    affinity = QueueAffinity(
        node_group_affinity=NodeGroups(required=["a"], preferred=["b", "c"]),
        node_group_anti_affinity=NodeGroups(preferred=["d"]),
    )
    queue = msgspec.structs.replace(a_queue("q"), spec=QueueSpec(affinity=affinity))

    assert queue_record(queue).node_groups == NodeGroupAffinity(("a",), ("b", "c"), (), ("d",))
    assert queue_record(a_queue("q")).node_groups is None


def test_limits_of_node_groups_are_read_from_an_annotation() -> None:
    limits = queue_record(annotated(a_queue("q"), nodegroup_resource_limits='{"g": {"cpu": "3", "memory": 0}}'))

    assert limits.node_group_limits is not None
    assert limits.node_group_limits.amounts == {"g": {"cpu": 3000.0, "memory": 0.0}}
    assert queue_record(a_queue("q")).node_group_limits is None


@pytest.mark.parametrize("text", ["", "null", "{}", '{"g": null}', '{"g": {}}'])
def test_an_annotation_may_limit_no_group_at_all(text: str) -> None:
    limits = queue_record(annotated(a_queue("q"), nodegroup_resource_limits=text)).node_group_limits

    assert limits is None or (limits.amounts, limits.problem) == ({}, "")


@pytest.mark.parametrize("text", ['{"g": {"cpu":', '["g"]', '{"g": {"cpu": "much"}}'])
def test_limits_of_node_groups_that_cannot_be_read_say_why(text: str) -> None:
    record = queue_record(annotated(a_queue("q"), nodegroup_resource_limits=text))

    assert record.node_group_limits is not None
    assert "volcano.sh/nodegroup-resource-limits" in record.node_group_limits.problem


def test_a_record_has_the_topologies_and_sub_groups_of_its_pod_group() -> None:
    policy = {"name": "worker", "matchLabelKeys": ["part"], "subGroupSize": 2, "networkTopology": {"mode": "soft"}}
    group = a_group(spec={"networkTopology": {"highestTierAllowed": 2}, "subGroupPolicy": [policy]})

    record = job_record(group, PriorityTable(), "default")

    assert record.network_topology == NetworkTopology(TopologyMode.HARD, 2)
    assert record.sub_group_policies == (
        SubGroupPolicy("worker", None, ("part",), 2, topology=NetworkTopology(TopologyMode.SOFT)),
    )


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"networkTopology": {"mode": "firm"}}, "spec.networkTopology.mode: 'firm' is not a mode"),
        ({"subGroupPolicy": [{}, {"networkTopology": {"mode": "x"}}]}, "spec.subGroupPolicy[1].networkTopology.mode: "),
        ({"subGroupPolicy": [{}] * 257}, "spec.subGroupPolicy: 257 policies are too many: write 256 at most"),
        ({"subGroupPolicy": [{"subGroupSize": 2**31}]}, "spec.subGroupPolicy[0].subGroupSize: 2147483648 does not fit"),
        ({"subGroupPolicy": [{"minSubGroups": 2**31}]}, "spec.subGroupPolicy[0].minSubGroups: 2147483648 does not fit"),
    ],
)
def test_a_topology_or_policy_that_cannot_be_read_is_named(spec: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(problem)):
        job_record(a_group(spec=spec), PriorityTable(), "default")


@pytest.mark.parametrize(
    "spec",
    [
        {"networkTopology": {"highestTierAllowed": 1}},
        {"subGroupPolicy": [{"name": "worker", "matchLabelKeys": ["part"]}]},
    ],
    ids=["topology", "sub-groups"],
)
def test_a_gang_with_other_topologies_or_sub_groups_asks_for_something_else(spec: dict[str, Any]) -> None:
    before, after = (job_record(a_group(spec=one), PriorityTable(), "default") for one in ({}, spec))

    assert not same_gang(before, after)
    assert same_gang(after, job_record(a_group(spec=spec), PriorityTable(), "default"))
