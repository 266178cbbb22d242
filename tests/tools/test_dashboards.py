"""Descriptions of dashboards, what Grafana gets, and what is drawn."""

import json
from pathlib import Path

import pytest
from matplotlib.axes import Axes

from tools.dashboards.description import Dashboard, DescriptionError, read
from tools.dashboards.draw import Answered, Window, draw, query_of, shown
from tools.dashboards.grafana import text_of

DESCRIPTION = """\
title: A title
says: What it shows.
variables:
  queue: {label: Queue, values: 'label_values(a, queue_name)'}
rows:
- title: First
  panels:
  - {title: Wide, says: Wide., width: 16, ask: [{rate: a_total, by: 'x, y', where: 'z="1"'}]}
  - {title: Next, says: Next., width: 16, unit: s, ask: [{quantiles: b}, {p99: b, by: x, 'on': c}]}
- title: Second
  panels:
  - {title: Word, says: Word., kind: stat, words: {1: [ready, green]}, levels: {2: green, 0: red}, ask: [{query: d}]}
  - title: Lines
    says: Lines.
    empty: It is quiet.
    ask: [{query: 'e{queue_name=~"$queue"}', legend: '{{queue_name}}', dashed: true}]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(DESCRIPTION)
    return path


@pytest.fixture
def dashboard(file: Path) -> Dashboard:
    return read(file)


def test_short_forms_stand_for_queries(dashboard: Dashboard) -> None:
    first, second, *_ = dashboard.panels

    assert [(target.query, target.legend) for target in (*first.targets, *second.targets)] == [
        ('sum by (x, y) (rate(a_total{z="1"}[$__rate_interval]))', "{{x}} {{y}}"),
        ("histogram_quantile(0.5, sum by (le) (rate(b_bucket[$__rate_interval])))", "half"),
        ("histogram_quantile(0.99, sum by (le) (rate(b_bucket[$__rate_interval])))", "99 of 100"),
        ("histogram_quantile(0.99, sum by (le, x) (rate(b_bucket[$__rate_interval]) and on (instance) c))", "{{x}}"),
    ]


def test_panels_go_from_left_to_right_and_on_to_the_next_line(dashboard: Dashboard) -> None:
    places = [(panel.title, panel.x, panel.y) for panel in dashboard.panels]

    assert places == [("Wide", 0, 1), ("Next", 0, 8), ("Word", 0, 16), ("Lines", 8, 16)]
    assert [row.y for row in dashboard.rows] == [0, 15]


@pytest.mark.parametrize(
    ("was", "wrong", "said"),
    [
        ("kind: stat", "sort: stat", r"mine.yaml: panel 'Word' has unknown fields: \['sort'\]"),
        ("{query: d}", "{asks: d}", "mine.yaml: .* is none of query, rate, p99, quantiles"),
    ],
)
def test_mistakes_name_file_and_panel(file: Path, was: str, wrong: str, said: str) -> None:
    file.write_text(DESCRIPTION.replace(was, wrong))

    with pytest.raises(DescriptionError, match=said):
        read(file)


def test_grafana_gets_variables_words_and_dashed_lines(dashboard: Dashboard) -> None:
    written = json.loads(text_of(dashboard))

    assert [variable["name"] for variable in written["templating"]["list"]] == ["datasource", "queue"]
    panels = {panel["title"]: panel for panel in written["panels"]}
    (mapping,) = panels["Word"]["fieldConfig"]["defaults"]["mappings"]
    assert mapping["options"] == {"1": {"text": "ready", "color": "green"}}
    (override,) = panels["Lines"]["fieldConfig"]["overrides"]
    assert override["matcher"] == {"id": "byFrameRefID", "options": "A"}
    assert panels["Wide"]["fieldConfig"]["overrides"] == []


def test_what_shows_the_present_asks_for_the_present(dashboard: Dashboard) -> None:
    """Over a time range, Grafana shows the last value of a series that ended an hour ago: ready, and no scheduler."""
    panels = {panel["title"]: panel for panel in json.loads(text_of(dashboard))["panels"]}

    (word,) = panels["Word"]["targets"]
    assert (word["instant"], word["range"]) == (True, False)
    assert not any(target.get("instant") for target in panels["Wide"]["targets"])


def test_colours_of_a_number_are_those_of_the_description(dashboard: Dashboard) -> None:
    """Without steps of our own, Grafana shows everything from 80 up in red."""
    panels = {panel["title"]: panel for panel in json.loads(text_of(dashboard))["panels"]}

    steps = panels["Word"]["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert steps == [{"color": "red", "value": None}, {"color": "green", "value": 2.0}]


@pytest.mark.parametrize(("last_s", "drawn"), [(60.0, "ready"), (30.0, "no data")])
def test_a_number_of_a_process_that_is_gone_is_not_drawn(
    dashboard: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last_s: float, drawn: str
) -> None:
    texts: list[str] = []
    monkeypatch.setattr(Axes, "text", lambda _, x, y, text, **look: texts.append(text))

    draw(dashboard, lambda *_: [Answered({}, [(0.0, 1.0), (last_s, 1.0)])], Window(0.0, 60.0, 1.0), tmp_path / "a.png")

    assert [text.partition(":")[0] for text in texts] == [drawn]


@pytest.mark.parametrize(("lines", "areas"), [(3, 3), (500, 0)])
def test_areas_do_not_hide_the_lines_of_many_queues(
    dashboard: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: int, areas: int
) -> None:
    filled: list[str] = []
    monkeypatch.setattr(Axes, "fill_between", lambda _, *__, color, **look: filled.append(color))
    series = [Answered({"x": str(n)}, [(0.0, 1.0), (60.0, 2.0)]) for n in range(lines)]

    draw(dashboard, lambda query, *_: series if "a_total" in query else [], Window(0.0, 60.0, 1.0), tmp_path / "a.png")

    assert len(filled) == areas


def test_variables_are_replaced_before_a_query_is_asked() -> None:
    query = 'rate(a{queue_name=~"$queue"}[$__rate_interval])'

    assert query_of(query, Window(0, 60, 1)) == 'rate(a{queue_name=~".*"}[4s])'
    assert query_of(query, Window(0, 86400, 15)) == 'rate(a{queue_name=~".*"}[231s])'


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0, "s", "0"),
        (0.0042, "s", "4.2 ms"),
        (1500.0, "ms", "1.5s"),
        (86400.0 * 30, "s", "30 days"),
        (0.125, "percentunit", "12.5%"),
        (105.0, "percentunit", "10500%"),
        (2.0**20 * 96, "bytes", "96 MiB"),
        (12345.0, "short", "12.3k"),
        (4.0, "ops", "4/s"),
        (float("nan"), "s", "nan"),
    ],
)
def test_values_are_shown_in_units(value: float, unit: str, text: str) -> None:
    assert shown(value, unit) == text


def test_a_picture_asks_every_query_once(dashboard: Dashboard, tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(query: str, start: float, end: float, step: float) -> list[Answered]:
        asked.append(query)
        assert (start, end, step) == (0.0, 60.0, 1.0)
        if query.startswith("e"):
            return []
        return [Answered({"x": str(n)}, [(0.0, float("nan")), (30.0, 1.0), (60.0, 2.0)]) for n in range(30)]

    draw(dashboard, ask, Window(0.0, 60.0, 1.0), tmp_path / "mine.png")

    assert len(asked) == sum(len(panel.targets) for panel in dashboard.panels)
    assert (tmp_path / "mine.png").read_bytes().startswith(b"\x89PNG")
