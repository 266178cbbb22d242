from typing import Any

import msgspec
import pytest

from volcano_py.api.core import Pod, PodSpec
from volcano_py.api.quantity import QuantityError
from volcano_py.model.pod_request import in_force, pod_limits, pod_request, request_without_init

MI = 1024 * 1024


def a_container(name: str = "c", *, sidecar: bool = False, **requests: str) -> dict[str, Any]:
    named = {resource.replace("_", "-"): quantity for resource, quantity in requests.items()}
    return {
        "name": name,
        "resources": {"requests": named},
        **({"restartPolicy": "Always"} if sidecar else {}),
    }


def a_spec(
    *containers: dict[str, Any],
    init: tuple[dict[str, Any], ...] = (),
    overhead: dict[str, str] | None = None,
    pod_level: dict[str, str] | None = None,
) -> PodSpec:
    wire: dict[str, Any] = {"containers": list(containers), "initContainers": list(init), "overhead": overhead or {}}
    if pod_level is not None:
        wire["resources"] = {"requests": pod_level}
    return msgspec.convert(wire, PodSpec)


@pytest.mark.parametrize(
    ("spec", "raw", "nonzero"),
    [
        pytest.param(a_spec(a_container()), (0, 0), (100, 200), id="nothing-set"),
        pytest.param(a_spec(a_container(cpu="0", memory="0")), (0, 0), (0, 0), id="explicit-zero-stays-zero"),
        pytest.param(
            a_spec(a_container(cpu="500m"), a_container()), (500, 0), (600, 400), id="the-second-asks-for-nothing"
        ),
        pytest.param(
            a_spec(a_container(cpu="100m", memory="100Mi"), init=(a_container(),)),
            (100, 100),
            (100, 200),
            id="plain-init-without-requests",
        ),
        pytest.param(
            a_spec(a_container(cpu="100m", memory="100Mi"), init=(a_container(sidecar=True),)),
            (100, 100),
            (200, 300),
            id="sidecar-without-requests",
        ),
        pytest.param(
            a_spec(a_container(), overhead={"cpu": "250m", "memory": "64Mi"}), (250, 64), (350, 264), id="overhead"
        ),
        pytest.param(
            a_spec(a_container("a"), a_container("b"), pod_level={"cpu": "3"}), (3000, 0), (3000, 400), id="pod-level"
        ),
        pytest.param(
            a_spec(a_container("a", memory="64Mi"), a_container("b"), pod_level={"cpu": "3"}),
            (3000, 64),
            (3000, 64),
            id="with-pod-level-requests-nothing-is-added-to-what-any-container-names",
        ),
        pytest.param(
            a_spec(a_container("a", memory="64Mi"), a_container("b"), pod_level={"example.com/gpu": "1"}),
            (0, 64),
            (200, 264),
            id="what-no-pod-can-ask-for-as-a-whole-is-no-pod-level-request",
        ),
    ],
)
def test_raw_and_nonzero_requests_are_those_of_kube_scheduler(
    spec: PodSpec, raw: tuple[int, int], nonzero: tuple[int, int]
) -> None:
    request = pod_request(spec)

    assert (request.raw.get("cpu", 0), request.raw.get("memory", 0) / MI) == raw
    assert (request.nonzero[0], request.nonzero[1] / MI) == nonzero


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            a_spec(a_container(cpu="1", memory="1G"), a_container(cpu="2", memory="1G")),
            {"cpu": 3000, "memory": 2e9},
            id="containers-add-up",
        ),
        pytest.param(
            a_spec(
                a_container(cpu="1", memory="1G"),
                a_container(cpu="2", memory="1G"),
                init=(a_container(cpu="2", memory="5G"), a_container(cpu="2", memory="1G")),
            ),
            {"cpu": 3000, "memory": 5e9},
            id="the-greater-of-running-and-starting-per-resource",
        ),
        pytest.param(
            a_spec(
                a_container(cpu="1"),
                init=(
                    a_container("one", cpu="5"),
                    a_container("two", sidecar=True, cpu="1"),
                    a_container("three", sidecar=True, cpu="2"),
                    a_container("four", cpu="5"),
                    a_container("five", sidecar=True, cpu="3"),
                ),
            ),
            {"cpu": 8000},
            id="an-init-container-runs-beside-the-sidecars-before-it",
        ),
        pytest.param(
            a_spec(
                a_container(cpu="100"),
                init=(a_container("s", sidecar=True, cpu="10"), a_container("i", cpu="200")),
                pod_level={"cpu": "250", "memory": "100Mi", "hugepages-1Mi": "2Gi", "example.com/gpu": "4"},
            ),
            {"cpu": 250_000, "memory": 100 * MI, "hugepages-1Mi": 2 * 1024**3 * 1000},
            id="pod-level-requests-replace-cpu-memory-and-huge-pages-only",
        ),
        pytest.param(
            a_spec(a_container(cpu="4"), overhead={"cpu": "250m"}, pod_level={"cpu": "2"}),
            {"cpu": 2250},
            id="overhead-comes-on-top-of-pod-level-requests",
        ),
        pytest.param(
            a_spec(a_container("a", cpu="0.3m"), a_container("b", cpu="0.3m")), {"cpu": 1}, id="rounded-once-at-the-end"
        ),
        pytest.param(
            a_spec({"name": "c", "resources": {"requests": {"nvidia.com/gpu": "2", "count/pods": "3"}}}),
            {"nvidia.com/gpu": 2000},
            id="quota-names-are-not-counted",
        ),
        pytest.param(
            a_spec({"name": "c", "resources": {"requests": {"nvidia.com/gpu": "0"}}}), {}, id="zeros-are-left-out"
        ),
    ],
)
def test_requests_are_summed_as_volcano_does(spec: PodSpec, expected: dict[str, float]) -> None:
    assert pod_request(spec).raw == {"pods": 1, **expected}


def test_without_init_containers_neither_they_nor_the_pod_count() -> None:
    spec = a_spec(
        a_container(cpu="1"),
        init=(a_container("s", sidecar=True, cpu="10"), a_container("i", cpu="200")),
        overhead={"cpu": "500m"},
    )

    assert request_without_init(spec) == {"cpu": 1500}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        pytest.param(
            a_spec(a_container("main", cpu="half")),
            r"^spec\.containers\[main\]\.resources\.requests\[cpu\]: 'half' is not a quantity: write a number",
            id="container",
        ),
        pytest.param(
            a_spec(a_container(), init=(a_container("init", memory="1gb"),)),
            r"^spec\.initContainers\[init\]\.resources\.requests\[memory\]: '1gb' is not",
            id="init-container",
        ),
        pytest.param(a_spec(overhead={"cpu": ""}), r"^spec\.overhead\[cpu\]: ''", id="overhead"),
        pytest.param(a_spec(pod_level={"cpu": "?"}), r"^spec\.resources\.requests\[cpu\]: '\?'", id="pod-level"),
        pytest.param(
            a_spec(a_container(cpu="-1")), r"requests\[cpu\]: '-1' is negative: write 0 or more", id="negative"
        ),
    ],
)
def test_a_quantity_that_cannot_be_read_is_named_with_its_field(spec: PodSpec, message: str) -> None:
    with pytest.raises(QuantityError, match=message):
        pod_request(spec)


def a_resized_pod(asked: str, has: str, promised: str = "", *, refused: bool = False, sidecar: bool = False) -> Pod:
    """Return a pod of one container, or one sidecar, of which the kubelet says what it has."""
    status: dict[str, Any] = {"name": "c", "resources": {"requests": {"cpu": has}}}
    if promised:
        status["allocatedResources"] = {"cpu": promised}
    reason = "Infeasible" if refused else "Deferred"
    kind = "initContainers" if sidecar else "containers"
    return msgspec.convert(
        {
            "metadata": {"name": "p"},
            "spec": {kind: [a_container(cpu=asked, sidecar=sidecar)]},
            "status": {
                "initContainerStatuses" if sidecar else "containerStatuses": [status],
                "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
            },
        },
        Pod,
    )


@pytest.mark.parametrize("sidecar", [False, True], ids=["container", "sidecar"])
@pytest.mark.parametrize(
    ("asked", "has", "promised", "refused", "counted"),
    [
        pytest.param("2", "1", "", False, 2000, id="wants-more"),
        pytest.param("1", "2", "", False, 2000, id="gives-back-and-still-has"),
        pytest.param("1", "1", "3", False, 3000, id="is-promised-more"),
        pytest.param("2", "1", "", True, 1000, id="cannot-have-more"),
        pytest.param("3", "1", "2", True, 2000, id="cannot-have-all-that-it-wants"),
        pytest.param("1", "1000m", "", False, 1000, id="the-same-in-other-words"),
    ],
)
def test_while_a_container_is_resized_the_greatest_of_what_it_wants_has_and_is_promised_counts(
    asked: str, has: str, promised: str, refused: bool, counted: int, sidecar: bool
) -> None:
    pod = a_resized_pod(asked, has, promised, refused=refused, sidecar=sidecar)

    assert pod_request(in_force(pod)).raw["cpu"] == counted


def test_a_resize_that_cannot_be_had_does_not_count_if_the_container_has_nothing() -> None:
    wire = msgspec.to_builtins(a_resized_pod("2", "1", refused=True))
    wire["status"]["containerStatuses"][0]["resources"] = {}

    assert pod_request(in_force(msgspec.convert(wire, Pod))).raw.get("cpu", 0) == 0


@pytest.mark.parametrize(("refused", "counted"), [(False, 3000), (True, 2000)])
def test_a_pod_with_requests_of_its_own_is_resized_as_a_whole(refused: bool, counted: int) -> None:
    wire = msgspec.to_builtins(a_resized_pod("1", "1", refused=refused))
    wire["spec"]["resources"] = {"requests": {"cpu": "3"}}
    wire["status"] |= {"resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "2"}}

    assert pod_request(in_force(msgspec.convert(wire, Pod))).raw["cpu"] == counted


@pytest.mark.parametrize("refused", [False, True])
def test_only_what_the_spec_names_counts_for_the_whole_pod(refused: bool) -> None:
    """The status of the pod names memory, too, for which each container asks by itself."""
    wire = msgspec.to_builtins(a_resized_pod("1", "1", refused=refused))
    wire["spec"]["containers"][0]["resources"]["requests"]["memory"] = "1Gi"
    wire["status"]["containerStatuses"][0]["resources"]["requests"]["memory"] = "1Gi"
    wire["spec"]["resources"] = {"requests": {"cpu": "3"}}
    wire["status"] |= {"resources": {"requests": {"memory": "100Mi"}}, "allocatedResources": {"memory": "50Mi"}}

    request = pod_request(in_force(msgspec.convert(wire, Pod)))

    assert request.raw["memory"] == 1024 * MI
    assert request.raw.get("cpu", 0) == (0 if refused else 3000), "a refused resize leaves what the pod has: nothing"


@pytest.mark.parametrize("has", ["1", "1000m"])
def test_a_pod_that_is_not_resized_is_taken_as_it_is(has: str) -> None:
    pod = a_resized_pod("1", has)

    assert in_force(pod) is pod.spec


def test_a_status_that_cannot_be_read_is_named_with_its_container() -> None:
    with pytest.raises(QuantityError, match=r"^spec\.containers\[c\]\.resources\.requests: 'all' is not"):
        in_force(a_resized_pod("1", "all"))


def limited(name: str, *, sidecar: bool = False, **limits: str) -> dict[str, Any]:
    return {"name": name, "resources": {"limits": limits}, **({"restartPolicy": "Always"} if sidecar else {})}


@pytest.mark.parametrize(
    ("spec", "limits"),
    [
        pytest.param(a_spec(a_container(cpu="1")), (0, 0), id="none"),
        pytest.param(a_spec(limited("a", cpu="500m"), limited("b", cpu="1", memory="1Mi")), (1500, MI), id="summed"),
        pytest.param(a_spec(limited("a", cpu="1"), init=(limited("i", cpu="3"),)), (3000, 0), id="start-up-needs-more"),
        pytest.param(
            a_spec(limited("a", cpu="2"), init=(limited("s", cpu="2", sidecar=True),)), (4000, 0), id="a-sidecar-stays"
        ),
        pytest.param(
            a_spec(limited("a", cpu="1"), overhead={"cpu": "250m", "memory": "1Mi"}),
            (1250, 0),
            id="overhead-counts-where-there-is-a-limit",
        ),
    ],
)
def test_limits_are_added_up_like_requests(spec: PodSpec, limits: tuple[float, float]) -> None:
    assert pod_limits(spec) == limits


def test_pod_level_limits_replace_those_of_containers() -> None:
    wire = {"containers": [limited("a", cpu="1", memory="1Mi")], "resources": {"limits": {"cpu": "3"}}}

    assert pod_limits(msgspec.convert(wire, PodSpec)) == (3000, MI)


def test_a_limit_that_cannot_be_read_is_named_with_its_field() -> None:
    with pytest.raises(QuantityError, match=r"spec\.containers\[a\]\.resources\.limits\[cpu\]"):
        pod_limits(a_spec(limited("a", cpu="much")))
