"""Debian's Prometheus as a child process of a test run: it scrapes our processes and answers queries."""

from __future__ import annotations

import json
import os
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
import yaml

from tests.controlplane.ports import free_ports
from tests.controlplane.processes import Processes
from tests.controlplane.waiting import wait_until

NAME = "prometheus"
MISSING = "the programs prometheus and promtool are missing: apt-get install --no-install-recommends prometheus"
SCRAPE_S = 2
NAMESPACE = "volcano-system"


class Target(NamedTuple):
    """What is scraped."""

    service: str
    address: str


class Series(NamedTuple):
    """One series of an answer."""

    labels: dict[str, str]
    values: list[tuple[float, float]]
    """Unix seconds and value."""


class QueryFailed(Exception):
    """Prometheus refused a query."""


def require_programs() -> None:
    """Skip a test without Prometheus; in continuous integration, fail."""
    if shutil.which("prometheus") and shutil.which("promtool"):
        return
    if os.environ.get("CI"):
        pytest.fail(MISSING)
    pytest.skip(MISSING)


class Prometheus:
    """One Prometheus with an empty database."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        (port,) = free_ports(1)
        self._address = f"127.0.0.1:{port}"
        self.url = f"http://{self._address}"
        self._folder = processes.folder / "prometheus"

    @classmethod
    def if_installed(cls, processes: Processes) -> Prometheus | None:
        """Return one, None if the program is not installed."""
        return cls(processes) if shutil.which("prometheus") else None

    def start(self, targets: Sequence[Target]) -> None:
        """Start it and wait until it has scraped every target."""
        self._folder.mkdir()
        (self._folder / "prometheus.yml").write_text(yaml.safe_dump(configuration(targets)))
        self._processes.start(
            NAME,
            [
                "prometheus",
                f"--config.file={self._folder}/prometheus.yml",
                f"--storage.tsdb.path={self._folder}/data",
                f"--web.listen-address={self._address}",
            ],
        )
        wait_until("Prometheus has scraped every target", lambda: self._up() == len(targets), 60.0, every=0.2)

    def stop(self) -> None:
        """End it."""
        if NAME in self._processes.running:
            self._processes.stop(NAME)

    def _up(self) -> int:
        self._processes.check_alive(NAME)
        try:
            return int(sum(series.values[0][1] for series in self.instant("up")))
        except OSError:  # it does not listen yet
            return 0

    def instant(self, query: str, at: float | None = None) -> list[Series]:
        """Return the answer to a query at one time."""
        found = self._ask("query", query=query, **({} if at is None else {"time": at}))
        return [Series(one["metric"], [_point(one["value"])]) for one in found["result"]]

    def range(self, query: str, start: float, end: float, step: float) -> list[Series]:
        """Return the answer to a query over some time."""
        found = self._ask("query_range", query=query, start=start, end=end, step=step)
        return [Series(one["metric"], [_point(point) for point in one["values"]]) for one in found["result"]]

    def _ask(self, what: str, **parameters: Any) -> Any:
        url = f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refused:
            said = refused.read().decode()
            if refused.code == 503:
                raise OSError(said) from refused  # it still reads its database
            raise QueryFailed(f"{parameters['query']}: {said}") from refused


def configuration(targets: Sequence[Target]) -> dict[str, Any]:
    """Return a configuration with the labels that a Prometheus in a cluster gives to these Services."""
    return {
        "global": {"scrape_interval": f"{SCRAPE_S}s", "scrape_timeout": f"{SCRAPE_S}s"},
        "scrape_configs": [
            {
                "job_name": "kubernetes-service-endpoints",
                "static_configs": [
                    {
                        "targets": [target.address],
                        "labels": {"kubernetes_name": target.service, "kubernetes_namespace": NAMESPACE},
                    }
                    for target in targets
                ],
            }
        ],
    }


def _point(found: Sequence[Any]) -> tuple[float, float]:
    return float(found[0]), float(found[1])
