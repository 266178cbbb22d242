"""Dashboards as Grafana 8 and later import them."""

import json
from typing import Any, Final

from tools.dashboards.description import HEIGHT, WIDTH, Dashboard, Panel, Row, Target

_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "timeseries": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
    "stat": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value"},
    "bargauge": {"reduceOptions": {"calcs": ["lastNotNull"]}, "orientation": "horizontal", "displayMode": "basic"},
}
_LETTERS: Final = "ABCDEF"
_NOW: Final = ("stat", "bargauge")
"""Kinds that show the present: over a time range, they would go on to show series that have ended."""
_PLAIN: Final = "blue"
_LINES: Final = {"lineWidth": 1, "fillOpacity": 5, "stacking": {"mode": "none"}}


def text_of(dashboard: Dashboard) -> str:
    """Return the file to import."""
    return json.dumps(_dashboard(dashboard), indent=1, ensure_ascii=False) + "\n"


def _dashboard(dashboard: Dashboard) -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    for row in dashboard.rows:
        panels.append(_row(row, len(panels) + 1))
        for panel in row.panels:
            panels.append(_panel(panel, len(panels) + 1))
    return {
        "title": dashboard.title,
        "uid": dashboard.uid,
        "description": dashboard.says,
        "tags": ["volcano"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "",
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "annotations": {"list": []},
        "links": [_link()],
        "templating": {"list": _variables(dashboard)},
        "panels": panels,
    }


def _link() -> dict[str, Any]:
    """Return a menu with all dashboards that have the tag."""
    return {"type": "dashboards", "tags": ["volcano"], "title": "Volcano", "asDropdown": True, "keepTime": True}


def _variables(dashboard: Dashboard) -> list[dict[str, Any]]:
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    found = [{**source, "current": {}, "hide": 0, "refresh": 1, "regex": "", "multi": False, "includeAll": False}]
    for name, (label, values) in dashboard.variables.items():
        query = {"name": name, "label": label, "type": "query", "datasource": _SOURCE, "query": values, "refresh": 2}
        everything = {"current": {"text": "All", "value": "$__all"}, "multi": True, "includeAll": True, "sort": 1}
        found.append({**query, **everything, "allValue": ".*"})
    return found


def _row(row: Row, number: int) -> dict[str, Any]:
    place = {"h": 1, "w": WIDTH, "x": 0, "y": row.y}
    return {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}


def _panel(panel: Panel, number: int) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.kind == "timeseries":
        defaults["custom"] = _LINES
    else:
        defaults["thresholds"] = _thresholds(panel)
    if panel.words:
        shown = {str(value): {"text": text, "color": color} for value, (text, color) in panel.words.items()}
        defaults["mappings"] = [{"type": "value", "options": shown}]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.says,
        "datasource": _SOURCE,
        "gridPos": {"h": HEIGHT, "w": panel.width, "x": panel.x, "y": panel.y},
        "fieldConfig": {"defaults": defaults, "overrides": _overrides(panel)},
        "targets": [_target(panel, index, target) for index, target in enumerate(panel.targets)],
        "options": _OPTIONS[panel.kind],
    }


def _thresholds(panel: Panel) -> dict[str, Any]:
    """Return colours by value; without any, Grafana would show everything from 80 up in red."""
    colors = list(panel.levels.items()) or [(0.0, _PLAIN)]
    first, *others = colors
    steps = [{"color": first[1], "value": None}, *({"color": color, "value": value} for value, color in others)]
    return {"mode": "absolute", "steps": steps}


def _target(panel: Panel, index: int, target: Target) -> dict[str, Any]:
    found = {"refId": _LETTERS[index], "datasource": _SOURCE, "expr": target.query, "legendFormat": target.legend}
    return {**found, "instant": True, "range": False} if panel.kind in _NOW else found


def _overrides(panel: Panel) -> list[dict[str, Any]]:
    """Return what distinguishes dashed lines: in Grafana, a query with overrides is known by its letter."""
    style = [
        {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [6, 6]}},
        {"id": "custom.fillOpacity", "value": 0},
    ]
    return [
        {"matcher": {"id": "byFrameRefID", "options": _LETTERS[index]}, "properties": style}
        for index, target in enumerate(panel.targets)
        if target.dashed
    ]
