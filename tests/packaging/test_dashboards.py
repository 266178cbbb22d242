"""Dashboard and rules: they read what the scheduler measures, and for every alert there is something to do."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.packaging.measured import Metric, labels, names, of_controllers, of_scheduler, series
from tests.packaging.pages import DOCS, REPOSITORY, rows

FOLDER = REPOSITORY / "manifests" / "dashboards"
OPERATORS = DOCS / "operators.md"
SCHEDULERS, CONTROLLERS = series(of_scheduler()), series(of_controllers())
SERIES = CONTROLLERS | SCHEDULERS
DASHBOARD: dict[str, Any] = json.loads((FOLDER / "scheduler.json").read_text())
GROUPS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "prometheus-rules.yaml").read_text())["groups"]
RULES: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = [rule for rule in RULES if "alert" in rule]
PANELS: list[dict[str, Any]] = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]

# What a panel needs to be drawn by Grafana 8 and later.
PANEL_FIELDS = {"id", "type", "title", "description", "datasource", "gridPos", "fieldConfig", "targets", "options"}
KINDS = {"timeseries", "stat", "bargauge"}
UNITS = {"short", "ops", "ms", "s", "bytes", "percentunit"}
WIDTH = 24


def expressions() -> Iterator[tuple[str, str]]:
    for panel in PANELS:
        for target in panel["targets"]:
            yield f"panel {panel['title']}", target["expr"]
    for rule in RULES:
        yield rule.get("alert") or rule["record"], rule["expr"]


EXPRESSIONS = [pytest.param(expression, id=where) for where, expression in expressions()]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_metric_that_is_read_is_measured(expression: str):
    read = names(expression)
    recorded = {rule["record"] for rule in RULES if "record" in rule}

    assert read or any(record in expression for record in recorded)
    assert read - SERIES.keys() == set()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_label_that_is_used_exists(expression: str):
    assert [(name, label) for name, label in labels(expression) if label not in SERIES[name].labels] == []


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_rates_are_taken_of_counters_and_only_of_them(expression: str):
    rated = set(re.findall(r"\b(?:rate|increase)\((volcano_[a-z0-9_]+)", expression))
    plain = names(expression) - rated

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
    assert re.fullmatch(r"\d+m", rule.get("for", "1m"))


def test_the_runbook_lists_exactly_the_alerts():
    runbook = {cells[0].strip("`"): cells[1:] for cells in rows(OPERATORS, "Alerts")}

    assert runbook.keys() == {rule["alert"] for rule in ALERTS}
    assert all(all(cells) for cells in runbook.values())


@pytest.mark.parametrize(
    ("section", "measured"), [("Metrics", SCHEDULERS), ("Metrics of the controllers", CONTROLLERS)]
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
    (variable,) = DASHBOARD["templating"]["list"]

    assert (variable["name"], variable["type"], variable["query"]) == ("datasource", "datasource", "prometheus")
    assert {json.dumps(panel["datasource"]) for panel in PANELS} == {
        json.dumps({"type": "prometheus", "uid": "${datasource}"})
    }


def test_panels_have_unique_numbers_and_do_not_overlap():
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= WIDTH, panel["title"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells

    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_the_dashboard_can_be_imported_as_it_is():
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", DASHBOARD["uid"])
    assert DASHBOARD["schemaVersion"] >= 36
    assert "id" not in DASHBOARD  # Grafana gives one
    assert DASHBOARD["time"].keys() == {"from", "to"}
