"""The eviction subresource and budgets, with their status as a disruption controller would have written it."""

from typing import Any

import pytest

from volcano_py.apiserver import ApiServer
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import PODS
from volcano_py.testing import a_budget, a_pod, as_json

EVICTION = b'{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"p"}}'


def put_pod(server: ApiServer, phase: str = "Running") -> None:
    pod = a_pod("p", labels={"app": "web"}, node="n1", phase=phase)
    server.faults.inject(as_json(pod, spec={"terminationGracePeriodSeconds": 30}))


def put_budget(server: ApiServer, name: str = "b", labels: dict[str, str] | None = None, **status: Any) -> None:
    server.faults.inject(as_json(a_budget(name, labels=labels or {"app": "web"}), status=status))


async def evicted(server: ApiServer) -> bool:
    async with ApiClient(Credentials(server.url)) as client:
        await client.post_bytes(PODS.item("p", "default", "eviction"), EVICTION)
    pod = server.get("pods", "p", "default")
    return pod is None or "deletionTimestamp" in pod["metadata"]


async def test_an_eviction_uses_up_one_allowed_disruption(server: ApiServer) -> None:
    put_pod(server)
    put_budget(server, disruptionsAllowed=1)

    assert await evicted(server)

    (budget,) = server.list("poddisruptionbudgets.policy", "default")
    assert budget["status"]["disruptionsAllowed"] == 0
    assert set(budget["status"]["disruptedPods"]) == {"p"}


async def test_a_budget_that_allows_none_says_how_many_it_needs(server: ApiServer) -> None:
    put_pod(server)
    put_budget(server, desiredHealthy=3, currentHealthy=2)

    with pytest.raises(errors.TooManyRequests) as refused:
        await evicted(server)

    details = refused.value.details
    assert details is not None
    assert [cause.message for cause in details.causes] == [
        "The disruption budget b needs 3 healthy pods and has 2 currently"
    ]


async def test_a_budget_that_its_controller_has_not_seen_allows_none_yet(server: ApiServer) -> None:
    put_pod(server)
    put_budget(server, disruptionsAllowed=1, observedGeneration=0)

    with pytest.raises(errors.TooManyRequests) as refused:
        await evicted(server)

    assert refused.value.retry_after_s == 10


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
async def test_evicting_a_pod_that_does_not_run_uses_no_budget(server: ApiServer, phase: str) -> None:
    put_pod(server, phase)
    put_budget(server)

    assert await evicted(server)


async def test_a_budget_of_other_pods_is_ignored(server: ApiServer) -> None:
    put_pod(server)
    put_budget(server, labels={"app": "db"})

    assert await evicted(server)


async def test_a_pod_with_two_budgets_cannot_be_evicted(server: ApiServer) -> None:
    put_pod(server)
    put_budget(server, "b", disruptionsAllowed=1)
    put_budget(server, "c", disruptionsAllowed=1)

    with pytest.raises(errors.ServerError, match="more than one PodDisruptionBudget"):
        await evicted(server)
