"""Commands for queues on an embedded API server."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.controllers.managing import QUEUES, controllers, put_group, put_queue, state, status
from tests.daemon.cluster import event_reasons, events, stays
from tests.effects.waiting import until
from volcano_py.apiserver import ApiServer, Fault
from volcano_py.controllers.queue import controller
from volcano_py.kube.resource import COMMANDS

LABEL = COMMANDS.label


def put_command(
    server: ApiServer, action: str, queue: str, name: str = "c", finalizers: Sequence[str] = (), **target: Any
) -> None:
    found = server.get(QUEUES, queue)
    uid = found["metadata"]["uid"] if found is not None else "nobody"
    server.create(
        {
            "apiVersion": COMMANDS.api_version,
            "kind": "Command",
            "metadata": {"name": name, "namespace": "default", "finalizers": list(finalizers)},
            "action": action,
            "target": {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "kind": "Queue",
                "name": queue,
                "uid": uid,
                **target,
            },
        }
    )


def waiting(server: ApiServer) -> list[str]:
    return [item["metadata"]["name"] for item in server.list(LABEL)]


async def put_open_tree(server: ApiServer, *names: str) -> None:
    """Create queues, each the child of the one before, and wait until they are open."""
    for name, parent in zip(names, ("root", *names), strict=False):
        put_queue(server, name, parent=parent)
    await until(lambda: {state(server, name) for name in names} == {"Open"})


async def test_a_command_closes_a_queue_with_its_children_and_another_opens_them(server: ApiServer) -> None:
    async with controllers(server.url):
        await put_open_tree(server, "team", "a", "aa")
        put_command(server, "CloseQueue", "team")
        await until(lambda: {state(server, name) for name in ("team", "a", "aa")} == {"Closed"})
        await until(lambda: not waiting(server))
        for name in ("team", "aa"):
            await until(lambda name=name: "CloseQueue" in event_reasons(server, "Queue", name))
        put_command(server, "OpenQueue", "team")

        await until(lambda: {state(server, name) for name in ("team", "a", "aa")} == {"Open"})
        await until(lambda: not waiting(server))


async def test_a_queue_with_groups_is_closing_until_they_are_gone(server: ApiServer) -> None:
    put_group(server, "g", "ml", "Running")
    async with controllers(server.url):
        await put_open_tree(server, "ml")
        put_command(server, "CloseQueue", "ml")
        await until(lambda: state(server, "ml") == "Closing" and not waiting(server))
        server.registry.delete(server.resources.named("podgroups.scheduling.volcano.sh"), "default", "g")

        await until(lambda: state(server, "ml") == "Closed")


@pytest.mark.parametrize("order", [("team", "a"), ("a", "team")])
async def test_a_child_and_its_parent_are_opened_by_commands_in_any_order(
    server: ApiServer, order: tuple[str, str]
) -> None:
    async with controllers(server.url):
        await put_open_tree(server, "team", "a")
        for queue in ("team", "a"):  # the second one keeps the child closed when its parent is opened
            put_command(server, "CloseQueue", queue, f"close-{queue}")
            await until(lambda queue=queue: state(server, queue) == "Closed" and not waiting(server))
        for queue in order:
            put_command(server, "OpenQueue", queue, f"open-{queue}")

        await until(lambda: state(server, "team") == state(server, "a") == "Open" and not waiting(server))
        await until(lambda: "OpenQueue" in event_reasons(server, "Queue", "a"))
        opened = [event for event in events(server, "Queue", "a") if event["reason"] == "OpenQueue"]
        assert {event["type"] for event in opened} == {"Normal"}


async def test_a_child_is_not_opened_below_a_closed_parent_and_says_why(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controller, "PARENT_OPENS_S", 0.5)
    async with controllers(server.url):
        await put_open_tree(server, "team", "a")
        put_command(server, "CloseQueue", "team")
        await until(lambda: state(server, "a") == "Closed" and not waiting(server))
        put_command(server, "OpenQueue", "a")
        await until(lambda: not waiting(server))

        await until(lambda: "OpenQueue" in event_reasons(server, "Queue", "a"))
        (event,) = (event for event in events(server, "Queue", "a") if event["reason"] == "OpenQueue")
        assert event["type"] == "Warning"
        assert state(server, "a") == "Closed"


async def test_root_is_not_closed(server: ApiServer) -> None:
    async with controllers(server.url):
        await until(lambda: state(server, "root") == "Open")
        put_command(server, "CloseQueue", "root")

        await until(lambda: not waiting(server) and "CloseQueue" in event_reasons(server, "Queue", "root"))
        assert state(server, "root") == "Open"


async def test_commands_for_one_queue_are_carried_out_one_after_the_other(server: ApiServer) -> None:
    put_queue(server, "ml")
    for number, action in enumerate(("CloseQueue", "OpenQueue", "CloseQueue")):
        put_command(server, action, "ml", f"c{number}")
    async with controllers(server.url):
        await until(lambda: not waiting(server))

        await until(lambda: state(server, "ml") == "Closed")
        await until(lambda: event_reasons(server, "Queue", "ml") == {"CloseQueue", "OpenQueue"})


async def test_a_command_is_carried_out_although_the_process_ended_before_its_end(server: ApiServer) -> None:
    put_queue(server, "ml")
    async with controllers(server.url):
        await until(lambda: state(server, "ml") == "Open")
        server.faults.add(Fault("reply", verb="patch", resource=f"{QUEUES}/status", code=500, times=1000))
        put_command(server, "CloseQueue", "ml")
    assert waiting(server) == ["c"]
    server.faults.clear()
    async with controllers(server.url):
        await until(lambda: state(server, "ml") == "Closed" and not waiting(server))


async def test_a_command_that_cannot_be_deleted_is_not_carried_out_again(server: ApiServer) -> None:
    async with controllers(server.url):
        await put_open_tree(server, "ml")
        server.faults.add(Fault("reply", verb="delete", resource=LABEL, code=500, times=2))
        put_command(server, "CloseQueue", "ml")
        await until(lambda: state(server, "ml") == "Closed")
        await until(lambda: not waiting(server))

        await until(lambda: "CloseQueue" in event_reasons(server, "Queue", "ml"))
        assert [event["count"] for event in events(server, "Queue", "ml")] == [1]


async def test_a_queue_goes_on_while_a_command_may_not_be_deleted_and_later_commands_wait(
    server: ApiServer, monkeypatch: Any
) -> None:
    monkeypatch.setattr("volcano_py.controllers.queue.controller._REFUSED_S", 0.5)
    async with controllers(server.url):
        await put_open_tree(server, "ml")
        server.faults.add(Fault("reply", verb="delete", resource=LABEL, code=403, times=1_000_000))
        put_command(server, "CloseQueue", "ml")
        await until(lambda: state(server, "ml") == "Closed")
        put_command(server, "OpenQueue", "ml", "later")
        await until(lambda: "UndeletableCommand" in event_reasons(server, "Queue", "ml"))

        put_group(server, "g", "ml")
        await until(lambda: status(server, "ml").get("pending") == 1)
        assert waiting(server) == ["c", "later"]
        assert state(server, "ml") == "Closed"

        server.faults.clear()
        await until(lambda: state(server, "ml") == "Open" and not waiting(server))


async def test_a_command_that_a_finalizer_keeps_is_carried_out_by_no_later_process(
    server: ApiServer,
) -> None:
    async with controllers(server.url):
        await put_open_tree(server, "team")
        put_command(server, "CloseQueue", "team", finalizers=["example.com/keep"])
        await until(lambda: state(server, "team") == "Closed")
        await until(lambda: "deletionTimestamp" in (server.get(LABEL, "c", "default") or {})["metadata"])
        put_command(server, "OpenQueue", "team", "later")
        await until(lambda: state(server, "team") == "Open" and waiting(server) == ["c"])
    async with controllers(server.url):
        await stays(lambda: state(server, "team") == "Open")

    assert waiting(server) == ["c"]


async def test_a_command_for_a_queue_that_is_gone_is_given_up(server: ApiServer, monkeypatch: Any) -> None:
    monkeypatch.setattr("volcano_py.controllers.queue.controller._PATIENCE_S", 0.2)
    put_queue(server, "ml")
    put_command(server, "CloseQueue", "ml", uid="an-earlier-queue")
    async with controllers(server.url):
        await until(lambda: not waiting(server))

        await until(lambda: "CommandWithoutTarget" in event_reasons(server, "Command", "c"))
        assert state(server, "ml") == "Open"


async def test_commands_for_others_are_left_alone(server: ApiServer) -> None:
    put_queue(server, "ml")
    put_command(server, "CloseQueue", "ml", apiVersion="batch.volcano.sh/v1alpha1", kind="Job")
    put_command(server, "CloseQueue", "ml", "second")
    async with controllers(server.url, controllers=frozenset({"queue-controller"})):
        await until(lambda: state(server, "ml") == "Closed" and waiting(server) == ["c"])
