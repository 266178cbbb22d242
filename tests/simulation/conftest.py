"""Simulations in tests log nothing."""

from collections.abc import Iterator

import pytest

from tests.simulation.logs import silence


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    with silence():
        yield
