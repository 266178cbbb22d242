"""Dashboards and rules: they read what the programs measure, and for every alert there is something to do."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.packaging.measured import Metric, labels, names, of_controllers, of_scheduler, of_webhooks, series
from tests.packaging.pages import DOCS, REPOSITORY, rows
from tools.dashboards.description import read_all
from tools.dashboards.grafana import text_of

FOLDER = REPOSITORY / "manifests" / "dashboards"
OPERATORS = DOCS / "operators.md"
SCHEDULERS, CONTROLLERS, WEBHOOKS = series(of_scheduler()), series(of_controllers()), series(of_webhooks())
OF_EVERY_PROCESS = {
    "process_resident_memory_bytes": Metric("process_resident_memory_bytes", "gauge", frozenset()),
    "process_cpu_seconds_total": Metric("process_cpu_seconds_total", "counter", frozenset()),
}
SERIES = CONTROLLERS | WEBHOOKS | SCHEDULERS | OF_EVERY_PROCESS
DASHBOARDS: dict[str, dict[str, Any]] = {file.stem: json.loads(file.read_text()) for file in FOLDER.glob("*.json")}
GROUPS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "prometheus-rules.yaml").read_text())["groups"]
RULES: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = [rule for rule in RULES if "alert" in rule]
PANELS: list[dict[str, Any]] = [
    panel for dashboard in DASHBOARDS.values() for panel in dashboard["panels"] if panel["type"] != "row"
]

# What a panel needs to be drawn by Grafana 8 and later.
PANEL_FIELDS = {"id", "type", "title", "description", "datasource", "gridPos", "fieldConfig", "targets", "options"}
KINDS = {"timeseries", "stat", "bargauge"}
UNITS = {"short", "ops", "ms", "s", "bytes", "percentunit"}
WIDTH = 24


def expressions() -> Iterator[tuple[str, str]]:
    for name, dashboard in DASHBOARDS.items():
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                yield f"{name}: {panel['title']}", target["expr"]
    for rule in RULES:
        yield rule.get("alert") or rule["record"], rule["expr"]


EXPRESSIONS = [pytest.param(expression, id=where) for where, expression in expressions()]


def test_the_files_are_those_that_the_descriptions_make():
    """After a change of a description: python -m tools.dashboards write."""
    assert {file.name: file.read_text() for file in FOLDER.glob("*.json")} == {
        f"{dashboard.name}.json": text_of(dashboard) for dashboard in read_all()
    }


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_metric_that_is_read_is_measured(expression: str):
    read = names(expression)
    recorded = {rule["record"] for rule in RULES if "record" in rule}

    assert read or any(record in expression for record in recorded)
    assert read - SERIES.keys() == set()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_label_that_is_used_exists(expression: str):
    assert [(name, label) for name, label in labels(expression) if label not in SERIES[name].labels] == []


GROWING = re.compile(r"\b(?:rate|increase)\(((?:volcano|process)_[a-z0-9_]+)")
COUNTED = frozenset(
    {
        *("volcano_job_retry_counts", "volcano_job_completed_phase_count", "volcano_job_failed_phase_count"),
        *("volcano_jobflow_succeed_phase_count", "volcano_jobflow_failed_phase_count"),
        "volcano_py_admission_certificate_loads_total",  # one each time, months apart
        "volcano_py_wakeups_total",  # minus the cycles that have a result
        "volcano_py_plugin_slow_cycles_total",  # which plugins have a series at all
    }
)
"""Counters that are read as they are: the series of a job begins with 1, and a rate would not see it."""


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_rates_are_taken_of_counters_and_only_of_them(expression: str):
    rated = set(GROWING.findall(expression))
    plain = names(expression) - rated - COUNTED

    # Counters of Volcano whose names lack _total are kept as gauges.
    assert {name for name in rated if SERIES[name].kind == "gauge"} == set()
    assert {name for name in plain if SERIES[name].kind != "gauge"} == set()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_brackets_are_closed(expression: str):
    plain = re.sub(r'"[^"]*"', "", expression)

    assert [plain.count(opening) for opening in "([{"] == [plain.count(closing) for closing in ")]}"]


def test_recorded_names_that_are_read_are_recorded():
    read = {name for _, expression in expressions() for name in re.findall(r"volcano_py:[\w:]+", expression)}

    assert read <= {rule["record"] for rule in RULES if "record" in rule}


def test_names_of_rules_and_groups_are_unique():
    assert len({rule.get("alert") or rule["record"] for rule in RULES}) == len(RULES)
    assert len({group["name"] for group in GROUPS}) == len(GROUPS)


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_an_alert_has_a_severity_and_a_description(rule: dict[str, Any]):
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["annotations"].keys() == {"summary", "description"}
    assert re.fullmatch(r"\d+[mh]", rule.get("for", "1m"))


def test_the_runbook_lists_exactly_the_alerts():
    runbook = {cells[0].strip("`"): cells[1:] for cells in rows(OPERATORS, "Alerts")}

    assert runbook.keys() == {rule["alert"] for rule in ALERTS}
    assert all(all(cells) for cells in runbook.values())


@pytest.mark.parametrize(
    ("section", "measured"),
    [
        ("Metrics", SCHEDULERS),
        ("Metrics of the controllers", CONTROLLERS),
        ("Metrics of the webhooks", WEBHOOKS),
    ],
)
def test_the_table_lists_exactly_the_metrics(section: str, measured: dict[str, Metric]):
    listed = {cells[0].strip("`"): (cells[1], cells[2]) for cells in rows(OPERATORS, section)}

    assert listed == {
        metric.family: (metric.kind, ", ".join(f"`{label}`" for label in sorted(metric.labels - {"le"})))
        for metric in measured.values()
    }


def test_panels_have_what_grafana_draws_from():
    for panel in PANELS:
        assert panel.keys() == PANEL_FIELDS, panel["title"]
        assert panel["type"] in KINDS, panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS, panel["title"]
        assert [target["refId"] for target in panel["targets"]] == ["A", "B", "C", "D"][: len(panel["targets"])]
        assert all(target["datasource"] == panel["datasource"] for target in panel["targets"])


def test_panels_take_their_data_source_from_the_variable():
    for dashboard in DASHBOARDS.values():
        variable = dashboard["templating"]["list"][0]
        assert (variable["name"], variable["type"], variable["query"]) == ("datasource", "datasource", "prometheus")
    assert {json.dumps(panel["datasource"]) for panel in PANELS} == {
        json.dumps({"type": "prometheus", "uid": "${datasource}"})
    }


@pytest.mark.parametrize("name", DASHBOARDS)
def test_variables_that_panels_use_exist(name: str):
    variables = {variable["name"] for variable in DASHBOARDS[name]["templating"]["list"]}
    used = set(re.findall(r"\$(\w+)", json.dumps([panel.get("targets", []) for panel in DASHBOARDS[name]["panels"]])))

    assert used - {"__rate_interval"} <= variables


@pytest.mark.parametrize("name", DASHBOARDS)
def test_panels_have_unique_numbers_and_do_not_overlap(name: str):
    taken: set[tuple[int, int]] = set()
    panels = DASHBOARDS[name]["panels"]
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= WIDTH, panel["title"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells

    assert len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_title_fits_into_its_panel(name: str):
    for panel in DASHBOARDS[name]["panels"]:
        assert len(panel["title"]) <= 7 * panel["gridPos"]["w"], panel["title"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_a_dashboard_can_be_imported_as_it_is(name: str):
    dashboard = DASHBOARDS[name]

    assert dashboard["uid"] == f"volcano-py-{name}"
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", dashboard["uid"])
    assert dashboard["schemaVersion"] >= 36
    assert "id" not in dashboard  # Grafana gives one
    assert dashboard["time"].keys() == {"from", "to"}


def test_panels_that_the_runbook_names_exist():
    runbook = " ".join(cells[2] for cells in rows(OPERATORS, "Alerts"))
    named = re.findall(r'"([A-Z][^"]+)"', runbook)

    assert len(named) > 3
    assert set(named) <= {panel["title"] for panel in PANELS}


def test_the_guide_finds_the_services():
    blocks = re.findall(r"```yaml\n(.*?)```", (DOCS / "dashboards.md").read_text(), re.DOTALL)
    scrape, monitor, _ = (yaml.safe_load(block) for block in blocks)
    found = [
        document
        for file in (REPOSITORY / "manifests").rglob("*.yaml")
        for document in yaml.safe_load_all(file.read_text())
        if isinstance(document, dict) and document.get("kind") == "Service"
    ]

    assert len(found) == 3
    (selector,) = monitor["spec"]["selector"]["matchExpressions"]
    assert {service["metadata"]["labels"][selector["key"]] for service in found} == set(selector["values"])
    assert {service["metadata"]["namespace"] for service in found} == {monitor["metadata"]["namespace"]}
    (endpoint,) = monitor["spec"]["endpoints"]
    (keep,) = (rule for rule in scrape["scrape_configs"][0]["relabel_configs"] if rule.get("action") == "keep")
    for service in found:
        port = {port["name"]: port["port"] for port in service["spec"]["ports"]}[endpoint["port"]]
        assert service["metadata"]["annotations"]["prometheus.io/port"] == str(port)
    assert keep["regex"] == endpoint["port"]
