"""Queues on an embedded API server: they exist, have a state and numbers."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from structlog.testing import capture_logs

from tests.controllers.managing import (
    GROUPS,
    QUEUES,
    controllers,
    put_group,
    put_queue,
    state,
    status,
)
from tests.controllers.queue.test_commands import put_command, waiting
from tests.daemon.cluster import event_reasons, events, stays
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.controllers.manager import ControllerManager
from volcano_py.controllers.queue import controller
from volcano_py.controllers.queue.controller import QueueController
from volcano_py.controllers.queue.decision import CountedQueue
from volcano_py.kube.delivery import Event
from volcano_py.kube.resource import QUEUES as QUEUE_RESOURCE
from volcano_py.testing import a_group, manifest


async def set_state(manager: ControllerManager, queue: str, text: str) -> None:
    body = {"status": {"state": text}}
    await manager.client.patch(QUEUE_RESOURCE, queue, body, dict, subresource="status")


def delete(server: ApiServer, resource: str, name: str, namespace: str | None = None) -> None:
    server.registry.delete(server.resources.named(resource), namespace, name)


def status_writes(server: ApiServer) -> int:
    return server.requests.writes().get(("patch", f"{QUEUES}/status"), 0)


def queue_controller(manager: ControllerManager) -> QueueController:
    (found,) = (one for one in manager._controllers if isinstance(one, QueueController))
    return found


@contextmanager
def late_watch(manager: ControllerManager) -> Iterator[None]:
    """Let the queue controller see no change of a queue until the block ends."""
    view, held = queue_controller(manager)._queues, list[Event[CountedQueue]]()
    show = view.on_events
    view.on_events = held.extend  # type: ignore[method-assign]
    try:
        yield
    finally:
        view.on_events = show  # type: ignore[method-assign]
        view.on_events(held)


async def test_root_and_default_are_made_and_opened(server: ApiServer) -> None:
    async with controllers(server.url):
        await until(lambda: state(server, "root") == state(server, "default") == "Open")

        parents = {name: (server.get(QUEUES, name) or {})["spec"].get("parent") for name in ("root", "default")}
        assert parents == {"root": None, "default": "root"}


async def test_a_queue_that_must_exist_is_made_again(server: ApiServer) -> None:
    async with controllers(server.url):
        await until(lambda: state(server, "default") == "Open")
        delete(server, QUEUES, "default")

        await until(lambda: state(server, "default") == "Open")


async def test_a_missing_parent_is_reported_unless_the_controller_creates_it(server: ApiServer) -> None:
    put_queue(server, "first", parent="root")
    put_queue(server, "lost", parent="nowhere")
    with capture_logs() as lines:
        async with controllers(server.url):
            await until(lambda: state(server, "root") == state(server, "first") == state(server, "lost") == "Open")

    told = {line["queue"] for line in lines if line["event"].startswith("the parent of a queue does not exist")}
    assert told == {"lost"}


async def test_new_queues_are_opened(server: ApiServer) -> None:
    async with controllers(server.url):
        put_queue(server, "ml", weight=3)

        await until(lambda: state(server, "ml") == "Open")


async def test_groups_are_counted_and_the_counts_follow(server: ApiServer) -> None:
    put_group(server, "a", phase="Running")
    put_group(server, "b")
    async with controllers(server.url) as manager:
        await until(
            lambda: (status(server, "default").get("running"), status(server, "default").get("pending")) == (1, 1)
        )
        delete(server, GROUPS, "a", "default")

        await until(lambda: status(server, "default").get("running") == 0)

        name = "volcano_queue_pod_group_pending_count"
        assert manager.registry.get_sample_value(name, {"queue_name": "default"}) == 1


async def test_groups_of_another_scheduler_are_not_counted(server: ApiServer) -> None:
    meta = {"annotations": {"volcano.sh/scheduler-name": "other"}}
    server.create(manifest(a_group("theirs"), metadata=meta, status={"phase": "Running"}))
    put_group(server, "ours", phase="Running")
    async with controllers(server.url):
        await until(lambda: status(server, "default").get("running") == 1)


async def test_many_groups_that_change_together_cost_few_writes(server: ApiServer) -> None:
    async with controllers(server.url, count_after_s=1.0):
        await until(lambda: state(server, "default") == "Open")
        before = status_writes(server)
        for number in range(50):
            put_group(server, f"g{number}")

        await until(lambda: status(server, "default").get("pending") == 50)

        assert status_writes(server) - before <= 2


async def test_nothing_is_written_when_nothing_changes(server: ApiServer) -> None:
    put_group(server, "a")
    async with controllers(server.url) as manager:
        await until(lambda: status(server, "default").get("pending") == 1 and state(server, "root") == "Open")
        await until(lambda: state(server, "default") == "Open")
        queues = queue_controller(manager)
        await until(lambda: queues._queue.backlog == 0)  # counts that are written a little later included
        before = server.requests.writes()
    async with controllers(server.url):
        put_queue(server, "last", parent="root")
        await until(lambda: state(server, "last") == "Open")

    after = server.requests.writes()
    assert sum(after.values()) - sum(before.values()) == 1


async def test_a_queue_with_groups_that_is_closed_is_closing_until_they_are_gone(server: ApiServer) -> None:
    put_queue(server, "ml")
    put_group(server, "a", "ml", "Running")
    async with controllers(server.url) as manager:
        await until(lambda: state(server, "ml") == "Open" and status(server, "ml").get("running") == 1)
        await set_state(manager, "ml", "Closed")
        await until(lambda: state(server, "ml") == "Closing")
        delete(server, GROUPS, "a", "default")

        await until(lambda: state(server, "ml") == "Closed")


async def test_children_are_closed_and_opened_with_their_parent(server: ApiServer) -> None:
    for name, parent in (("team", "root"), ("a", "team"), ("aa", "a")):
        put_queue(server, name, parent=parent)
    async with controllers(server.url) as manager:
        await until(lambda: {state(server, name) for name in ("team", "a", "aa")} == {"Open"})
        await set_state(manager, "team", "Closed")
        await until(lambda: {state(server, name) for name in ("team", "a", "aa")} == {"Closed"})
        await set_state(manager, "team", "Open")

        await until(lambda: {state(server, name) for name in ("team", "a", "aa")} == {"Open"})


async def test_conflicts_and_errors_only_delay(server: ApiServer) -> None:
    server.faults.add(Fault("reply", verb="patch", resource=f"{QUEUES}/status", times=2, code=409))
    server.faults.add(Fault("reply", verb="create", resource=QUEUES, times=2, code=503))
    async with controllers(server.url):
        await until(lambda: state(server, "root") == state(server, "default") == "Open")


async def test_only_the_controllers_that_were_chosen_work(server: ApiServer) -> None:
    async with controllers(server.url, controllers=frozenset({"pg-controller"})) as manager:
        assert (
            manager.registry.get_sample_value("volcano_py_controller_backlog", {"controller": "queue-controller"})
            is None
        )
    assert server.get(QUEUES, "root") is None


async def test_the_state_belongs_to_the_field_manager_of_volcano(server: ApiServer) -> None:
    """Otherwise Volcano, which applies it without force, could never change it again."""
    put_queue(server, "q")
    async with controllers(server.url) as manager:
        await until(lambda: state(server, "q") == "Open")
        await set_state(manager, "q", "Closed")
        await until(lambda: _owner_of_state(server, "q") == "")
        put_command(server, "OpenQueue", "q")
        await until(lambda: state(server, "q") == "Open")

        assert _owner_of_state(server, "q") == "queue-controller"


def _owner_of_state(server: ApiServer, name: str) -> str:
    """Return which manager applied the state of a queue, "" if the last write was no apply."""
    entries = (server.get(QUEUES, name) or {})["metadata"].get("managedFields", [])
    applied = [one for one in entries if one["operation"] == "Apply"]
    owners = [one["manager"] for one in applied if "f:state" in one["fieldsV1"].get("f:status", {})]
    return owners[0] if owners else ""


async def test_a_queue_that_was_just_closed_is_opened_although_the_watch_does_not_show_it_closed(
    server: ApiServer,
) -> None:
    put_queue(server, "ml")
    async with controllers(server.url) as manager:
        await until(lambda: state(server, "ml") == "Open")
        with late_watch(manager):
            put_command(server, "CloseQueue", "ml", "first")
            await until(lambda: not waiting(server))
            assert state(server, "ml") == "Closed"
            put_command(server, "OpenQueue", "ml", "second")
            await until(lambda: not waiting(server))

            assert state(server, "ml") == "Open"
        await stays(lambda: state(server, "ml") == "Open")


async def test_a_closing_queue_stays_closing_although_the_watch_does_not_show_it_yet(server: ApiServer) -> None:
    put_queue(server, "ml")
    put_group(server, "a", "ml", "Running")
    async with controllers(server.url) as manager:
        await until(lambda: state(server, "ml") == "Open" and status(server, "ml").get("running") == 1)
        with late_watch(manager):
            put_command(server, "CloseQueue", "ml")
            await until(lambda: state(server, "ml") == "Closing" and not waiting(server))
            put_group(server, "b", "ml", "Running")
            await until(lambda: status(server, "ml").get("running") == 2)
        await stays(lambda: state(server, "ml") == "Closing")


async def test_a_child_is_not_opened_below_a_parent_that_was_just_closed(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "PARENT_OPENS_S", 0.5)
    put_queue(server, "team", parent="root")
    put_queue(server, "a", parent="team")
    async with controllers(server.url) as manager:
        await until(lambda: state(server, "team") == state(server, "a") == "Open")
        with late_watch(manager):
            put_command(server, "CloseQueue", "team")
            await until(lambda: state(server, "team") == "Closed" and not waiting(server))
            put_command(server, "OpenQueue", "a")
            await until(lambda: not waiting(server) and "OpenQueue" in event_reasons(server, "Queue", "a"))
            told = events(server, "Queue", "a")
            assert {event["type"] for event in told if event["reason"] == "OpenQueue"} == {"Warning"}
        await until(lambda: state(server, "a") == "Closed")


async def test_a_command_waits_for_what_another_client_has_written_after_us(server: ApiServer) -> None:
    """The controller knows the queue as closed, so that the command seems to be carried out already."""
    put_queue(server, "ml")
    async with controllers(server.url) as manager:
        await until(lambda: state(server, "ml") == "Open")
        put_command(server, "CloseQueue", "ml")
        await until(lambda: state(server, "ml") == "Closed" and not waiting(server))
        with late_watch(manager):
            await set_state(manager, "ml", "Open")
            put_command(server, "CloseQueue", "ml", "later")
            await stays(lambda: waiting(server) == ["later"])

        await until(lambda: state(server, "ml") == "Closed" and not waiting(server))


async def test_a_state_whose_answer_was_lost_is_no_state_of_another_client(server: ApiServer) -> None:
    put_queue(server, "ml")
    put_group(server, "a", "ml", "Running")
    async with controllers(server.url) as manager:
        await until(lambda: state(server, "ml") == "Open" and status(server, "ml").get("running") == 1)
        server.faults.add(Fault("drop_after", verb="patch", resource=f"{QUEUES}/status", name="ml", skip=1, times=1))
        await set_state(manager, "ml", "Closed")
        await until(lambda: state(server, "ml") == "Closing")

        await stays(lambda: state(server, "ml") == "Closing")


async def test_nothing_is_kept_of_a_queue_that_is_gone(server: ApiServer) -> None:
    put_queue(server, "ml")
    async with controllers(server.url) as manager:
        await until(lambda: state(server, "ml") == "Open")
        delete(server, QUEUES, "ml")
        queues = queue_controller(manager)

        await until(lambda: queues._known.get("ml") is None)
        assert "ml" not in queues._known._known
