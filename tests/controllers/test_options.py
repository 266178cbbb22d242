"""Choosing controllers."""

import pytest

from volcano_py.controllers.options import CONTROLLERS_TO_COME, Chosen, chosen_controllers
from volcano_py.controllers.table import CONTROLLERS
from volcano_py.runtime.options import OptionError

PG, QUEUE = "pg-controller", "queue-controller"
ALL = set(CONTROLLERS)


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("*", ALL),
        ("*,-queue-controller", ALL - {QUEUE}),
        ("-queue-controller,*", ALL - {QUEUE}),
        ("pg-controller", {PG}),
        ("+queue-controller", {QUEUE}),
        ("-pg-controller", set()),
        pytest.param("*,-sharding-controller", ALL, id="Volcano's default"),
    ],
)
def test_controllers_are_chosen_by_name(text: str, chosen: set[str]) -> None:
    assert chosen_controllers(text) == Chosen(frozenset(chosen))


def test_no_controller_is_both_here_and_still_to_come() -> None:
    assert not ALL & set(CONTROLLERS_TO_COME)


def test_a_controller_that_only_volcano_has_is_named() -> None:
    assert chosen_controllers("pg-controller,sharding-controller") == Chosen(frozenset({PG}), ("sharding-controller",))


@pytest.mark.parametrize(
    ("text", "problem"),
    [("nobody", "'nobody' is not a controller"), ("pg-controller,-pg-controller", "both asked for and left out")],
)
def test_an_invalid_choice_of_controllers_is_refused(text: str, problem: str) -> None:
    with pytest.raises(OptionError, match=problem):
        chosen_controllers(text)
