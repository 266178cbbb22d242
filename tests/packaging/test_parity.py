"""The page on parity: every action and plugin of Volcano has its line, and its tests exist."""

import re

import pytest

from tests.packaging.pages import DOCS, REPOSITORY, rows
from volcano_py.actions import ACTIONS
from volcano_py.plugins import PLUGINS
from volcano_py.scheduler.policy import PLUGINS_TO_COME

PAGE = DOCS / "parity.md"


def names(section: str) -> dict[str, str]:
    """Return the state of each name of a table."""
    return {name: cells[1] for cells in rows(PAGE, section) for name in re.findall(r"`([^`]+)`", cells[0])}


def test_every_action_has_its_line():
    assert set(names("Actions")) == set(ACTIONS)


def test_every_plugin_has_its_line_and_only_those_to_come_are_not_yet_here():
    said = names("Plugins")

    assert set(said) == set(PLUGINS) | PLUGINS_TO_COME
    assert {name for name, state in said.items() if state == "not yet"} == PLUGINS_TO_COME


@pytest.mark.parametrize(
    "section",
    ["Actions", "Plugins", "Jobs", "Plugins of jobs", "Cron jobs and finished jobs", "The rest of the scheduler"],
)
def test_every_difference_gives_a_reason_and_names_existing_tests(section: str):
    for cells in rows(PAGE, section):
        tests = re.findall(r"`(tests/[^`]+)`", cells[-1])
        if "not yet" not in cells:
            assert tests, f"{cells[0]} names no test"
        assert cells[2] or cells[1] == "same", f"{cells[0]} does not say what differs"
        for test in tests:
            assert (REPOSITORY / test).exists(), f"{cells[0]}: there is no {test}"
