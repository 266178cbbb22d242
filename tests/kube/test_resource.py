"""URL paths of resources, there and back."""

import pytest

from volcano_py.kube.resource import EVENTS, NAMESPACES, NODES, PODS, Resource, target_of

QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (PODS.collection(), "/api/v1/pods"),
        (PODS.collection("ns"), "/api/v1/namespaces/ns/pods"),
        (PODS.item("a", "ns"), "/api/v1/namespaces/ns/pods/a"),
        (PODS.item("a", "ns", "binding"), "/api/v1/namespaces/ns/pods/a/binding"),
        (NODES.collection("ignored"), "/api/v1/nodes"),
        (NODES.item("n/1"), "/api/v1/nodes/n%2F1"),
        (QUEUES.item("default"), "/apis/scheduling.volcano.sh/v1beta1/queues/default"),
    ],
)
def test_paths(path: str, expected: str) -> None:
    assert path == expected


def test_api_version_names_the_group_where_there_is_one() -> None:
    assert (PODS.api_version, QUEUES.api_version) == ("v1", "scheduling.volcano.sh/v1beta1")


def test_an_object_without_a_name_is_refused_because_its_path_would_mean_all_objects() -> None:
    with pytest.raises(ValueError, match="an object of pods needs a name"):
        PODS.item("", "ns")


def test_a_namespaced_object_without_a_namespace_is_refused() -> None:
    with pytest.raises(ValueError, match="pods a needs a namespace"):
        PODS.item("a")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (PODS.item("a", "ns", "binding"), "pods/binding ns/a"),
        (PODS.collection(), "pods"),
        (EVENTS.collection("ns"), "events ns"),
        (NODES.item("n1"), "nodes n1"),
        (NODES.item("n1", subresource="status"), "nodes/status n1"),
        (NAMESPACES.item("x"), "namespaces x"),
        (NAMESPACES.item("x", subresource="finalize"), "namespaces/finalize x"),
        (QUEUES.item("default"), "queues.scheduling.volcano.sh default"),
        (QUEUES.collection() + "?limit=5", "queues.scheduling.volcano.sh"),
        ("/version", "/version"),
    ],
)
def test_a_path_is_parsed_into_its_parts(path: str, words: str) -> None:
    assert str(target_of(path)) == words
