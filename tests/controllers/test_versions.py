"""Which of two states of an object is the older one."""

import pytest

from volcano_py.controllers.versions import is_older


@pytest.mark.parametrize(
    ("new", "old", "older"), [("9", "10", True), ("10", "9", False), ("7", "7", False), ("a", "7", False)]
)
def test_versions_are_compared_as_numbers(new: str, old: str, older: bool) -> None:
    assert is_older(new, old) is older
