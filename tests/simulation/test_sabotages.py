"""The table of sabotages fits the present code."""

import pytest

from tests.simulation.invariants import INVARIANTS
from tests.simulation.sabotages import SABOTAGES, Sabotage
from tests.simulation.sabotages.search import COPIED, ROOT

FEWEST = 30
MISSING = frozenset({"no needless list", "orderly end"})
"""Invariants that nobody has written yet."""
FEWEST_OF_EACH = 5


def test_there_are_enough_of_each_kind() -> None:
    """Effects, cache, requests, daemon and controllers have five each, all in all thirty."""
    from tests.simulation.sabotages import cache, controllers, daemon, effects, kube

    modules = (effects, cache, kube, daemon, controllers)
    assert all(len(module.SABOTAGES) >= FEWEST_OF_EACH for module in modules)
    assert len(SABOTAGES) == sum(len(module.SABOTAGES) for module in modules) >= FEWEST


@pytest.mark.parametrize("sabotage", SABOTAGES.values(), ids=SABOTAGES.keys())
def test_each_changes_code_that_still_compiles(sabotage: Sabotage) -> None:
    """The text that is replaced is there exactly once, and what comes of it is Python."""
    assert sabotage.file.startswith(tuple(f"{name}/" for name in COPIED))
    text = (ROOT / sabotage.file).read_text()
    changed = sabotage.apply(text)
    assert changed != text
    compile(changed, sabotage.file, "exec")
    assert sabotage.harm.endswith(".")
    assert sabotage.found_by


def test_each_names_what_should_find_it() -> None:
    """The invariants are those that there are, or the text says which is missing."""
    known = {*INVARIANTS, *MISSING}
    assert not {name for each in SABOTAGES.values() for name in each.found_by} - known
