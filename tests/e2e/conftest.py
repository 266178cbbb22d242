"""End-to-end tests: every test here is marked `e2e`; a failure shows the last log lines of the servers."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.controlplane.fixtures import (
    control_plane,
    installed,
    make_nodes,
    namespace,
    own_control_plane,
    running_control_plane,
)
from tests.e2e.kubectl import embedded, kubectl, node, server

__all__ = [
    "control_plane",
    "embedded",
    "installed",
    "kubectl",
    "make_nodes",
    "namespace",
    "node",
    "own_control_plane",
    "server",
]

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test collected here as `e2e`, with a longer timeout: five servers on a busy machine are slow."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(240))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the last lines of every server's log to the report of a failed test.

    The logs are removed when the run ends, unless $VOLCANO_PY_KEEP_LOGS is set.
    """
    report = yield
    plane = running_control_plane()
    if report.failed and plane is not None:
        for name, log in plane.processes.logs().items():
            report.sections.append((f"{name}: end of {log}", plane.processes.log_tail(name)))
    return report
