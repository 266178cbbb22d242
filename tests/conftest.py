"""Settings and fixtures for every test."""

import gc
import logging
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, settings

from tests.digest import pytest_terminal_summary
from volcano_py.kube.own_faults import OwnFaults

__all__ = ["pytest_terminal_summary"]


# An example's duration depends mostly on the machine's other load; pytest's timeout ends a test that hangs.
settings.register_profile(
    "tests",
    settings.default,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tests")


# The log of a test has plain tracebacks: the default shows all variables of all frames, which takes seconds.
_PROCESSORS = [
    *structlog.get_config()["processors"][:-1],
    structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
]
structlog.configure(processors=_PROCESSORS)


def pytest_collection_finish() -> None:
    """Exclude the test modules from garbage collection: scanning them took a seventh of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Restore the logging settings after a test that ran a command in this process: other tests read their own logs."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()
    structlog.configure(processors=_PROCESSORS)


@pytest.fixture(autouse=True)
def faults_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an exception that nobody expected end the program under test, which survives it otherwise."""
    monkeypatch.setattr(OwnFaults, "survived", False)


@pytest.fixture(autouse=True)
def garbage_as_before() -> Iterator[None]:
    """Restore the garbage collector after a test that ran a server's command here: others count what is left."""
    threshold, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    if (gc.get_threshold(), gc.callbacks) == (threshold, callbacks):
        return
    gc.set_threshold(*threshold)
    gc.callbacks[:] = callbacks
    gc.unfreeze()
    gc.collect()
    gc.freeze()  # the test modules again
