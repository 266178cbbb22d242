"""The state machine of queues."""

import pytest

from volcano_py.controllers.queue import states

STATES = ("Open", "Closing", "Closed", "Unknown")


@pytest.mark.parametrize(
    ("was", "stored", "groups", "state"),
    [
        ("Open", "", False, "Open"),
        ("", "", False, "Open"),
        ("Open", "Open", True, "Open"),
        ("Open", "Closed", False, "Closed"),
        ("Open", "Closed", True, "Closing"),
        ("Open", "Closing", True, "Unknown"),
        ("Open", "garbage", False, "Unknown"),
        ("Closing", "Open", True, "Open"),
        ("Closing", "Closing", True, "Closing"),
        ("Closing", "Closing", False, "Closed"),
        ("Closing", "garbage", False, "Unknown"),
        ("Closed", "Open", False, "Open"),
        ("Closed", "Closed", True, "Closed"),
        ("Closed", "garbage", False, "Unknown"),
        ("Unknown", "Open", False, "Open"),
        ("Unknown", "Closed", False, "Closed"),
        ("Unknown", "Closed", True, "Closing"),
        ("Unknown", "Unknown", True, "Unknown"),
    ],
)
def test_synchronising(was: str, stored: str, groups: bool, state: str) -> None:
    assert states.sync(was, stored, groups) == state


@pytest.mark.parametrize(
    ("was", "groups", "state"),
    [
        ("Open", False, "Closed"),
        ("Open", True, "Closing"),
        ("Closing", True, "Closing"),
        ("Closing", False, "Closed"),
        ("Closed", True, "Closed"),
        ("Unknown", True, "Closing"),
        ("Unknown", False, "Closed"),
    ],
)
def test_closing_waits_for_the_groups_that_are_left(was: str, groups: bool, state: str) -> None:
    assert states.close(was, groups) == state


def test_opening_is_possible_from_every_state() -> None:
    assert states.open_() == "Open"


@pytest.mark.parametrize("groups", [True, False])
@pytest.mark.parametrize("was", STATES)
@pytest.mark.parametrize("stored", STATES)
def test_synchronising_twice_changes_nothing_more(was: str, stored: str, groups: bool) -> None:
    state = states.sync(was, stored, groups)

    assert states.sync(state, state, groups) == state
