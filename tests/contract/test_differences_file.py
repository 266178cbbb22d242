"""Every entry in the list of differences names a test of this suite and gives a reason."""

from __future__ import annotations

import pytest

from tests.contract.conftest import difference_id, listed_differences


def test_every_listed_difference_is_a_test_of_this_suite(request: pytest.FixtureRequest) -> None:
    config = request.config
    if config.option.keyword or any("::" in argument for argument in config.args):
        pytest.skip("only part of the suite was collected")
    known = {difference_id(item) for item in request.session.items}
    assert set(listed_differences()) <= known


@pytest.mark.parametrize("row", listed_differences().values(), ids=lambda row: row["id"])
def test_every_listed_difference_says_what_and_why(row: dict[str, str]) -> None:
    assert set(row) == {"id", "what", "why"}
