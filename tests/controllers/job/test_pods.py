"""Pods of a job: every field of the template arrives, and names, labels and annotations are Volcano's."""

from typing import Any

import msgspec
import pytest

from tests.controllers.job.builders import UID, a_job_task, a_ready_job
from tests.tools.samples import POD_TEMPLATE, every_field
from volcano_py.controllers.job.pods import PodFactory, partition_of


def built(index: int = 0, *tasks: Any, forwarded: bool = False, **job: Any) -> dict[str, Any]:
    """Return a pod of the first task of a job."""
    made = a_ready_job(*tasks, **job)
    return PodFactory(made, made.spec.tasks[0], forwarded=forwarded).pod(index)


def test_every_field_of_a_pod_spec_arrives() -> None:
    template = every_field(POD_TEMPLATE)
    before = msgspec.json.encode(template)

    pod = built(0, a_job_task(template=template))

    assert len(pod["spec"]) > 40
    assert pod["spec"] == template["spec"]
    assert msgspec.json.encode(template) == before


def test_every_field_of_a_template_also_arrives_beside_the_volumes_of_the_job() -> None:
    template = every_field(POD_TEMPLATE)
    volumes = [{"mountPath": "/data", "volumeClaimName": "data"}]

    spec = built(0, a_job_task(template=template), volumes=volumes)["spec"]

    assert {name for name in spec if spec[name] != template["spec"][name]} == {"volumes", "containers"}
    assert spec["volumes"][0] == template["spec"]["volumes"][0]
    (container,), (given,) = spec["containers"], template["spec"]["containers"]
    assert {name for name in container if container[name] != given[name]} == {"volumeMounts"}
    assert container["volumeMounts"][0] == given["volumeMounts"][0]


def test_fields_that_nobody_knows_yet_arrive() -> None:
    spec = built(0, a_job_task(template={"spec": {"containers": [], "fieldOfTheFuture": {"deep": [1]}}}))["spec"]

    assert spec["fieldOfTheFuture"] == {"deep": [1]}


def test_metadata_of_the_template_arrives_except_names() -> None:
    given = {
        "name": "x",
        "generateName": "x-",
        "namespace": "elsewhere",
        "labels": {"app": "train", "volcano.sh/job-name": "lie"},
        "annotations": {"note": "kept"},
        "finalizers": ["example.com/hold"],
    }

    meta = built(1, a_job_task(template={"metadata": given, "spec": {}}))["metadata"]

    assert (meta["name"], meta["namespace"], "generateName" in meta) == ("train-worker-1", "ns", False)
    assert meta["finalizers"] == ["example.com/hold"]
    assert (meta["labels"]["app"], meta["labels"]["volcano.sh/job-name"]) == ("train", "train")
    assert meta["annotations"]["note"] == "kept"


def test_a_pod_says_to_what_it_belongs() -> None:
    meta = built(1, queue="team", status={"version": 2, "retryCount": 1})["metadata"]

    assert meta["labels"] == {
        "volcano.sh/job-name": "train",
        "volcano.sh/job-namespace": "ns",
        "volcano.sh/queue-name": "team",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/task-index": "1",
    }
    assert meta["annotations"] == {
        "scheduling.k8s.io/group-name": f"train-{UID}",
        "volcano.sh/job-name": "train",
        "volcano.sh/job-retry-count": "1",
        "volcano.sh/job-version": "2",
        "volcano.sh/queue-name": "team",
        "volcano.sh/task-index": "1",
        "volcano.sh/task-spec": "worker",
        "volcano.sh/template-uid": "train-worker",
    }
    assert meta["ownerReferences"] == [
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": "train",
            "uid": UID,
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


@pytest.mark.parametrize(
    ("given", "annotations", "labels"),
    [
        pytest.param(
            {
                "annotations": {
                    "volcano.sh/preemptable": "true",
                    "volcano.sh/cooldown-time": "5m",
                    "volcano.sh/revocable-zone": "*",
                    "other": "stays",
                }
            },
            {"volcano.sh/preemptable": "true", "volcano.sh/cooldown-time": "5m", "volcano.sh/revocable-zone": "*"},
            {},
            id="annotations",
        ),
        pytest.param(
            {"annotations": {"volcano.sh/jdb-min-available": "1", "volcano.sh/jdb-max-unavailable": "2"}},
            {"volcano.sh/jdb-min-available": "1"},
            {},
            id="the-minimum-of-a-disruption-budget-wins",
        ),
        pytest.param(
            {"annotations": {"volcano.sh/jdb-max-unavailable": "2"}},
            {"volcano.sh/jdb-max-unavailable": "2"},
            {},
            id="disruption-budget",
        ),
        pytest.param(
            {"labels": {"volcano.sh/preemptable": "true", "volcano.sh/cooldown-time": "5m", "team": "stays"}},
            {},
            {"volcano.sh/preemptable": "true", "volcano.sh/cooldown-time": "5m"},
            id="labels",
        ),
    ],
)
def test_some_marks_of_the_job_are_copied_to_its_pods(
    given: dict[str, Any], annotations: dict[str, str], labels: dict[str, str]
) -> None:
    plain, marked = built()["metadata"], built(meta=given)["metadata"]

    assert dict(marked["annotations"].items() - plain["annotations"].items()) == annotations
    assert dict(marked["labels"].items() - plain["labels"].items()) == labels


@pytest.mark.parametrize(("policy", "said"), [("", None), ("none", "none"), ("single-numa-node", "single-numa-node")])
def test_a_numa_policy_is_an_annotation(policy: str, said: str | None) -> None:
    annotations = built(0, a_job_task(topologyPolicy=policy))["metadata"]["annotations"]

    assert annotations.get("volcano.sh/numa-topology-policy") == said


def test_scheduler_and_priority_of_the_job_count_unless_the_template_has_its_own() -> None:
    job = {"schedulerName": "mine", "priorityClassName": "high"}

    assert built(0, a_job_task(), **job)["spec"].items() >= job.items()
    own = {"schedulerName": "theirs", "priorityClassName": "low"}
    assert built(0, a_job_task(template={"spec": own}), **job)["spec"] == own


def test_a_job_that_is_forwarded_says_so_on_its_pods() -> None:
    meta = built(forwarded=True)["metadata"]

    assert meta["annotations"]["volcano.sh/job-forwarding"] == "true"
    assert meta["labels"]["volcano.sh/job-forwarding"] == "true"
    assert "volcano.sh/job-forwarding" not in built()["metadata"]["labels"]


@pytest.mark.parametrize(
    ("size", "index", "partition"), [(2, 0, 0), (2, 1, 0), (2, 2, 1), (3, 11, 3), (0, 5, 0), (-1, 5, 0), (3, -2, 0)]
)
def test_pods_fill_one_partition_after_the_other(size: int, index: int, partition: int) -> None:
    assert partition_of(size, index) == partition
    labels = built(index, a_job_task(partitionPolicy={"partitionSize": size}))["metadata"]["labels"]
    assert labels["volcano.sh/partition-id"] == str(partition)


def test_a_task_without_partitions_has_no_such_label() -> None:
    assert "volcano.sh/partition-id" not in built()["metadata"]["labels"]


def test_volumes_are_mounted_into_every_container_but_not_into_init_containers() -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}
    volumes = [
        {"mountPath": "/in", "volumeClaimName": "data"},
        {"mountPath": "/out", "volumeClaimName": "data"},
        {"mountPath": "/tmp/x", "volumeClaim": {}},
    ]

    made = built(0, a_job_task(template={"spec": spec}), volumes=volumes)["spec"]

    names = [volume["name"] for volume in made["volumes"]]
    assert len(set(names)) == 2, "two mounts of one claim share a volume"
    assert made["volumes"][0]["persistentVolumeClaim"] == {"claimName": "data"}
    mounted = [
        {"name": names[0], "mountPath": "/in"},
        {"name": names[0], "mountPath": "/out"},
        {"name": names[1], "mountPath": "/tmp/x"},
    ]
    assert [container["volumeMounts"] for container in made["containers"]] == [mounted, mounted]
    assert made["initContainers"] == [{"name": "i"}]


def test_pods_of_one_factory_do_not_share_what_they_say_about_themselves() -> None:
    job = a_ready_job(a_job_task(partitionPolicy={"partitionSize": 1}))
    factory = PodFactory(job, job.spec.tasks[0])
    first, second = factory.pod(0), factory.pod(1)

    first["metadata"]["labels"]["mine"] = first["metadata"]["annotations"]["mine"] = "yes"
    first["spec"]["nodeName"] = "n1"

    assert "mine" not in second["metadata"]["labels"]
    assert "mine" not in factory.pod(2)["metadata"]["annotations"]
    assert "nodeName" not in second["spec"]


def test_a_template_without_a_spec_gives_a_pod_that_the_server_can_refuse() -> None:
    assert built(0, {"name": "worker", "replicas": 1})["spec"] == {"schedulerName": "volcano"}
