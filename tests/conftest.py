"""What holds for every test."""

import gc
import logging
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.digest import pytest_terminal_summary

__all__ = ["pytest_terminal_summary"]


# How long an example takes says more about what else the machine does; a test that hangs is ended by pytest's timeout.
settings.register_profile(
    "tests",
    settings.default,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")


def pytest_collection_finish() -> None:
    """Leave the modules of all tests out of the search for cycles: going through them took a seventh of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Undo what a command that ran in this process set for its logs: others count on seeing theirs."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()
