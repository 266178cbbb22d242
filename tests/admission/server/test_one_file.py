"""Objects that one file brings are accepted in its order, although no watch and no controller has seen the first yet.

No queue controller runs here, so the state of every queue is empty, as it is just after `kubectl apply`.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.admission.asking import job, task
from tests.admission.server.managing import bundles, free_port, webhooks
from tests.effects.waiting import until
from volcano_py.admission.rules import RULES
from volcano_py.apiserver import ApiServer
from volcano_py.kube import errors
from volcano_py.kube.client import ApiClient
from volcano_py.kube.credentials import Credentials
from volcano_py.kube.resource import PODGROUPS, QUEUES, VCJOBS
from volcano_py.testing import a_group, a_queue, manifest

NAMESPACE = "default"
ROUNDS = 5
Obj = dict[str, Any]


class User:
    """Somebody who applies files."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def queue(self, name: str, **spec: Any) -> str:
        body = {**manifest(a_queue(name)), "spec": {"weight": 1, **spec}}
        return await self._outcome(self._client.create(QUEUES, body, Obj))

    async def job(self, name: str, queue: str) -> str:
        body = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", **job(task(), name=name, queue=queue)}
        body["metadata"]["namespace"] = NAMESPACE
        return await self._outcome(self._client.create(VCJOBS, body, Obj, namespace=NAMESPACE))

    async def group(self, name: str, queue: str) -> str:
        body = manifest(a_group(name, namespace=NAMESPACE, queue=queue))
        return await self._outcome(self._client.create(PODGROUPS, body, Obj, namespace=NAMESPACE))

    async def set_state(self, queue: str, state: str) -> None:
        patch = {"status": {"state": state}}
        await self._client.patch(QUEUES, queue, patch, Obj, subresource="status")

    @staticmethod
    async def _outcome(request: Any) -> str:
        """Return "", or why the API server refused."""
        try:
            await request
        except errors.ApiError as error:
            return str(error)
        return ""


@pytest.fixture
async def user(server: ApiServer) -> AsyncIterator[User]:
    async with webhooks(server, free_port(), RULES), ApiClient(Credentials(server.url)) as client:
        await until(lambda: "" not in bundles(server))
        yield User(client)


async def test_a_queue_and_the_work_that_names_it(user: User) -> None:
    for number in range(ROUNDS):
        assert await user.queue(f"q-{number}") == ""
        assert await user.job(f"train-{number}", f"q-{number}") == ""
        assert await user.group(f"gang-{number}", f"q-{number}") == ""


async def test_a_tree_of_queues_and_a_job_in_a_leaf(user: User) -> None:
    for number in range(ROUNDS):
        department, team = f"department-{number}", f"team-{number}"
        assert await user.queue(department, deserved={"cpu": "8"}) == ""
        assert await user.queue(team, parent=department, deserved={"cpu": "4"}) == ""
        assert await user.job(f"train-{number}", team) == ""
        assert f"queue `{department}` has 1 child queues" in await user.job(f"wrong-{number}", department)


async def test_a_wrong_order_and_a_queue_that_is_shut_are_refused_as_ever(user: User) -> None:
    late = "late"
    assert f'unable to find job queue: queue.scheduling.volcano.sh "{late}" not found' in await user.job("early", late)
    assert f'unable to find queue: queue.scheduling.volcano.sh "{late}" not found' in await user.group("early", late)
    assert await user.queue("child", parent=late) != ""
    assert await user.queue(late) == ""
    for state in ("Closed", "Closing", "Unknown"):
        await user.set_state(late, state)
        sentence = f"with state `Open`, queue `{late}` status is `{state}`"
        assert sentence in await user.job("train", late)
        assert sentence in await user.group("train", late)
