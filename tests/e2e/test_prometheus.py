"""A real Prometheus has scraped a system that ran a hundred jobs: every panel has data, and can be drawn."""

from __future__ import annotations

import math
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.e2e.hundred_jobs import Run
from tests.e2e.prometheus import SCRAPE_S, Prometheus, require_programs
from tools.dashboards.__main__ import WRITTEN
from tools.dashboards.description import Dashboard, Panel, read_all
from tools.dashboards.draw import Window, draw, query_of
from tools.dashboards.prometheus import at

pytestmark = pytest.mark.timeout(480)  # the first test waits for the hundred jobs
PICTURES = "VOLCANO_PY_PICTURES"
DASHBOARDS = read_all()
PANELS = [
    pytest.param(panel, id=f"{dashboard.name}: {panel.title}") for dashboard in DASHBOARDS for panel in dashboard.panels
]
SCHEDULER, CONTROLLERS = 'kubernetes_name="volcano-scheduler-service"', 'kubernetes_name="volcano-controllers-service"'
QUEUE_GAUGES = [
    f"volcano_queue_{what}_{unit}"
    for what in ("request", "allocated", "deserved", "capacity", "real_capacity")
    for unit in ("milli_cpu", "memory_bytes", 'scalar_resources{resource="nvidia.com/gpu"}')
]
HISTOGRAMS = {
    "volcano_e2e_scheduling_latency_milliseconds": "",
    "volcano_open_session_duration_milliseconds": "",
    "volcano_e2e_job_scheduling_latency_milliseconds": "",
    "volcano_plugin_scheduling_latency_milliseconds": "plugin, OnSession",
    "volcano_action_scheduling_latency_milliseconds": "action",
    "volcano_task_scheduling_latency_milliseconds": "stage",
    "volcano_scheduling_stage_duration_milliseconds": "stage",
    "volcano_controller_job_to_pod_creation_latency_milliseconds": "",
}
AS_IN_VOLCANOS_DASHBOARDS = [
    *(f"sum by (queue_name) ({gauge})" for gauge in QUEUE_GAUGES),
    "volcano_queue_share",
    *(
        f"histogram_quantile(0.95, sum by (le{by and ', '}{by}) (rate({name}_bucket[$__rate_interval])))"
        for name, by in HISTOGRAMS.items()
    ),
    *(
        f"{total}({part}(volcano_e2e_job_scheduling_duration) by ({label}))"
        for total in ("max", "min")
        for part in ("avg", "stddev")
        for label in ("queue", "job_namespace")
    ),
    "avg(volcano_e2e_job_scheduling_duration) by (job_name)",
    'volcano_e2e_job_scheduling_duration{queue=~".+", job_namespace=~".+"}',
    "rate(volcano_total_preemption_attempts[$__rate_interval])",
    "volcano_pod_preemption_victims",
    *(
        f"sum by (code, method) (rate(rest_client_requests_total{{{service}}}[$__rate_interval]))"
        for service in (SCHEDULER, CONTROLLERS)
    ),
    *(
        "histogram_quantile(0.99, sum by (le, verb) "
        f"(rate(rest_client_request_duration_seconds_bucket{{{service}}}[$__rate_interval])))"
        for service in (SCHEDULER, CONTROLLERS)
    ),
]
"""Queries with the names, labels and functions of Volcano's own dashboards, as far as these read our programs."""
GROUPS = yaml.safe_load((WRITTEN / "prometheus-rules.yaml").read_text())["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]


@pytest.fixture
def prometheus(request: pytest.FixtureRequest) -> Prometheus:
    require_programs()
    found: Run = request.getfixturevalue("hundred_jobs")
    assert found.prometheus is not None
    return found.prometheus


@pytest.fixture
def window(hundred_jobs: Run) -> Window:
    return Window(hundred_jobs.began, hundred_jobs.rested, SCRAPE_S)


def values(prometheus: Prometheus, window: Window, query: str) -> list[float]:
    answer = prometheus.range(query_of(query, window), window.start, window.end, window.step)
    return [value for series in answer for _, value in series.values]


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_shows_numbers(prometheus: Prometheus, window: Window, panel: Panel) -> None:
    for target in panel.targets:
        found = values(prometheus, window, target.query)

        assert panel.empty or any(math.isfinite(value) for value in found), target.query
        assert all(value >= 0 for value in found if math.isfinite(value)), target.query


@pytest.mark.parametrize("query", AS_IN_VOLCANOS_DASHBOARDS)
def test_volcanos_dashboards_have_data(prometheus: Prometheus, window: Window, query: str) -> None:
    assert any(math.isfinite(value) and value > 0 for value in values(prometheus, window, query))


def test_most_panels_that_may_be_empty_are_not(prometheus: Prometheus, window: Window) -> None:
    """What ran makes events of nearly all kinds, so that the queries of rare events are tried, too."""
    rare = {
        f"{dashboard.name}: {panel.title}"
        for dashboard in DASHBOARDS
        for panel in dashboard.panels
        if panel.empty and not any(values(prometheus, window, target.query) for target in panel.targets)
    }

    assert rare <= {
        "scheduler: Retries of binds",
        "scheduler: Requests that fail",
        "scheduler: Steps before binds",
        "scheduler: Length of preparations",
        "controllers: Turns that did not succeed",
        "controllers: Requests that fail",
        "webhooks: Turned away",
    }


@pytest.mark.parametrize("dashboard", DASHBOARDS, ids=lambda dashboard: dashboard.name)
def test_a_dashboard_can_be_drawn(prometheus: Prometheus, window: Window, dashboard: Dashboard, tmp_path: Path) -> None:
    """Pictures are kept in the folder that $VOLCANO_PY_PICTURES names."""
    folder = Path(os.environ.get(PICTURES, tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{dashboard.name}.png"

    draw(dashboard, at(prometheus.url), window, file)

    assert file.read_bytes().startswith(b"\x89PNG")
    assert file.stat().st_size > 20_000


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("alert") or rule["record"])
def test_a_rule_can_be_evaluated(prometheus: Prometheus, window: Window, rule: dict[str, str]) -> None:
    prometheus.range(rule["expr"], window.start, window.end, window.step)


def test_everything_was_scraped_under_the_names_of_the_services(prometheus: Prometheus, window: Window) -> None:
    up = prometheus.range("up", window.start, window.end, window.step)

    assert {series.labels["kubernetes_name"] for series in up} == {
        "volcano-scheduler-service",
        "volcano-controllers-service",
        "volcano-admission-service",
    }
    seen = [value for series in up for _, value in series.values]
    assert sum(seen) > 0.9 * len(seen)  # a busy machine may be late once


# What promtool says against names of Volcano, which dashboards depend on.
OBJECTIONS = {
    "use base unit": "milliseconds and thousandths",
    "metric names should not contain abbreviated units": "milli_cpu",
    "counter metrics should have": "counters without _total",
    "non-histogram and non-summary metrics should not have": "gauges and counters with names of histograms",
    "camelCase": "the label OnSession",
}
VOLCANOS = re.compile(r"volcano_(?!py_)\w+ ")


@pytest.mark.parametrize("service", ["scheduler", "controllers", "admission"])
def test_promtool_objects_only_to_names_of_volcano(hundred_jobs: Run, service: str) -> None:
    require_programs()
    page = hundred_jobs.at_rest[f"volcano-{service}-service"]
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=page.text, capture_output=True, text=True, timeout=60, check=False
    )
    lines = (done.stdout + done.stderr).splitlines()

    assert done.returncode in {0, 3}, lines  # 3: it read everything, and has something to say
    assert [line for line in lines if not VOLCANOS.match(line) or not any(text in line for text in OBJECTIONS)] == []
