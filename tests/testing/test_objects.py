import pytest

from volcano_py.testing import a_group, a_job, a_node, a_pod, a_queue, as_json, manifest
from volcano_py.testing.objects import EPOCH


def test_a_node_has_the_given_fields_and_a_host_name() -> None:
    node = a_node("n1", cpu=8, gpu=2, labels={"zone": "a"}, **{"example.com/fpga": 1})

    assert node.status.allocatable == {
        "cpu": "8",
        "memory": "16Gi",
        "pods": "110",
        "nvidia.com/gpu": "2",
        "example.com/fpga": "1",
    }
    assert node.metadata.labels == {"kubernetes.io/hostname": "n1", "zone": "a"}


@pytest.mark.parametrize(
    ("text", "taint"),
    [
        pytest.param("gpu=yes:NoSchedule", ("gpu", "yes", "NoSchedule"), id="with-a-value"),
        pytest.param("gpu:NoExecute", ("gpu", "", "NoExecute"), id="without"),
    ],
)
def test_taints_are_written_as_kubectl_does(text: str, taint: tuple[str, str, str]) -> None:
    (found,) = a_node(taints=[text]).spec.taints

    assert (found.key, found.value, found.effect) == taint


def test_a_taint_without_an_effect_is_an_error() -> None:
    with pytest.raises(ValueError, match="taint 'gpu' has no effect: write key=value:NoSchedule"):
        a_node(taints=["gpu"])


def test_a_pod_with_a_node_is_running_and_others_are_pending() -> None:
    assert (a_pod().status.phase, a_pod(node="n1").status.phase) == ("Pending", "Running")
    assert a_pod(node="n1", phase="Pending").status.phase == "Pending"


def test_a_pod_takes_further_fields_in_their_wire_form() -> None:
    pod = a_pod(cpu=1, spec={"nodeSelector": {"zone": "a"}, "schedulingGates": [{"name": "g"}]})

    assert pod.spec.node_selector == {"zone": "a"}
    assert pod.spec.scheduling_gates[0].name == "g"
    assert pod.spec.containers[0].resources.requests == {"cpu": "1"}


def test_a_job_is_a_pod_group_and_its_pods() -> None:
    job = a_job("train", tasks=2, cpu=1, created=3)

    assert job.group.spec.min_member == 2
    assert [pod.metadata.name for pod in job.pods] == ["train-0", "train-1"]
    assert {pod.metadata.annotations["scheduling.k8s.io/group-name"] for pod in job.pods} == {"train"}
    assert {
        (pod.metadata.creation_timestamp - EPOCH).seconds for pod in job.pods if pod.metadata.creation_timestamp
    } == {3}


def test_the_tasks_of_a_job_may_have_roles() -> None:
    job = a_job("tf", tasks={"ps": 1, "worker": 2}, min_available=2, min_task_member={"ps": 1})

    roles = [(pod.metadata.name, pod.metadata.annotations["volcano.sh/task-spec"]) for pod in job.pods]
    assert roles == [("tf-ps-0", "ps"), ("tf-worker-0", "worker"), ("tf-worker-1", "worker")]
    assert (job.group.spec.min_member, job.group.spec.min_task_member) == (2, {"ps": 1})


def test_uids_differ_between_namespaces() -> None:
    assert a_pod("p", namespace="a").metadata.uid != a_pod("p", namespace="b").metadata.uid
    assert a_group("g", uid="mine").metadata.uid == "mine"


def test_the_json_of_an_object_names_its_kind_and_has_what_the_server_sets() -> None:
    wire = as_json(a_pod("p1", node="n1", cpu=1))

    assert (wire["apiVersion"], wire["kind"]) == ("v1", "Pod")
    assert wire["metadata"] == {
        "name": "p1",
        "namespace": "default",
        "uid": "uid-default-p1",
        "creationTimestamp": "2024-01-01T00:00:00Z",
    }
    assert wire["status"] == {"phase": "Running"}


def test_a_manifest_has_what_a_client_writes() -> None:
    assert manifest(a_pod("p1", cpu=1, namespace="", group="g1")) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p1", "annotations": {"scheduling.k8s.io/group-name": "g1"}},
        "spec": {
            "schedulerName": "volcano",
            "containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}],
        },
    }
    assert manifest(a_group("g1", queue="q", phase="Running")) == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g1", "namespace": "default"},
        "spec": {"minMember": 1, "queue": "q"},
    }


def test_the_manifest_of_a_node_says_what_it_has() -> None:
    assert manifest(a_node(cpu=8, memory="1Gi"))["status"]["allocatable"] == {
        "cpu": "8",
        "memory": "1Gi",
        "pods": "110",
    }


def test_a_manifest_takes_fields_that_the_scheduler_does_not_read() -> None:
    wire = manifest(a_queue("q", weight=2), spec={"extendClusters": []}, status={"state": "Open"})

    assert (wire["spec"]["weight"], wire["spec"]["extendClusters"], wire["status"]) == (2, [], {"state": "Open"})
