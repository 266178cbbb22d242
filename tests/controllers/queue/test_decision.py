"""What is written about queues."""

from typing import Any

import msgspec
import pytest

from volcano_py.controllers.queue import decision
from volcano_py.controllers.queue.commands import CLOSE, OPEN, refusal
from volcano_py.controllers.queue.decision import CountedQueue
from volcano_py.controllers.writes import ApplyStatus, Patch, Write
from volcano_py.testing import a_queue, as_json

MARK = "volcano.sh/closed-by-parent"


def a_counted_queue(
    name: str = "q", state: str = "", parent: str = "root", mark: str = "", **counts: int
) -> CountedQueue:
    """Return a queue with what its status counts."""
    meta = {"resourceVersion": "5", "annotations": {MARK: mark} if mark else {}}
    wire = as_json(a_queue(name, state=state, parent=parent), metadata=meta, status=counts)
    return msgspec.convert(wire, CountedQueue)


ROOT = a_counted_queue("root", "Open", parent="")


def patches(writes: tuple[Write, ...]) -> list[tuple[str, dict[str, Any]]]:
    """Return the subresource of each patch, and what it changes."""
    found = []
    for write in writes:
        if isinstance(write, ApplyStatus):
            found.append(("state", write.status))
            assert write.manager == "queue-controller"
            continue
        assert isinstance(write, Patch)
        part = "status" if write.subresource else "object"
        found.append((part, {key: value for key, value in write.body.items() if key != "metadata"}))
    return found


def test_a_queue_without_a_state_is_opened() -> None:
    verdict = decision.judge(a_counted_queue(), None, ROOT, {})

    assert patches(verdict.writes) == [("state", {"state": "Open"})]
    assert verdict.writes[0].metadata == {"uid": "uid-q", "resourceVersion": "5"}


def test_a_queue_in_its_desired_state_costs_no_write() -> None:
    assert decision.judge(a_counted_queue(state="Open", running=2), "Open", ROOT, {"Running": 2}).writes == ()


def test_groups_are_counted_by_phase_in_one_write() -> None:
    verdict = decision.judge(a_counted_queue(state="Open", pending=3), "Open", ROOT, {"Running": 1, "Inqueue": 2})

    assert patches(verdict.writes) == [("status", {"status": {"pending": 0, "inqueue": 2, "running": 1}})]


def test_a_queue_without_a_parent_gets_root() -> None:
    verdict = decision.judge(a_counted_queue(state="Open", parent=""), "Open", None, {})

    assert patches(verdict.writes) == [("object", {"spec": {"parent": "root"}})]


def test_root_has_no_parent_and_is_always_open() -> None:
    verdict = decision.judge(a_counted_queue("root", "Closed", parent=""), "Open", None, {})

    assert patches(verdict.writes) == [("state", {"state": "Open"})]


@pytest.mark.parametrize(("groups", "state"), [(0, None), (2, "Closing")])
def test_a_queue_closed_by_hand_closes_once_its_groups_are_gone(groups: int, state: str | None) -> None:
    verdict = decision.judge(a_counted_queue(state="Closed", running=groups), "Open", ROOT, {"Running": groups})

    assert verdict.state == (state or "Closed")
    assert patches(verdict.writes) == ([("state", {"state": state})] if state else [])


def test_a_closing_queue_is_closed_when_its_last_group_is_gone() -> None:
    assert decision.judge(a_counted_queue(state="Closing"), "Closing", ROOT, {}).state == "Closed"


@pytest.mark.parametrize("above", ["Closed", "Closing"])
def test_a_queue_is_closed_with_its_parent_and_remembers_that(above: str) -> None:
    verdict = decision.judge(
        a_counted_queue(state="Open", parent="team", running=1), "Open", a_counted_queue("team", above), {"Running": 1}
    )

    assert verdict.state == "Closing"
    assert patches(verdict.writes) == [("object", {}), ("state", {"state": "Closing"})]
    assert verdict.writes[0].body["metadata"]["annotations"] == {MARK: "true"}


def test_a_queue_that_was_closed_with_its_parent_is_opened_with_it() -> None:
    verdict = decision.judge(
        a_counted_queue(state="Closed", parent="team", mark="true"), "Closed", a_counted_queue("team", "Open"), {}
    )

    assert verdict.state == "Open"
    assert patches(verdict.writes) == [("state", {"state": "Open"}), ("object", {})]
    assert verdict.writes[1].body["metadata"]["annotations"] == {MARK: "false"}


def test_a_queue_that_was_closed_by_hand_stays_closed_when_its_parent_opens() -> None:
    assert (
        decision.judge(
            a_counted_queue(state="Closed", parent="team"), "Closed", a_counted_queue("team", "Open"), {}
        ).writes
        == ()
    )


def test_a_queue_opened_by_hand_under_a_closed_parent_is_closed_again() -> None:
    queue = a_counted_queue(state="Open", parent="team", mark="true")

    verdict = decision.judge(queue, "Closed", a_counted_queue("team", "Closed"), {})

    assert verdict.state == "Closed"


def test_a_parent_that_does_not_exist_changes_nothing() -> None:
    assert decision.judge(a_counted_queue(state="Open", parent="gone"), "Open", None, {}).writes == ()


@pytest.mark.parametrize(("name", "reclaimable"), [("root", False), ("default", True)])
def test_queues_that_must_exist_are_made(name: str, reclaimable: bool) -> None:
    assert decision.missing(name).body["spec"] == {"weight": 1, "reclaimable": reclaimable}


def test_completed_groups_do_not_keep_a_queue_from_closing() -> None:
    queue = a_counted_queue(state="Closing", completed=3)

    assert decision.judge(queue, "Closing", ROOT, {"Completed": 3}).state == "Closed"
    assert decision.judge(queue, "Closing", ROOT, {"Completed": 3, "Pending": 1}).state == "Closing"


def told(verdict: decision.Verdict) -> list[tuple[str, str]]:
    """Return reason and text of each event."""
    return [(event.reason, event.message) for event in verdict.events]


def test_a_command_closes_a_queue_and_the_event_says_what_is_left() -> None:
    queue = a_counted_queue(state="Open", running=2)

    verdict = decision.judge(queue, "Open", ROOT, {"Running": 2}, CLOSE)

    assert patches(verdict.writes) == [("state", {"state": "Closing"})]
    assert told(verdict) == [("CloseQueue", "queue q is closing: 2 PodGroups are left")]


def test_a_command_opens_a_closed_queue() -> None:
    verdict = decision.judge(a_counted_queue(state="Closed"), "Closed", ROOT, {}, OPEN)

    assert verdict.state == "Open"
    assert told(verdict) == [("OpenQueue", "queue q is open")]


@pytest.mark.parametrize(("action", "state"), [(CLOSE, "Closed"), (OPEN, "Open")])
def test_a_command_for_the_known_state_writes_it_in_case_somebody_has_changed_it(action: str, state: str) -> None:
    verdict = decision.judge(a_counted_queue(state=state), state, ROOT, {}, action)

    assert patches(verdict.writes)[0] == ("state", {"state": state})
    assert verdict.writes[0].metadata == {"uid": "uid-q", "resourceVersion": "5"}


def test_a_queue_that_a_command_opens_says_that_no_parent_has_closed_it() -> None:
    """As in Volcano, also if it never was closed by its parent; not twice."""
    verdict = decision.judge(a_counted_queue(state="Closed"), "Closed", ROOT, {}, OPEN)
    again = decision.judge(a_counted_queue(state="Closed", mark="false"), "Closed", ROOT, {}, OPEN)

    assert [write.body["metadata"]["annotations"] for write in verdict.writes[1:] if isinstance(write, Patch)] == [
        {"volcano.sh/closed-by-parent": "false"}
    ]
    assert len(again.writes) == 1


def test_a_queue_that_a_command_closes_stays_closed_when_its_parent_opens() -> None:
    queue = a_counted_queue(state="Closed", parent="team", mark="true")

    verdict = decision.judge(queue, "Closed", a_counted_queue("team", "Closed"), {}, CLOSE)

    assert patches(verdict.writes) == [("object", {}), ("state", {"state": "Closed"})]
    assert verdict.writes[0].body["metadata"]["annotations"] == {MARK: "false"}


@pytest.mark.parametrize("state", ["Open", "Unknown"])
def test_the_event_of_a_queue_that_is_closed_with_its_parent_names_the_parent(state: str) -> None:
    queue = a_counted_queue(state=state, parent="team")

    verdict = decision.judge(queue, state, a_counted_queue("team", "Closed"), {})

    assert told(verdict) == [("CloseQueue", "queue q is closed, like its parent team")]


def test_a_state_that_somebody_wrote_is_no_event() -> None:
    assert decision.judge(a_counted_queue(state="Closed"), "Open", ROOT, {}).events == ()


@pytest.mark.parametrize(
    ("queue", "action", "parent", "text"),
    [
        (ROOT, CLOSE, None, "queue root cannot be closed: close the queues below it"),
        (
            a_counted_queue(state="Closed", parent="team"),
            OPEN,
            a_counted_queue("team", "Closing"),
            "queue q cannot be opened while its parent team is Closing: open team first",
        ),
        (a_counted_queue(), "AbortJob", ROOT, "AbortJob is no command for a queue: use OpenQueue or CloseQueue"),
        (
            a_counted_queue(),
            "",
            ROOT,
            "a command without action is no command for a queue: use OpenQueue or CloseQueue",
        ),
        (a_counted_queue(state="Closed"), OPEN, ROOT, ""),
        (a_counted_queue(state="Closed", parent="gone"), OPEN, None, ""),
        (a_counted_queue(state="Open"), CLOSE, ROOT, ""),
        (a_counted_queue(state="Open"), "SyncQueue", ROOT, ""),
    ],
)
def test_commands_that_cannot_be_carried_out_are_refused_in_words(
    queue: CountedQueue, action: str, parent: CountedQueue | None, text: str
) -> None:
    assert refusal(queue, action, parent) == text
