"""Tests that run at the same time on one cluster, because each of them mostly waits.

    @together
    def test_a_failed_pod_restarts_its_job(jobs: Jobs) -> None: ...

When the first test of a module with this mark begins, all of them begin, each in a thread and with jobs of its own;
every test then waits for its own result. Besides `jobs`, such a test may only have parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import pytest

from tests.e2e.job_cluster import JobCluster
from tests.e2e.jobs import Jobs

F = TypeVar("F", bound=Callable[..., None])
AT_ONCE = 12
TOGETHER = "_runs_together"


def together(function: F) -> F:
    """Mark a test."""
    setattr(function, TOGETHER, True)
    return function


def runs_together(item: pytest.Item) -> bool:
    """Say whether a test has the mark."""
    return isinstance(item, pytest.Function) and hasattr(item.function, TOGETHER)


class Outcomes:
    """The results of the marked tests of one module."""

    def __init__(self, cluster: JobCluster) -> None:
        self._cluster = cluster
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="together")
        self._results: dict[str, Future[None]] = {}

    def of(self, item: pytest.Function, items: Iterable[pytest.Item]) -> None:
        """Return when a test has succeeded, raise what it raised; `items` are all tests of the run."""
        if not self._results:
            for each in items:
                if isinstance(each, pytest.Function) and runs_together(each) and each.path == item.path:
                    self._results[each.nodeid] = self._pool.submit(self._run, each)
        self._results[item.nodeid].result()

    def close(self) -> None:
        """Wait until no test runs."""
        self._pool.shutdown(cancel_futures=True)

    def _run(self, item: pytest.Function) -> None:
        parameters: dict[str, Any] = item.callspec.params if hasattr(item, "callspec") else {}
        jobs = Jobs(self._cluster)
        try:
            item.function(jobs=jobs, **parameters)
        except BaseException:
            jobs.close(judge=False)
            raise
        jobs.close()
