"""Writes that were refused are tried again at once when a queue or priority class appears that they may name."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.controllers.jobflow.flows import a_step
from tests.controllers.jobflow.test_controller import put_flow, put_templates
from tests.controllers.managing import GROUPS, controllers, put_pod, put_queue
from tests.controllers.vcjobs import JOBS, put_cron_job
from tests.effects.waiting import until
from volcano_py.api.scheduling import PriorityClass, Queue
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.cache.feeding import event
from volcano_py.controllers.excuses import Excuses
from volcano_py.controllers.view import View
from volcano_py.kube.delivery import EventType
from volcano_py.testing import a_priority_class, a_queue, manifest


def put_class(server: ApiServer) -> None:
    server.create(manifest(a_priority_class("high", 9)))


@pytest.mark.parametrize("appears", [lambda server: put_queue(server, "ml"), put_class], ids=["queue", "class"])
@pytest.mark.parametrize(
    ("controller", "refused", "put"),
    [
        pytest.param("pg-controller", GROUPS, lambda server: put_pod(server, "p"), id="group"),
        pytest.param("cronjob-controller", JOBS, lambda server: put_cron_job(server, "c", "@every 1s"), id="cron-job"),
    ],
)
async def test_a_refused_write_is_tried_again_when_a_queue_or_a_class_appears(
    server: ApiServer,
    controller: str,
    refused: str,
    put: Callable[[ApiServer], Any],
    appears: Callable[[ApiServer], None],
) -> None:
    fault = server.faults.add(Fault("reply", verb="create", resource=refused, code=403, message="no such queue"))
    async with controllers(server.url, controllers=frozenset({controller}), attempts=1):
        put(server)
        await until(lambda: fault.hits)  # given up: the next attempt by itself follows with the refill
        server.faults.remove(fault)
        appears(server)

        await until(lambda: server.list(refused))


async def test_a_refused_job_of_a_flow_is_tried_again_when_a_queue_appears(server: ApiServer) -> None:
    fault = server.faults.add(Fault("reply", verb="create", resource=JOBS, code=403, message="no such queue"))
    async with controllers(server.url, controllers=frozenset({"jobflow-controller"})):
        put_templates(server, "a")
        put_flow(server, a_step("a"))
        await until(lambda: fault.hits >= 5)  # its status changes, so that nothing but a long back-off keeps it waiting
        server.faults.remove(fault)
        put_queue(server, "ml")

        await until(lambda: server.list(JOBS), 1.4)  # without an excuse, 1.6 s or more


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def queues(told: list[str]) -> View[Queue]:
    queues: View[Queue] = View()
    classes: View[PriorityClass] = View()
    Excuses(queues, classes).subscribe(lambda: told.append("excuse"))
    return queues


@pytest.mark.parametrize(
    ("part", "change", "excuses"),
    [
        pytest.param("status", {"state": "Closed"}, 1, id="state"),
        pytest.param("spec", {"parent": "other"}, 1, id="spec"),
        pytest.param("status", {"allocated": {"cpu": "1"}}, 0, id="numbers"),
    ],
)
def test_a_queue_whose_numbers_change_excuses_nothing(
    queues: View[Queue], told: list[str], part: str, change: dict[str, Any], excuses: int
) -> None:
    queue = a_queue("ml")
    queues.on_events([event(EventType.ADDED, queue)])
    assert told == ["excuse"]
    changed = msgspec.structs.replace(queue, **{part: msgspec.structs.replace(getattr(queue, part), **change)})

    queues.on_events([event(EventType.MODIFIED, changed)])

    assert len(told) == 1 + excuses


def test_a_queue_that_goes_excuses_nothing(queues: View[Queue], told: list[str]) -> None:
    queues.on_events([event(EventType.ADDED, a_queue("ml"))])

    queues.on_events([event(EventType.DELETED, a_queue("ml"))])

    assert told == ["excuse"]
