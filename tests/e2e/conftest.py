"""End-to-end tests: every test here is marked `e2e`; a failure shows the last log lines of the servers."""

from __future__ import annotations

from collections.abc import Generator, Iterator
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
from tests.controlplane.install import Installed
from tests.e2e.control_plane import ControlPlane
from tests.e2e.hundred_jobs import HundredJobs, Run
from tests.e2e.job_cluster import JobCluster
from tests.e2e.jobs import Jobs
from tests.e2e.kubectl import embedded, kubectl, node, server
from tests.e2e.rights import (
    pytest_collection_finish,
    pytest_configure,
    pytest_deselected,
    pytest_sessionfinish,
    pytest_terminal_summary,
)
from tests.e2e.together import Outcomes, runs_together

__all__ = [
    "control_plane",
    "embedded",
    "installed",
    "kubectl",
    "make_nodes",
    "namespace",
    "node",
    "own_control_plane",
    "pytest_collection_finish",
    "pytest_configure",
    "pytest_deselected",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "server",
]

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test collected here as `e2e`, with a longer timeout: five servers on a busy machine are slow."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(240))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the last lines of every server's log to the report of a failed test.

    A test with an API server of its own gets the logs of that. The logs are removed when the run ends, unless
    $VOLCANO_PY_KEEP_LOGS is set.
    """
    report = yield
    own = getattr(item, "funcargs", {}).get("fresh")
    plane = own if isinstance(own, ControlPlane) else running_control_plane()
    if report.failed and plane is not None:
        for name, log in plane.processes.logs().items():
            report.sections.append((f"{name}: end of {log}", plane.processes.log_tail(name)))
    return report


@pytest.fixture(scope="module")
def job_cluster(control_plane: ControlPlane, installed: Installed) -> Iterator[JobCluster]:
    """A cluster that runs jobs, for the tests of one module."""
    cluster = JobCluster(control_plane, installed)
    try:
        yield cluster.start()
    finally:
        problems = cluster.stop()
    assert not problems, problems


@pytest.fixture(scope="session")
def hundred_jobs(control_plane: ControlPlane, installed: Installed) -> Iterator[Run]:
    """What happened while a hundred jobs ran, and what metrics said about it."""
    if not control_plane.owned:
        pytest.skip("needs a cluster without other jobs, and KUBECONFIG names one that is not ours")
    run = HundredJobs(control_plane, installed).play()
    yield run
    if run.prometheus is not None:
        run.prometheus.stop()


@pytest.fixture(scope="module")
def outcomes(job_cluster: JobCluster) -> Iterator[Outcomes]:
    """The results of the tests of one module that run together."""
    found = Outcomes(job_cluster)
    yield found
    found.close()


@pytest.fixture
def jobs(job_cluster: JobCluster, outcomes: Outcomes) -> Iterator[Jobs]:
    """The jobs of one test; their histories are judged when it ends."""
    made = Jobs(job_cluster)
    yield made
    made.close()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Wait for the result of a test that runs together with others, instead of calling it."""
    if not runs_together(pyfuncitem):
        return None
    pyfuncitem.funcargs["outcomes"].of(pyfuncitem, pyfuncitem.session.items)
    return True
