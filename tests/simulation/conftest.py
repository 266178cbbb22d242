"""Simulations in tests log nothing, and a fabricated world for tests of invariants."""

from collections.abc import Iterator

import pytest

from tests.simulation.fabricated import Fabricated
from tests.simulation.logs import silence
from volcano_py.apiserver.origin import ORIGIN


@pytest.fixture(autouse=True)
def _silence() -> Iterator[None]:
    with silence():
        yield


@pytest.fixture
def world() -> Iterator[Fabricated]:
    """A world with two nodes and a scheduler that leads."""
    token = ORIGIN.set(ORIGIN.get())
    fabricated = Fabricated()
    fabricated.node("node-0")
    fabricated.node("node-1")
    fabricated.lead(fabricated.one)
    fabricated.at(1.0)
    yield fabricated
    fabricated.loop.abandon()
    ORIGIN.reset(token)
