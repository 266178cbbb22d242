"""LimitRanges: the defaults that new pods get, and the bounds that they must keep."""

from typing import Any

import pytest

from tests.apiserver.support import a_bare_pod
from volcano_py.apiserver import ApiServer
from volcano_py.apiserver.status import StatusError
from volcano_py.testing import a_namespace, manifest

Obj = dict[str, Any]


def a_limit_range(kind: str, namespace: str = "default", **item: Obj) -> Obj:
    meta = {"name": f"of-{kind.lower()}", "namespace": namespace}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": meta, "spec": {"limits": [{"type": kind, **item}]}}


def pod_of(name: str, *resources: Obj, init: tuple[Obj, ...] = ()) -> Obj:
    def containers(kind: str, given: tuple[Obj, ...]) -> list[Obj]:
        return [{"name": f"{kind}{i}", "image": "busybox:1", "resources": one} for i, one in enumerate(given)]

    return a_bare_pod(name, containers=containers("main", resources), initContainers=containers("init", init))


def created(server: ApiServer, *resources: Obj) -> Obj:
    pod = server.create(pod_of(f"p{len(server.list('pods'))}", *resources))
    return {**pod["spec"]["containers"][0]["resources"], "class": pod["status"]["qosClass"]}


def refusal(server: ApiServer, pod: Obj) -> str:
    with pytest.raises(StatusError) as caught:
        server.create(pod)
    return str(caught.value).partition("is forbidden: ")[2]


async def test_containers_get_the_defaults_of_their_namespace() -> None:
    server = ApiServer()
    server.create(a_limit_range("Container", default={"cpu": "1"}, defaultRequest={"cpu": "500m", "memory": "1Gi"}))
    server.create(manifest(a_namespace("other")))
    server.create(a_limit_range("Container", "other", default={"cpu": "9"}))

    assert created(server, {}) == {
        "limits": {"cpu": "1"},
        "requests": {"cpu": "500m", "memory": "1Gi"},
        "class": "Burstable",
    }
    assert created(server, {"limits": {"cpu": "2"}})["requests"] == {"cpu": "2", "memory": "1Gi"}


async def test_a_bound_is_the_default_where_none_is_given() -> None:
    server = ApiServer()
    server.create(a_limit_range("Container", max={"cpu": "2"}, min={"cpu": "100m", "memory": "64Mi"}))

    assert created(server, {}) == {
        "limits": {"cpu": "2"},
        "requests": {"cpu": "2", "memory": "64Mi"},
        "class": "Burstable",
    }


@pytest.mark.parametrize(
    ("item", "resources", "said"),
    [
        ({"max": {"cpu": "2"}}, {"limits": {"cpu": "3"}}, "maximum cpu usage per Container is 2, but limit is 3"),
        (
            {"min": {"cpu": "1"}},
            {"requests": {"cpu": "500m"}},
            "minimum cpu usage per Container is 1, but request is 500m",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            {},
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
    ],
)
async def test_a_container_outside_of_the_bounds_is_refused(item: Obj, resources: Obj, said: str) -> None:
    server = ApiServer()
    server.create(a_limit_range("Container", **item))

    assert said in refusal(server, pod_of("p", resources))


async def test_a_pod_counts_as_a_whole() -> None:
    server = ApiServer()
    server.create(a_limit_range("Pod", max={"cpu": "2"}))
    one = {"limits": {"cpu": "1"}}

    assert created(server, one, one)["limits"] == {"cpu": "1"}
    assert "maximum cpu usage per Pod is 2, but limit is 3" in refusal(server, pod_of("p", one, one, one))
    assert "but limit is 4" in refusal(server, pod_of("p", one, init=({"limits": {"cpu": "4"}},)))
    assert "maximum cpu usage per Pod is 2.  No limit is specified" in refusal(server, pod_of("p", {}))
